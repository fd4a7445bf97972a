/**
 * The sandbox around one View: an origin of its own, the View's policy as its response header, and
 * the View in a frame inside, which inherits that policy. It passes messages between the Stage and
 * the View, both ways, as they are, except those that are about the sandbox itself.
 */
import type { Driver, DriverWindow } from "./drive.js";
import type { ViewFrame } from "./settle.js";
import { asText, toJson as asJson } from "./json.js";
import {
  DRIVE,
  DRIVEN,
  FLAGS,
  isAboutSandbox,
  LAY_OUT,
  methodOf,
  PROXY_READY,
  RESOURCE_READY,
  TAB_PRESSED,
  VIEW_GONE,
  type SandboxDrive,
  type SandboxDriven,
  type SandboxedView,
} from "./messages.js";
import { makeFailures, type Failures } from "./failures.js";
import { isWatched, makeProblems, watchConsole, watchEvents } from "./problems.js";

const INTRODUCED_WITHIN = 3000; // milliseconds that the next document of the View has to do so
// Milliseconds that a page of which a script failed has to connect: once it has loaded, or if it has not.
const CONNECTS_WITHIN = 3000;
const LOADS_WITHIN = 5000;
const MAX_SOURCE = 500; // characters of the address of a script
const MAX_REQUESTS = 256; // of the View, as its host takes
const ALIVE = "transom-alive";
const UNCONNECTED = "transom/notifications/unconnected";
// Of this window: the View could replace those of its own.
// eslint-disable-next-line @typescript-eslint/unbound-method -- they are called with a window
const { addEventListener: listen, dispatchEvent: dispatch } = EventTarget.prototype;

