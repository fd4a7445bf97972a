/** The errors of a View, and the codes of JSON-RPC that it answers with. */

export enum ErrorCode {
  Refused = -32000,
  MethodNotFound = -32601,
  InvalidParams = -32602,
  Internal = -32603,
}

/** A tool cannot do what it was asked. The text becomes a result that the model can read. */
export class ToolError extends Error {}

/** A JSON-RPC error: throw it to answer with it, catch it when the host answered with it. */
export class ProtocolError extends Error {
  // Fields, and so enumerable: JSON has all three.
  code: number;
  override message: string;
  data?: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super();
    this.code = code;
    this.message = message;
    this.data = data;
  }
}

export const cancelled = (what: "call" | "task"): ProtocolError =>
  new ProtocolError(ErrorCode.Refused, `The ${what} was cancelled`);

/** Throw unless a condition holds: a `ProtocolError` if there is a code. */
export function must(condition: unknown, text: string, code?: number): asserts condition {
  if (!condition) throw code === undefined ? new Error(text) : new ProtocolError(code, text);
}
