/**
 * The agents whose Views this page shows, each over a link of its own: the one whose Stage this is,
 * and others of the same user that joined. They do not know of each other.
 */
import type { AgentPage } from "./agent.js";
import type { LinkState } from "./link.js";
import type { StageMessage } from "./messages.js";
import { keepJoined, keptJoined, type Joined } from "./tabs.js";
import { Agent } from "./views_bundle.js";

const MAX_AGENTS = 20;
const GIVE_UP_AFTER = 30_000;
const LOOPBACK = /^http:\/\/127\.0\.0\.1:\d{1,5}$/;

export type StageAgent = Agent<StageMessage>;

/** What the page of a Stage does with what its agents say and become. */
export interface AgentsPage extends Pick<AgentPage<StageMessage>, "views" | "questions"> {
  /**
   * The state of all of them: `connected` when all are, `reconnecting` when one is lost (`alone`:
   * and no other is there), `over` when there is none left.
   */
  onState: (state: LinkState, alone: boolean, why?: string) => void;
  onConnected: (agent: StageAgent) => void;
  onNotice: (text: string) => void;
}

/** An agent, and the timer that waits for one that is lost. */
interface Member {
  readonly agent: StageAgent;
  readonly url: string;
  /** What a reloaded page needs to have it again; undefined for the page's own. */
  readonly joined?: Joined | undefined;
  losing?: ReturnType<typeof setTimeout>;
}

export class Agents {
  readonly #members = new Map<string, Member>();
  readonly #page: AgentsPage;
  readonly #agentPage: AgentPage<StageMessage>;
  #own: StageAgent | undefined;
  #made = 0;

  constructor(page: AgentsPage) {
    this.#page = page;
    this.#agentPage = {
      views: page.views,
      questions: page.questions,
      onState: (agent, why) => this.#onState(agent, why),
      onMessage: (message) => {
        switch (message.do) {
          case "join":
            this.join(message.origin, message.token);
            break;
          case "notice":
            page.onNotice(message.text);
            break;
        }
      },
    };
  }

  /** Start with the agent whose page this is, and with those that had joined before a reload. */
  start(url: string, token: string): StageAgent {
    const before = keptJoined();
    const own = this.#add(url, token);
    this.#own = own;
    for (const joined of before) {
      if (joined.url !== url) this.join(joined.origin, joined.token);
    }
    return own;
  }

  /** Show the Views of another agent of this user, too. */
  join(origin: string, token: string): void {
    if (!LOOPBACK.test(origin) || typeof token !== "string") return;
    const url = `${origin.replace("http", "ws")}/socket`;
    const before = this.#members.get(url);
    if (!before && this.#members.size >= MAX_AGENTS) return;
    before?.agent.link.giveUp("it joined again");
    this.#add(url, token, { url, token, origin });
    this.#keep();
  }

  #add(url: string, token: string, joined?: Joined): StageAgent {
    const agent = new Agent(this.#made, { url, token }, this.#agentPage);
    this.#made += 1;
    this.#members.set(url, { agent, url, joined });
    return agent;
  }

  /**
   * What a reloaded page needs, stored for this tab only. Not while the page's own agent is
   * disconnected: another program could take its port and serve the page.
   */
  #keep(): void {
    const isSafe = this.#own?.state === "connected";
    const joined = [...this.#members.values()].flatMap((member) => member.joined ?? []);
    keepJoined(isSafe ? joined : []);
  }

  *[Symbol.iterator](): Iterator<StageAgent> {
    for (const { agent } of this.#members.values()) yield agent;
  }

  #onState(agent: StageAgent, why?: string): void {
    const member = [...this.#members.values()].find((each) => each.agent === agent);
    if (member) clearTimeout(member.losing);
    if (member && agent.state === "over") this.#members.delete(member.url);
    this.#keep();
    if (member && agent.state === "reconnecting") this.#waitFor(member);
    if (agent.state === "connected") this.#page.onConnected(agent);
    const states = [...this].map(({ state }) => state);
    const { onState } = this.#page;
    if (states.length === 0) onState("over", true, why);
    else if (states.includes("reconnecting")) {
      onState("reconnecting", !states.includes("connected"));
    } else if (states.includes("connected")) onState("connected", false);
  }

  /** While there are other agents, the wait for one that does not answer is limited. */
  #waitFor(member: Member): void {
    member.losing = setTimeout(() => {
      const isAlone = ![...this].some(({ state }) => state === "connected");
      if (isAlone) this.#waitFor(member);
      else member.agent.link.giveUp("it is gone");
    }, GIVE_UP_AFTER);
  }
}
