/** Where errors go that nobody else learns of: to the page's `onerror` or the console, and its host. */
import { ErrorCode, ProtocolError } from "./errors.js";
import { makeProblems, REPORTED, watchConsole, watchEvents, type ProblemKind } from "./problems.js";

/** A page has one host, so what goes wrong in it goes to the App that is connected. */
const problems = makeProblems();
if ("document" in globalThis) watchEvents(globalThis, problems._add);

/** Send the page's problems to a host that wants to know, or to nobody any more. */
export function sendProblems(send: ((problem: object) => void) | undefined): void {
  problems._sendTo(send);
  if (send) watchConsole(globalThis, (text) => problems._add("console", text));
}

export type Reporter = ReturnType<typeof makeReporter>;

/** `getHandler` has the page's `onerror` as it is now. */
export function makeReporter(getHandler: () => ((error: unknown) => unknown) | undefined) {
  /** Report an error; with a kind of problem, to the host as well. Async, so that it never throws. */
  async function report(error: unknown, kind?: ProblemKind, tool?: string): Promise<void> {
    if (kind) problems._add(kind, error, { tool });
    const marked = globalThis as { [REPORTED]?: boolean };
    marked[REPORTED] = true; // onerror writes it to the console more often than not
    try {
      const onerror = getHandler() ?? console.error;
      onerror(error);
    } finally {
      marked[REPORTED] = false;
    }
  }

  /** Run a handler; errors are reported, and do not affect others. */
  async function run<Given extends unknown[]>(
    handler: ((...given: Given) => unknown) | undefined,
    ...given: Given
  ): Promise<unknown> {
    try {
      return await handler?.(...given);
    } catch (error) {
      void report(error, "error");
      return undefined;
    }
  }

  /** The error that is sent to the host: only texts that are meant for it. */
  function toError(error: unknown, text: string, kind: ProblemKind, tool?: string): ProtocolError {
    if (error instanceof ProtocolError) return error;
    void report(error, kind, tool);
    return new ProtocolError(ErrorCode.Internal, text);
  }

  return { _report: report, _run: run, _toError: toError };
}
