/** The errors of a View, and the codes of JSON-RPC that it answers with. */
export declare enum ErrorCode {
    Refused = -32000,
    MethodNotFound = -32601,
    InvalidParams = -32602,
    Internal = -32603
}
/** A tool cannot do what it was asked. The text becomes a result that the model can read. */
export declare class ToolError extends Error {
}
/** A JSON-RPC error: throw it to answer with it, catch it when the host answered with it. */
export declare class ProtocolError extends Error {
    code: number;
    message: string;
    data?: unknown;
    constructor(code: number, message: string, data?: unknown);
}
export declare const cancelled: (what: "call" | "task") => ProtocolError;
/** Throw unless a condition holds: a `ProtocolError` if there is a code. */
export declare function must(condition: unknown, text: string, code?: number): asserts condition;
