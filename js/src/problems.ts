/**
 * What goes wrong in a page, for its author; models never see it. `transom.js` sends it to a host
 * that wants to know. The sandbox around a View listens as well, and reports what happens before
 * there is a connection, and in pages without `transom.js`.
 */
import { asText, entries, isString } from "./json.js";

/** A reported event, or a wrapped console.error, gets this mark: nothing is reported twice. */
export const REPORTED = Symbol.for("transom/problem");

const MAX_PROBLEMS = 100;
const MAX_TEXT = 2000;

export type ProblemKind = "error" | "rejection" | "blocked" | "console" | "tool" | "schema";

/** What is sent of a problem. */
export interface Problem {
  kind: ProblemKind;
  message: string;
  source?: string | undefined;
  line?: number | undefined;
  column?: number | undefined;
  tool?: string | undefined;
  /** Where it was thrown, if there is no place. */
  stack?: string | undefined;
}

type Place = Pick<Problem, "source" | "line" | "column">;
type Found = [kind: ProblemKind, what: unknown, place?: Place];
type Marked = Partial<Record<typeof REPORTED, unknown>>;
type MarkedConsole = Console["error"] & Marked;

/** The events of a window that tell of a problem, and how to read them. */
const READERS: Record<string, (event: never) => Found> = {
  error: ({ error, message, filename, lineno, colno }: ErrorEvent) => [
    "error",
    error ?? message,
    { source: filename, line: lineno, column: colno },
  ],
  unhandledrejection: ({ reason }: PromiseRejectionEvent) => ["rejection", reason],
  securitypolicyviolation: (event: SecurityPolicyViolationEvent) => [
    "blocked",
    `${event.effectiveDirective} blocked ${event.blockedURI}`,
    { source: event.sourceFile, line: event.lineNumber, column: event.columnNumber },
  ],
};

/**
 * Call `report` with each problem of a window that nobody has reported; it returns whether it did.
 */
export function watchEvents(page: EventTarget, report: (...found: Found) => boolean): void {
  for (const [name, read] of entries(READERS)) {
    page.addEventListener(name, (event: Event & Marked) => {
      if (!event[REPORTED] && report(...read(event as never))) event[REPORTED] = true;
    });
  }
}

/** Whether somebody reports what the console of a window gets as errors. */
export const isWatched = ({ console }: { console: Console }): boolean =>
  Boolean((console.error as MarkedConsole)[REPORTED]);

/** Call `report` with what the console of a window gets as errors, unless somebody does so already. */
export function watchConsole(
  page: { console: Console } & Marked,
  report: (text: string) => void,
): void {
  if (isWatched(page)) return;
  const { error } = page.console;
  const wrapped: MarkedConsole = (...given: unknown[]) => {
    error(...given);
    if (!page[REPORTED]) report(given.map(asText).join(" "));
  };
  wrapped[REPORTED] = error;
  page.console.error = wrapped;
}

const stackOf = (what: unknown): string | undefined => {
  const { stack } = Object(what) as { stack?: unknown };
  return isString(stack) ? stack.slice(0, MAX_TEXT) : undefined;
};

export type Problems = ReturnType<typeof makeProblems>;

/** What one page may send: a hundred problems, then a word that there are more. */
export function makeProblems() {
  let count = 0;
  let send: ((problem: Problem) => void) | undefined;

  /** Where they go from now on; undefined if nobody wants to know. */
  function sendTo(target: typeof send): void {
    send = target;
  }

  /** Send a problem; false if nobody wants to know, or there were too many. */
  function add(
    kind: ProblemKind,
    what: unknown,
    more: Omit<Problem, "kind" | "message"> = {},
  ): boolean {
    if (!send || count > MAX_PROBLEMS) return false;
    count += 1;
    send(
      count > MAX_PROBLEMS
        ? { kind, message: `More than ${MAX_PROBLEMS} problems` }
        : { kind, message: asText(what).slice(0, MAX_TEXT), stack: stackOf(what), ...more },
    );
    return true;
  }

  return { _add: add, _sendTo: sendTo };
}
