/**
 * The page's end of the link to the host: numbered frames that survive a dropped socket, so that
 * no message is lost or delivered twice. The host's end is `transom.web.page_link`.
 */
import type { Hello, Welcome } from "./messages.js";

const ACK_EVERY = 32;
const ACK_SOON = 50;
const RETRY = [100, 200, 500, 1000, 2000];
const ASK_AFTER = 900; // of silence: is the host there?
const LOST_AFTER = 900; // without an answer to that
const DROP_AFTER = 8000; // of being lost: a new socket is tried
const LATE = 500; // for a timer: the page itself was busy or asleep
const MAX_WAITING = 96 * 1024 * 1024; // characters of one View

// Close codes of sockets; the same as in `transom.web.asgi`.
const LEAVING = 4001;
const UNKNOWN = [4401, 4403];
const OVER = 4410;

export const CONTROL = "-";

export type LinkState = "connected" | "reconnecting" | "over";

/** What a link tells the page. */
export interface LinkEvents {
  frame: (view: string, text: string) => void;
  state: (state: LinkState, why?: string) => void;
  /** The host does not know this page any more and starts over with it. */
  fresh: () => void;
  /** A View sends more than the host reads. */
  flood: (view: string) => void;
}

type Sent = [number: number, frame: string, view: string];

type Timer = ReturnType<typeof setTimeout> | undefined;

/** Where the socket of the host is: beside its other files. */
export function socketUrl(folder: string | URL): string {
  const url = new URL("socket", folder);
  url.protocol = url.protocol.replace("http", "ws");
  return url.href;
}

export class Link {
  readonly #url: string;
  readonly #token: string;
  readonly #on: LinkEvents;
  #socket: WebSocket | null = null;
  #isWelcome = false; // the host has answered on this socket
  #page: string | null = null;
  #sent = 0;
  #received = 0;
  #acknowledged = 0;
  #kept: Sent[] = []; // what was sent, up to `#forgotten` of which the host has
  #forgotten = 0;
  readonly #waiting = new Map<string, number>();
  #ackTimer: Timer;
  #retryTimer: Timer;
  #tries = 0;
  #over = false;
  readonly #ending = new AbortController(); // aborted when it is over
  #silenceTimer: Timer;
  #silent = false;

  constructor({ url, token, on }: { url: string; token: string; on: LinkEvents }) {
    this.#url = url;
    this.#token = token;
    this.#on = on;
    this.#watchPage();
    this.#connect();
  }

  send(view: string, text: string): void {
    if (this.#over) return;
    this.#sent += 1;
    const frame = `${this.#sent} ${view}\n${text}`;
    this.#kept.push([this.#sent, frame, view]);
    const waiting = (this.#waiting.get(view) ?? 0) + frame.length;
    this.#waiting.set(view, waiting);
    this.#openSocket?.send(frame);
    if (waiting > MAX_WAITING && view !== CONTROL) {
      this.#discard(view);
      this.#on.flood(view);
    }
  }

  /** The socket, if the host listens on it. */
  get #openSocket(): WebSocket | undefined {
    const socket = this.#isWelcome ? this.#socket : null;
    return socket?.readyState === WebSocket.OPEN ? socket : undefined;
  }

  /** Drop what a View sent, but keep the numbers of its frames. */
  #discard(view: string): void {
    for (const entry of this.#kept) {
      if (entry[2] === view) entry[1] = `${entry[0]} ${CONTROL}\n{}`;
    }
    this.#waiting.delete(view);
  }

  /** The host does not wait for a page that is closed, nor the page for a network that is back. */
  #watchPage(): void {
    const { signal } = this.#ending;
    const hurry = (): void => this.hurry();
    addEventListener("pagehide", () => this.#socket?.close(LEAVING, "leaving"), { signal });
    addEventListener("online", hurry, { signal });
    document.addEventListener("visibilitychange", hurry, { signal });
  }

  /** Drop the socket, as a network would. */
  drop(): void {
    this.#socket?.close();
  }

