/**
 * The page's end of the link to the host: numbered frames that survive a dropped socket, so that
 * nothing is lost and nothing comes twice. The host's end is `transom.web.link`.
 */
const ACK_EVERY = 32;
const ACK_SOON = 50;
const RETRY = [100, 200, 500, 1000, 2000];

export const CONTROL = "-";

export class Link {
  #url;
  #token;
  #onFrame;
  #onState;
  #socket = null;
  #page = null;
  #sent = 0;
  #received = 0;
  #told = 0;
  #kept = [];
  #ackTimer = 0;
  #tries = 0;
  #over = false;

  /**
   * @param {{url: string, token: string, onFrame: (view: string, text: string) => void,
   *          onState: (state: "connected" | "reconnecting" | "over", why?: string) => void}} options
   */
  constructor({ url, token, onFrame, onState }) {
    this.#url = url;
    this.#token = token;
    this.#onFrame = onFrame;
    this.#onState = onState;
    this.#connect();
  }

  send(view, text) {
    if (this.#over) return;
    this.#sent += 1;
    const frame = `${this.#sent} ${view}\n${text}`;
    this.#kept.push([this.#sent, frame]);
    if (this.#socket?.ready) this.#socket.send(frame);
  }

  /** For tests: drop the socket, as a network would. */
  drop() {
    this.#socket?.close();
  }

  #connect() {
    const socket = new WebSocket(this.#url);
    this.#socket = socket;
    socket.ready = false;
    socket.onopen = () => {
      const hello = { token: this.#token, page: this.#page, received: this.#received };
      socket.send(JSON.stringify(hello));
    };
    socket.onmessage = ({ data }) => {
      if (!socket.ready) this.#welcomed(socket, JSON.parse(data));
      else this.#take(data);
    };
    socket.onclose = ({ code }) => {
      if (this.#socket !== socket) return;
      this.#socket = null;
      if (code === 4401 || code === 4403) this.#end("The host does not know this page.");
      else if (!this.#over) this.#again();
    };
  }

  #again() {
    this.#onState("reconnecting");
    const wait = RETRY[Math.min(this.#tries, RETRY.length - 1)];
    this.#tries += 1;
    setTimeout(() => this.#connect(), wait);
  }

  #welcomed(socket, { page, received, resumed }) {
    if (this.#page !== null && !resumed) {
      this.#end("The host has moved on.");
      return;
    }
    this.#tries = 0;
    this.#page = page;
    socket.ready = true;
    this.#forget(received);
    for (const [, frame] of this.#kept) socket.send(frame);
    this.#onState("connected");
  }

  #take(data) {
    const end = data.indexOf("\n");
    if (end < 0) {
      this.#forget(Number(data));
      return;
    }
    const [number, view] = data.slice(0, end).split(" ");
    if (Number(number) !== this.#received + 1) return; // sent again: our word of it was lost
    this.#received += 1;
    this.#acknowledge();
    this.#onFrame(view, data.slice(end + 1));
  }

  #forget(number) {
    while (this.#kept.length && this.#kept[0][0] <= number) this.#kept.shift();
  }

  #acknowledge() {
    if (this.#received - this.#told >= ACK_EVERY) this.#ack();
    else this.#ackTimer ||= setTimeout(() => this.#ack(), ACK_SOON);
  }

  #ack() {
    clearTimeout(this.#ackTimer);
    this.#ackTimer = 0;
    this.#told = this.#received;
    if (this.#socket?.ready) this.#socket.send(String(this.#received));
  }

  #end(why) {
    this.#over = true;
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
    this.#onState("over", why);
  }
}
