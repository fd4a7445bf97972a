/**
 * The sandbox around one View: an origin of its own, the View's policy as its response header, and
 * the View in a frame inside, which inherits that policy. It passes messages between the Stage and
 * the View, both ways, as they are, except those that are about the sandbox itself.
 */
(() => {
  "use strict";
  const stage = document.querySelector('meta[name="stage"]').content;
  const SANDBOX = "ui/notifications/sandbox-";
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
    let loads = 0;
    inner.addEventListener("load", ({ target }) => {
      loads += 1;
      if (loads > 1) post("view-loaded", { gone: !showsView(target) });
    });
    document.body.append(inner);
  }

  /** Not after the View has navigated elsewhere, which cannot be looked into, or to another page. */
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
      if (!aboutSandbox(data)) window.parent.postMessage(data, stage);
    }
  });

  post("proxy-ready", {});
})();
