/**
 * The sandbox around one View: an origin of its own, the View's policy as its response header, and
 * the View in a frame inside, which inherits that policy. It passes messages between the Stage and
 * the View, both ways, as they are, except those that are about the sandbox itself.
 */
(() => {
  "use strict";
  const stage = document.querySelector('meta[name="stage"]').content;
  const SANDBOX = "ui/notifications/sandbox-";
  const INTRODUCED_WITHIN = 3000; // milliseconds that the next document of the View has to do so
  const ALIVE = "transom-alive";
  const { addEventListener: listen, dispatchEvent: dispatch } = EventTarget.prototype;
  let inner = null;

  if (window.parent === window) return; // nobody to talk to: this page is for the Stage only

  const aboutSandbox = (data) =>
    typeof data?.method === "string" && data.method.startsWith(SANDBOX);

  function show({ html, allow }) {
    inner?.remove();
    inner = document.createElement("iframe");
    inner.setAttribute("sandbox", "allow-scripts allow-same-origin allow-forms");
    if (allow) inner.setAttribute("allow", allow);
    inner.srcdoc = html;
    inner.addEventListener("load", ({ target }) => {
      if (showsView(target)) watch(target.contentWindow); // it was loaded again
      else reportGone();
    });
    document.body.append(inner);
    watch(inner.contentWindow); // it is the one that the page will have
  }

  // --- whether the View's document is still there. One that introduced itself (`ui/initialize`) and
  // is replaced, by a navigation, a reload or `document.open`, never answers: the next one has to
  // introduce itself.

  let introduced = false;
  let leaving = 0;
  let listens = false;
  const confirm = () => {
    listens = true;
  };

  function reportGone() {
    clearTimeout(leaving);
    introduced = false;
    post("view-gone", {});
  }

  function left() {
    if (!introduced) return;
    introduced = false;
    leaving = setTimeout(reportGone, INTRODUCED_WITHIN);
  }

  /** `document.open` empties the document and removes all listeners, and tells nobody. */
  const emptied = new MutationObserver(() => {
    listens = false;
    if (inner && showsView(inner)) dispatch.call(inner.contentWindow, new Event(ALIVE));
    if (!listens) left();
  });

  function introduce() {
    if (!showsView(inner)) return; // it has been replaced meanwhile
    clearTimeout(leaving);
    introduced = true;
    listen.call(inner.contentWindow, "pagehide", left);
    listen.call(inner.contentWindow, ALIVE, confirm);
    emptied.observe(inner.contentDocument, { childList: true });
  }

  // --- what goes wrong in the page, for its author: pages with transom.js report more by themselves.
  // A reported event, or a wrapped console.error, gets this mark, so that nothing is reported twice.

  const REPORTED = Symbol.for("transom/problem");
  let reported = 0;

  const asText = (value) => {
    try {
      const isText = typeof value !== "object" || value === null || typeof value.stack === "string";
      return isText ? String(value) : JSON.stringify(value);
    } catch {
      return typeof value;
    }
  };

  function report(kind, message, { source, line, column } = {}) {
    reported += 1;
    if (reported > 101) return;
    const text = reported > 100 ? "More than 100 problems" : asText(message).slice(0, 2000);
    const place = source ? { source: asText(source).slice(0, 500), line, column } : {};
    const params = { kind, message: text, ...place };
    window.parent.postMessage({ jsonrpc: "2.0", method: "transom/notifications/problem", params }, stage);
  }

  const EVENTS = {
    error: ({ error, message, filename: source, lineno: line, colno: column }) =>
      ["error", error ?? message, { source, line, column }],
    unhandledrejection: ({ reason }) => ["rejection", reason],
    securitypolicyviolation: ({ blockedURI, effectiveDirective, sourceFile: source, lineNumber: line }) =>
      ["blocked", `${effectiveDirective}: ${blockedURI}`, { source, line }],
  };

  function watch(page) {
    if (page.console.error[REPORTED]) return;
    for (const [name, read] of Object.entries(EVENTS)) {
      page.addEventListener(name, (event) => {
        if (event[REPORTED]) return;
        event[REPORTED] = true;
        report(...read(event));
      });
    }
    const { error } = page.console;
    page.console.error = (...given) => {
      error(...given);
      if (!page[REPORTED]) report("console", given.map(asText).join(" "));
    };
    page.console.error[REPORTED] = error;
  }

  /** Not after the View has navigated away: another origin cannot be inspected. */
  function showsView(frame) {
    try {
      return frame.contentWindow.location.href === "about:srcdoc";
    } catch {
      return false;
    }
  }

  const post = (name, params) =>
    window.parent.postMessage({ jsonrpc: "2.0", method: SANDBOX + name, params }, stage);

  window.addEventListener("message", ({ source, origin, data }) => {
    if (source === window.parent && origin === stage) {
      if (data?.method === SANDBOX + "resource-ready") show(data.params);
      else if (!aboutSandbox(data)) inner?.contentWindow?.postMessage(data, location.origin);
    } else if (inner && source === inner.contentWindow && origin === location.origin) {
      if (data?.method === "ui/initialize") introduce();
      if (!aboutSandbox(data)) window.parent.postMessage(data, stage);
    }
  });

  post("proxy-ready", {});
})();
