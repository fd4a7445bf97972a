/**
 * The agents whose Views this page shows, each over a link of its own: the one whose Stage this is,
 * and others of the same user that joined. They do not know of each other.
 */
import { Agent } from "./agent.js";
import { keepJoined, keptJoined } from "./tabs.js";

const MAX_AGENTS = 20;
const GIVE_UP_AFTER = 30_000;
const LOOPBACK = /^http:\/\/127\.0\.0\.1:\d{1,5}$/;

export class Agents {
  #all = new Map();
  #own = null;
  #made = 0;
  #page;
  #onState;
  #onConnected;

  /**
   * @param {{views: Views, questions: Questions, onNotice: (text: string) => void,
   *   onState: (state: string, alone: boolean, why?: string) => void,
   *   onConnected: (agent: Agent) => void}} page
   *   `onState`: the state of all of them: `connected` when all are, `reconnecting` when one
   *   is lost (`alone`: and no other is there), `over` when there is none left.
   */
  constructor({ views, questions, onState, onConnected, onNotice }) {
    this.#page = {
      views,
      questions,
      onState: (agent, why) => this.#changed(agent, why),
      onMessage: ({ do: what, origin, token, text }) => {
        if (what === "join") this.join(origin, token);
        else if (what === "notice") onNotice(text);
      },
    };
    this.#onState = onState;
    this.#onConnected = onConnected;
  }

  /** Start with the agent whose page this is, and with those that had joined before a reload. */
  start(url, token) {
    const before = keptJoined();
    this.#own = this.#add(url, { url, token });
    for (const joined of before) if (joined.url !== url) this.join(joined.origin, joined.token);
    return this.#own;
  }

  /** Show the Views of another agent of this user, too. */
  join(origin, token) {
    if (!LOOPBACK.test(origin) || typeof token !== "string") return;
    const url = `${origin.replace("http", "ws")}/socket`;
    const before = this.#all.get(url);
    if (!before && this.#all.size >= MAX_AGENTS) return;
    before?.link.giveUp("it joined again");
    this.#add(url, { url, token, origin });
    this.#keep();
  }

  #add(url, options) {
    const agent = new Agent(this.#made, options, this.#page);
    this.#made += 1;
    agent.url = url;
    agent.options = options;
    this.#all.set(url, agent);
    return agent;
  }

  /**
   * What a reloaded page needs, stored for this tab only. Not while the page's own agent is
   * disconnected: another program could take its port and serve the page.
   */
  #keep() {
    const joined = [...this].map(({ options }) => options).filter(({ origin }) => origin);
    const safe = this.#own?.state === "connected";
    keepJoined(safe ? joined : []);
  }

  [Symbol.iterator]() {
    return this.#all.values();
  }

  #changed(agent, why) {
    clearTimeout(agent.losing);
    if (agent.state === "over" && this.#all.get(agent.url) === agent) this.#all.delete(agent.url);
    this.#keep();
    if (agent.state === "reconnecting") {
      agent.losing = setTimeout(() => this.#lost(agent), GIVE_UP_AFTER);
    }
    if (agent.state === "connected") this.#onConnected(agent);
    const states = [...this].map(({ state }) => state);
    if (states.length === 0) this.#onState("over", true, why);
    else if (states.includes("reconnecting")) {
      this.#onState("reconnecting", !states.includes("connected"));
    } else if (states.includes("connected")) this.#onState("connected", false);
  }

  /** While there are other agents, the wait for one that does not answer is limited. */
  #lost(agent) {
    if ([...this].some(({ state }) => state === "connected")) agent.link.giveUp("it is gone");
    else agent.losing = setTimeout(() => this.#lost(agent), GIVE_UP_AFTER);
  }
}
