import type { Answer, Question } from "./messages.js";
/** What `approval` has: the question, and how to answer it. */
export type Approval = Question & {
    answer: (value: Answer) => void;
    /** Aborted when the answer is not needed any more. */
    withdrawn: AbortSignal;
};
/** What `problem` has. */
export interface ViewProblem {
    /**
     * A View could not be shown, or has not started (`failed`), or is gone or busy for long (`unresponsive`); the
     * connection was lost (`connection`) or has ended for good (`over`).
     */
    kind: "failed" | "unresponsive" | "connection" | "over";
    message: string;
    /** The View; undefined if it is the connection. */
    view?: string;
}
/** The details of the events, by name. */
export interface ViewEvents {
    opened: {
        view: string;
        server?: string;
        tool?: string;
    };
    closed: {
        view: string;
        reason: string;
    };
    approval: Approval;
    problem: ViewProblem;
    recovered: Omit<ViewProblem, "message">;
}
declare global {
    interface HTMLElementTagNameMap {
        "transom-view": HTMLElement;
        "transom-stage": HTMLElement;
    }
    interface GlobalEventHandlersEventMap {
        opened: CustomEvent<ViewEvents["opened"]>;
        closed: CustomEvent<ViewEvents["closed"]>;
        approval: CustomEvent<ViewEvents["approval"]>;
        problem: CustomEvent<ViewEvents["problem"]>;
        recovered: CustomEvent<ViewEvents["recovered"]>;
    }
}
/**
 * Define the elements, and connect them with the `WebViews` at an address, such as "/transom". Without
 * one it is the folder of this script. A page has one connection: a second call for the same address
 * does nothing, and for another one it throws.
 */
export declare function connectElements(address?: string | URL): void;
