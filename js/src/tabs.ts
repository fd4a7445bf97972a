/**
 * The tabs in which this page is open. Only a tab that has the token gets in. Another one, opened at
 * the address without it, can have it from a tab of the same browser that is in: no other origin,
 * and so no View, can listen to them.
 */
const TOKEN = "transom-token";
const JOINED = "transom-joined";
const ANSWER_WITHIN = 1000;

/** Where another agent of the user is, whose Views this page shows too. */
export interface Joined {
  url: string;
  token: string;
  origin: string;
}

/** What tabs tell each other: a tab asks, one that is in answers with what it has stored. */
type TabMessage = { do: "ask" } | { do: "kept"; kept: Record<string, string | null> };

const channel = new BroadcastChannel(`transom ${location.pathname}`);

/** The token comes in the fragment, which no server or View ever sees, and leaves it at once. */
export function takeToken(): string {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const given = fragment.get("token");
  if (given) {
    sessionStorage.setItem(TOKEN, given);
    fragment.delete("token");
    const rest = fragment.toString();
    history.replaceState(null, "", rest ? `${location.pathname}#${rest}` : location.pathname);
  }
  return given ?? sessionStorage.getItem(TOKEN) ?? "";
}

/** What this tab needs after a reload, stored for this tab only. */
export function keepJoined(joined: Joined[]): void {
  sessionStorage.setItem(JOINED, JSON.stringify(joined));
}

export function keptJoined(): Joined[] {
  try {
    return JSON.parse(sessionStorage.getItem(JOINED) ?? "[]") as Joined[];
  } catch {
    return [];
  }
}

/**
 * Let other tabs have it. `isIn` says whether this tab is in: nobody else can have taken the agent's
 * port, and with it this origin, as long as it is.
 */
export function letOthersIn(isIn: () => boolean): void {
  channel.addEventListener("message", ({ data }: MessageEvent<TabMessage>) => {
    if (data.do !== "ask" || !isIn()) return;
    const kept = Object.fromEntries(
      [TOKEN, JOINED].map((key) => [key, sessionStorage.getItem(key)]),
    );
    channel.postMessage({ do: "kept", kept });
  });
}

/** Find a connected tab. Returns a function that moves the Views here, or null. */
export function findOther(): Promise<(() => void) | null> {
  return new Promise((resolve) => {
    const late = setTimeout(() => resolve(null), ANSWER_WITHIN);
    channel.addEventListener("message", function listen({ data }: MessageEvent<TabMessage>) {
      if (data.do !== "kept") return;
      clearTimeout(late);
      channel.removeEventListener("message", listen);
      resolve(() => {
        for (const [key, value] of Object.entries(data.kept))
          sessionStorage.setItem(key, value ?? "");
        location.reload();
      });
    });
    channel.postMessage({ do: "ask" });
  });
}