/** `stage` is the origin of the page that shows the View, around the guard. */
function start(stage: string): void {
  const page = window.parent.parent;
  let inner: HTMLIFrameElement | undefined;

  /** Have the guard lay its page out, which gives this window its size before it is drawn. */
  const layOut = (): void => window.parent.postMessage(LAY_OUT, "*");

  function show({ html, allow }: SandboxedView): void {
    layOut();
    inner?.remove();
    isLoaded = false;
    const frame = document.createElement("iframe");
    frame.setAttribute("sandbox", FLAGS);
    if (allow) frame.setAttribute("allow", allow);
    frame.srcdoc = html;
    frame.addEventListener("load", () => {
      isLoaded = true;
      if (showsView(frame)) watch(frame);
      else reportGone();
      expectConnection();
    });
    inner = frame;
    document.body.append(frame);
    realm = undefined;
    watch(frame); // its window is the one that the page will have
  }

  const toStage = (message: unknown): void => page.postMessage(message, stage);

  const notify = (method: string, params: object): void =>
    toStage({ jsonrpc: "2.0", method, params });

  // --- whether the View's document is still there. One that introduced itself (`ui/initialize`) and
  // is replaced, by a navigation, a reload or `document.open`, never answers: the next one has to
  // introduce itself.

  let isIntroduced = false;
  let leaving: ReturnType<typeof setTimeout> | undefined;
  let confirmations = 0;
  const confirm = (): void => {
    confirmations += 1;
  };

  function reportGone(): void {
    clearTimeout(leaving);
    isIntroduced = false;
    notify(VIEW_GONE, {});
  }

  function onLeft(): void {
    if (!isIntroduced) return;
    isIntroduced = false;
    leaving = setTimeout(reportGone, INTRODUCED_WITHIN);
  }

  /** `document.open` empties the document and removes all listeners, and tells nobody. */
  const emptied = new MutationObserver(() => {
    const before = confirmations;
    if (inner && showsView(inner)) dispatch.call(inner.contentWindow!, new Event(ALIVE));
    if (confirmations === before) onLeft();
  });

  function onIntroduced(frame: HTMLIFrameElement): void {
    if (!showsView(frame)) return; // it has been replaced meanwhile
    clearTimeout(leaving);
    isIntroduced = true;
    listen.call(frame.contentWindow!, "pagehide", onLeft);
    listen.call(frame.contentWindow!, ALIVE, confirm);
    emptied.observe(frame.contentDocument!, { childList: true });
  }

  // --- what goes wrong in the page, for its author: pages with transom.js report more by themselves

  const problems = makeProblems();
  problems._sendTo(({ source, line, column, ...problem }) => {
    const place = source ? { source: asText(source).slice(0, MAX_SOURCE), line, column } : {};
    notify("transom/notifications/problem", { ...problem, ...place });
  });

  // --- whether the page will connect. One of which a script failed does so soon, or never. Its host
  // does not wait longer for it, and takes it if it connects after all.

  let isLoaded = false;
  let failures: Failures | undefined;
  let realm: unknown; // of the page that is watched
  let connecting: ReturnType<typeof setTimeout> | undefined;

  function expectConnection(): void {
    clearTimeout(connecting);
    if (!failures?._hasFailed()) return;
    const within = isLoaded ? CONNECTS_WITHIN : LOADS_WITHIN;
    connecting = setTimeout(() => {
      if (!isIntroduced) notify(UNCONNECTED, {});
    }, within);
  }

  function watch(frame: HTMLIFrameElement): void {
    if (!showsView(frame) && realm) return;
    const view = frame.contentWindow as Window & typeof globalThis;
    if (view.Object !== realm) {
      realm = view.Object;
      failures = makeFailures(view, expectConnection, problems._add);
      listen.call(view, "pagehide", () => {
        setTimeout(watch, 0, frame); // then its next document is there, before a script of that runs
      });
    }
    failures?._watch();
    if (isWatched(view)) return;
    watchEvents(view, (...found) => {
      try {
        problems._add(...found);
      } catch {
        problems._add(found[0], "Something was thrown that cannot be read");
      }
      return true; // when there were too many, the page does not go on either
    });
    watchConsole(view, (text) => problems._add("console", text));
    const onKey = ({ key, isTrusted }: KeyboardEvent): void => {
      if (key === "Tab" && isTrusted) notify(TAB_PRESSED, {});
    };
    listen.call(view, "keydown", onKey as EventListener, true);
  }

  /** Not after the View has navigated away: another origin cannot be inspected. */
  function showsView(frame: HTMLIFrameElement): boolean {
    try {
      return frame.contentWindow!.location.href === "about:srcdoc";
    } catch {
      return false;
    }
  }

  // --- reading and using the View, by a script that is loaded when it is first needed

  let driver: Promise<Driver> | undefined;
  const requests = new Set<number | string>(); // of the View, without an answer

  const view: ViewFrame = {
    page: () => (inner && showsView(inner) ? inner.contentDocument! : undefined),
    requests: () => requests,
    layOut,
  };

  /** A message that the View has sent, or gets. */
  function noteRequest(data: unknown): void {
    const { id, method } = Object(data) as { id?: unknown; method?: unknown };
    if (typeof id !== "number" && typeof id !== "string") return;
    if (method === undefined) requests.delete(id);
    else if (requests.size < MAX_REQUESTS) requests.add(id);
  }

  function loadLater(error: unknown): never {
    driver = undefined;
    throw error;
  }

  async function drive({ id, request }: SandboxDrive): Promise<void> {
    let answer = "{}";
    try {
      if (request.op !== "alive") {
        const answerTo = await (driver ??= loadDriver().catch(loadLater));
        answer = await answerTo(request, view);
      }
    } catch (error) {
      answer = asJson({ error: asText(error).slice(0, MAX_SOURCE) })!;
    }
    const params: SandboxDriven = { id, answer };
    notify(DRIVEN, params);
  }

  // --- messages -------------------------------------------------------------------------------------

  window.addEventListener("message", ({ source, origin, data }: MessageEvent<unknown>) => {
    if (source === page && origin === stage) {
      if (methodOf(data) === RESOURCE_READY) show((data as { params: SandboxedView }).params);
      else if (methodOf(data) === DRIVE) void drive((data as { params: SandboxDrive }).params);
      else if (!isAboutSandbox(data)) {
        if (methodOf(data) === undefined) noteRequest(data);
        inner?.contentWindow?.postMessage(data, location.origin);
      }
    } else if (source && source === inner?.contentWindow && origin === location.origin) {
      if (methodOf(data) === "ui/initialize") onIntroduced(inner);
      if (isAboutSandbox(data) || methodOf(data) === UNCONNECTED) return; // not for it to say
      if (methodOf(data) !== undefined) noteRequest(data);
      toStage(data);
    }
  });

  notify(PROXY_READY, {});
}

/** `drive.js` leaves its function with this window. */
function loadDriver(): Promise<Driver> {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    const onEnd = (): void => {
      const { transomDriver } = window as DriverWindow;
      if (transomDriver) resolve(transomDriver);
      else reject(new Error("The script that reads Views did not load"));
    };
    script.addEventListener("load", onEnd);
    script.addEventListener("error", onEnd);
    script.src = "/drive.js";
    document.head.append(script);
  });
}

// Without a parent there is nobody to talk to: this page is for the Stage only.
if (window.parent !== window) {
  start(document.querySelector<HTMLMetaElement>('meta[name="stage"]')!.content);
}
