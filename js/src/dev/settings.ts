/** How the host behaves towards Views, and what is done with the View that is open. */
import { blobOf, element, saveFile } from "../views_bundle.js";
import type { DevHost } from "./host.js";
import { byId, folded, notes } from "./parts.js";

interface Profile {
  name: string;
  title: string;
  sources: Record<string, { title: string; url?: string }>;
  container?: Container | null;
  [field: string]: unknown;
}

const NAMES = ["csp", "approvals", "profile"] as const;

/** What known hosts tell a View of its room. */
export interface Container {
  width?: number;
  maxWidth?: number;
  height?: number;
  maxHeight?: number;
}

const select = (id: string): HTMLSelectElement => byId(id) as HTMLSelectElement;

/** `onContainer` is called with the room that the chosen host has for Views, if that is known. */
export function connectSettings(
  host: DevHost,
  onContainer: (container: Container | undefined) => void,
): void {
  const problem = byId("settings-problem");
  const attempt = async (asked: Promise<unknown>): Promise<unknown> => {
    problem.textContent = "";
    try {
      return await asked;
    } catch (error) {
      problem.textContent = (error as Error).message;
      return undefined;
    }
  };
  const permissions = [
    ...byId("permissions").querySelectorAll<HTMLInputElement>("input[type=checkbox]"),
  ];
  for (const control of [...NAMES.map(select), ...permissions]) {
    control.addEventListener("change", (event) => {
      event.stopPropagation(); // it is nothing that the page tells the View
      const chosen = Object.fromEntries(NAMES.map((each) => [each, select(each).value]));
      const refused = permissions.filter((box) => !box.checked).map((box) => box.value);
      void attempt(host.request("settings", { ...chosen, refused }));
    });
  }
  type Settings = Record<(typeof NAMES)[number], string> & { refused: string[] };
  host.onPanel("settings", (settings: Settings) => {
    for (const name of NAMES) select(name).value = settings[name];
    for (const box of permissions) box.checked = !settings.refused.includes(box.value);
    showProfile();
  });

  let profiles: Profile[] = [];
  const showProfile = (): void => {
    const chosen = profiles.find(({ name }) => name === select("profile").value);
    byId("profile-facts").replaceChildren(...(chosen ? [facts(chosen)] : []));
    onContainer(chosen?.container ?? undefined);
  };
  host.onPanel("profiles", (found: Profile[]) => {
    profiles = found;
    const { value } = select("profile");
    select("profile").replaceChildren(
      element("option", { value: "", text: "none" }),
      ...found.map(({ name, title }) => element("option", { value: name, text: title })),
    );
    select("profile").value = value;
    showProfile();
  });

  byId("teardown").addEventListener("click", () => void attempt(host.request("teardown")));
  byId("screenshot").addEventListener("click", () => {
    void attempt(host.request("screenshot")).then((data) => {
      if (typeof data === "string") saveFile("view.png", blobOf(data, "image/png"));
    });
  });
}

/** What is known of a host, each with its source. */
function facts({ name: _, title, sources, ...fields }: Profile): HTMLElement {
  const rows = Object.entries(fields).filter(([, value]) => value != null);
  return folded(`What is known of ${title}`, () => [
    element(
      "ul",
      { class: "findings" },
      ...rows.map(([field, value]) =>
        element(
          "li",
          {},
          element("span", { class: "code", text: `${field}: ${JSON.stringify(value)}` }),
          ...notes(sources[field]?.title),
        ),
      ),
    ),
  ]);
}
