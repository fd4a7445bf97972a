/**
 * What may keep a page from connecting: a script that failed, that did not load, or that was blocked.
 * Not what the page handles itself, nor what is known to be harmless.
 */
import { asText } from "./json.js";
import type { ProblemKind } from "./problems.js";

const KNOWN_WITHIN = 100; // milliseconds until it is known that a script was blocked
const MAX_REPORTED = 256; // addresses of scripts
const MAX_NAMED = 3; // scripts

// What browsers report of pages that go on: a layout that took two turns, and a try of `eval`.
const HARMLESS = /^ResizeObserver loop |^script-src\S* blocked eval$/;

// Of this window: the View could replace those of its own.
// eslint-disable-next-line @typescript-eslint/unbound-method -- they are called with another window's
const { addEventListener: listen, removeEventListener: unlisten } = EventTarget.prototype;
// eslint-disable-next-line @typescript-eslint/unbound-method
const { getEntriesByType } = Performance.prototype;

type Page = Window & typeof globalThis;

const withoutHash = (url: string): string => url.replace(/#.*/, "");
const address = ({ src, href }: Partial<HTMLScriptElement & SVGScriptElement>): string =>
  withoutHash(asText(src ?? href?.baseVal));

/** Which modules of a page the browser did not get. Of other scripts it does not say. */
function missingModules({ performance, document }: Page): string[] {
  const others = new Set(
    [...document.scripts].filter((each) => each.type !== "module").map(address),
  );
  const entries = getEntriesByType.call(performance, "resource") as PerformanceResourceTiming[];
  return entries
    .filter(({ initiatorType }) => initiatorType === "script")
    .filter(({ responseStatus: status }) => status === 0 || status >= 400)
    .map(({ name }) => withoutHash(name))
    .filter((name) => !others.has(name));
}

export type Failures = ReturnType<typeof makeFailures>;

/**
 * Count what fails in a page, once `watch` has been called.
 *
 * @param page its window.
 * @param onChange called when there is a first failure, and when none is left.
 * @param report called with a script that did not load.
 */
export function makeFailures(
  page: Page,
  onChange: () => void,
  report: (kind: ProblemKind, text: string) => void,
) {
  let failures = 0;
  let document: Document | undefined;
  const rejected = new WeakSet<Promise<unknown>>();
  const reported = new Set<string>(); // addresses of scripts

  function note(address: string): void {
    if (reported.size < MAX_REPORTED) reported.add(address);
  }

  function count(change: 1 | -1): void {
    failures += change;
    if (failures === 0 || (failures === 1 && change > 0)) onChange();
  }

  /** A script did not load. Its own address may be fine, and what it imports may not. */
  function onMissing(script: HTMLScriptElement): void {
    const files = script.type === "module" ? missingModules(page) : [address(script)];
    const unreported = files.filter((file) => !reported.has(file)).slice(0, MAX_NAMED);
    if (files.length > 0 && unreported.length === 0) return;
    unreported.forEach(note);
    report("error", `A script did not load: ${unreported.join(", ") || "it is not known which"}`);
    count(1);
  }

  const readers: Record<string, (event: never) => void> = {
    error(event: ErrorEvent) {
      const { target, message } = event;
      const error: unknown = event.error;
      if (target === page) {
        if (!HARMLESS.test(asText(error ?? message))) count(1);
      } else if ((target as Element).localName === "script") {
        setTimeout(onMissing, KNOWN_WITHIN, target);
      }
    },
    unhandledrejection({ promise }: PromiseRejectionEvent) {
      rejected.add(promise);
      count(1);
    },
    rejectionhandled({ promise }: PromiseRejectionEvent) {
      if (rejected.delete(promise)) count(-1);
    },
    securitypolicyviolation({ effectiveDirective, blockedURI }: SecurityPolicyViolationEvent) {
      if (!effectiveDirective.startsWith("script-src") || blockedURI === "eval") return;
      note(blockedURI);
      count(1);
    },
  };
  const listeners = Object.entries(readers).map(([name, read]) => {
    const listener = (event: Event): void => {
      // Later: the listeners of the page have to run first, which may handle it.
      setTimeout(() => {
        if (!Reflect.get(Event.prototype, "defaultPrevented", event)) read(event as never);
      });
    };
    return [name, listener] as const;
  });

  /** Again for each document of the window: Chromium forgets that somebody listens for scripts. */
  function watch(): void {
    if (document === page.document) return;
    document = page.document;
    for (const [name, listener] of listeners) {
      unlisten.call(page, name, listener, true);
      listen.call(page, name, listener, true);
    }
  }

  return { _watch: watch, _hasFailed: () => failures > 0 };
}
