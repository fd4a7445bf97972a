/** What little of a page the modules touch that speak with a host. Import it before them. */

type Message = Record<string, any>;
type Listener = (event: { source: unknown; data: unknown }) => unknown;

let listener: Listener | undefined;

/** What was posted to the host. */
export const posted: Message[] = [];

const parent = { postMessage: (message: Message) => void posted.push(message) };

Object.assign(globalThis, {
  parent,
  addEventListener: (_: string, added: Listener) => {
    listener = added;
  },
  removeEventListener: () => {
    listener = undefined;
  },
});

/** Post something to the page, as its host or as somebody else; resolves when it was handled. */
export const receive = async (data: unknown, source: unknown = parent): Promise<void> => {
  await listener?.({ source, data });
};

/** Send a request as the host; the answer. */
export async function ask(method: string, params: object = {}): Promise<Message> {
  const id = `host-${posted.length}-${method}`;
  await receive({ jsonrpc: "2.0", id, method, params });
  return posted.find((message) => message.id === id && !("method" in message)) ?? {};
}

/** The messages of a method that were posted so far. */
export const sent = (method: string): Message[] =>
  posted.filter((message) => message.method === method);
