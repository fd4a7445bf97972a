// In a frame with an opaque origin, whatever stores something throws.
for (const name of ["localStorage", "sessionStorage", "indexedDB", "caches", "cookieStore"]) {
  Object.defineProperty(window, name, {
    get() {
      throw new DOMException(
        `Failed to read the '${name}' property from 'Window': The document is sandboxed and lacks the 'allow-same-origin' flag.`,
        "SecurityError",
      );
    },
  });
}
