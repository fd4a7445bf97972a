/** The session of `transom dev`, as its page uses it: panels, logs and requests over one link. */
import type { DevMessage, StageMessage } from "../messages.js";
import { Agent, type Questions, type Views } from "../views_bundle.js";

export interface HostPage {
  readonly views: Views;
  readonly questions: Questions;
  onState: (state: Agent<Message>["state"], why?: string) => void;
  onNotice: (text: string) => void;
}

type Message = DevMessage | StageMessage;
type Show = (value: any) => void;
type Add = (entries: any[]) => void;

/** Show something; what goes wrong with it ends nothing else. */
function apart<Value>(show: (value: Value) => void, value: Value): void {
  try {
    show(value);
  } catch (error) {
    reportError(error);
  }
}

export class DevHost {
  readonly agent: Agent<Message>;
  readonly #panels = new Map<string, Show[]>();
  readonly #logs = new Map<string, { add: Add; clear: () => void }>();
  readonly #waiting = new Map<number, { resolve: Show; reject: (error: Error) => void }>();
  #asked = 0;

  constructor(address: { url: string; token: string }, page: HostPage) {
    this.agent = new Agent<Message>(0, address, {
      views: page.views,
      questions: page.questions,
      onState: ({ state }, why) => page.onState(state, why),
      onFresh: () => {
        // What was asked for was asked of a session that does not know this page.
        for (const { reject } of this.#waiting.values()) reject(new Error("The session was lost."));
        this.#waiting.clear();
        for (const { clear } of this.#logs.values()) clear();
      },
      onMessage: (message) => this.#receive(message, page),
    });
  }

  #receive(message: Message, page: HostPage): void {
    switch (message.do) {
      case "panel":
        for (const show of this.#panels.get(message.name) ?? []) apart(show, message.value);
        break;
      case "log": {
        const log = this.#logs.get(message.name);
        if (message.clear) log?.clear();
        if (log && message.entries.length > 0) apart(log.add, message.entries);
        break;
      }
      case "reply": {
        const waiting = this.#waiting.get(message.id);
        this.#waiting.delete(message.id);
        if (message.error !== undefined) waiting?.reject(new Error(message.error));
        else waiting?.resolve(message.result);
        break;
      }
      case "notice":
        page.onNotice(message.text);
        break;
      case "join": // this page shows one session
        break;
    }
  }

  /** Call `show` with each value of a panel. */
  onPanel(name: string, show: Show): void {
    this.#panels.set(name, [...(this.#panels.get(name) ?? []), show]);
  }

  /** Call `add` with new entries of a log, and `clear` when the old ones do not count any more. */
  onLog(name: string, add: Add, clear: () => void): void {
    this.#logs.set(name, { add, clear });
  }

  /** Have the session do something; rejects with the reason if it does not. */
  request(name: string, about: object = {}): Promise<any> {
    this.#asked += 1;
    const id = this.#asked;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.agent.notify({ do: "request", request: { id, name, arguments: about } });
    });
  }
}