  /** End the link from this side. */
  giveUp(why: string): void {
    if (this.#over) return;
    clearTimeout(this.#retryTimer);
    this.#retryTimer = undefined;
    const socket = this.#socket;
    this.#socket = null;
    socket?.close(LEAVING, "leaving");
    this.#end(why);
  }

  /** Retry or ping now, instead of waiting for the timer. */
  hurry(): void {
    if (this.#retryTimer) {
      clearTimeout(this.#retryTimer);
      this.#connect();
    } else if (!this.#silent) this.#askWhetherThere();
  }

  #connect(): void {
    this.#retryTimer = undefined;
    const socket = new WebSocket(this.#url);
    this.#socket = socket;
    this.#isWelcome = false;
    socket.onopen = () => {
      const hello: Hello = { token: this.#token, page: this.#page, received: this.#received };
      socket.send(JSON.stringify(hello));
    };
    socket.onmessage = ({ data }: MessageEvent<string>) => {
      if (this.#socket !== socket) return;
      this.#restartSilence();
      if (this.#isWelcome) this.#take(data);
      else this.#welcomed(socket, JSON.parse(data) as Welcome);
    };
    socket.onclose = ({ code, reason }) => {
      if (this.#socket !== socket) return;
      this.#socket = null;
      clearTimeout(this.#silenceTimer);
      if (UNKNOWN.includes(code)) this.#end("unknown");
      else if (code === OVER) this.#end(reason);
      else if (!this.#over) this.#again();
    };
  }

  // --- silence: a host that hangs, or a network that drops everything, closes no socket ---------

  #restartSilence(): void {
    if (this.#silent) this.#on.state("connected");
    this.#silent = false;
    this.#inSilence(ASK_AFTER, () => this.#askWhetherThere());
  }

  /** Ping: the host answers a repeated acknowledgement with one. */
  #askWhetherThere(): void {
    if (!this.#socket || !this.#isWelcome) return;
    this.#ack();
    this.#inSilence(LOST_AFTER, () => this.#lost());
  }

  #lost(): void {
    this.#silent = true;
    this.#on.state("reconnecting");
    this.#inSilence(DROP_AFTER, () => {
      const socket = this.#socket;
      this.#socket = null; // its close event may take long
      socket?.close();
      this.#again();
    });
  }

  /** Call `act` after so long without a message, unless the page itself was busy or hidden. */
  #inSilence(wait: number, act: () => void): void {
    const due = performance.now() + wait;
    clearTimeout(this.#silenceTimer);
    this.#silenceTimer = setTimeout(() => {
      if (document.hidden) this.#inSilence(wait, act);
      else if (performance.now() > due + LATE) this.#askWhetherThere();
      else act();
    }, wait);
  }

  #again(): void {
    this.#silent = false;
    this.#on.state("reconnecting");
    const wait = RETRY[Math.min(this.#tries, RETRY.length - 1)]!;
    this.#tries += 1;
    this.#retryTimer = setTimeout(() => this.#connect(), wait);
  }

  #welcomed(socket: WebSocket, { page, received, resumed }: Welcome): void {
    if (this.#page !== null && !resumed) {
      this.#sent = this.#received = this.#acknowledged = 0;
      this.#kept = [];
      this.#forgotten = 0;
      this.#waiting.clear();
      this.#on.fresh();
    }
    this.#tries = 0;
    this.#page = page;
    this.#isWelcome = true;
    this.#forget(received);
    for (const [, frame] of this.#kept.slice(this.#forgotten)) socket.send(frame);
    this.#on.state("connected");
  }

  #take(data: string): void {
    const end = data.indexOf("\n");
    if (end < 0) {
      this.#forget(Number(data));
      return;
    }
    const space = data.indexOf(" ");
    if (Number(data.slice(0, space)) !== this.#received + 1) return; // sent again: we have it
    this.#received += 1;
    this.#acknowledge();
    this.#on.frame(data.slice(space + 1, end), data.slice(end + 1));
  }

  /** Amortised: a View may have sent a million small messages, so do not shift the array for each. */
  #forget(number: number): void {
    for (;;) {
      const oldest = this.#kept[this.#forgotten];
      if (!oldest || oldest[0] > number) break;
      const [, frame, view] = oldest;
      this.#forgotten += 1;
      const left = (this.#waiting.get(view) ?? 0) - frame.length;
      if (left > 0) this.#waiting.set(view, left);
      else this.#waiting.delete(view);
    }
    if (this.#forgotten * 2 >= this.#kept.length) {
      this.#kept.splice(0, this.#forgotten);
      this.#forgotten = 0;
    }
  }

  #acknowledge(): void {
    // In a hidden page, timers may be delayed by a minute.
    if (this.#received - this.#acknowledged >= ACK_EVERY || document.hidden) this.#ack();
    else {
      this.#ackTimer ??= setTimeout(() => this.#ack(), ACK_SOON);
    }
  }

  #ack(): void {
    clearTimeout(this.#ackTimer);
    this.#ackTimer = undefined;
    this.#acknowledged = this.#received;
    this.#openSocket?.send(String(this.#received));
  }

  #end(why: string): void {
    this.#over = true;
    this.#ending.abort();
    clearTimeout(this.#silenceTimer);
    clearTimeout(this.#ackTimer);
    this.#on.state("over", why);
  }
}
