/** How the last call went: its progress, its result as a person and as a model reads it. */
import { isObject, type JsonObject } from "../json.js";
import { element } from "../views_bundle.js";
import { badge, folded, jsonBlock, lasted, notes, textBlock } from "./parts.js";
import { outcomeOf, type ShownCall } from "./tools.js";

interface Block {
  type?: unknown;
  text?: unknown;
  mimeType?: unknown;
  data?: unknown;
}

const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/** A block of content; pictures are shown, everything else that is not text is named. */
function shown(block: Block): HTMLElement {
  const { type, text, mimeType, data } = block;
  if (type === "text" && typeof text === "string") return textBlock(text, "Text");
  const isPicture = type === "image" && typeof mimeType === "string" && PICTURES.includes(mimeType);
  if (isPicture && typeof data === "string" && !data.includes("…")) {
    return element("img", { src: `data:${mimeType};base64,${data}`, alt: "Image" });
  }
  return jsonBlock(block, typeof type === "string" ? type : "Content");
}

export function showCall(place: HTMLElement, call: ShownCall): void {
  const { tool, state, progress, total, message, ms, result, error, bytes, output } = call;
  const { words: word, kind } = outcomeOf(call);
  const heading = element(
    "p",
    { class: "row", role: "status" },
    badge(word, kind),
    element("bdi", { class: "code", text: `${tool} ${JSON.stringify(call.arguments)}` }),
    ...lasted(ms),
  );
  const parts: Node[] = [heading];
  if (state === "running") {
    const bar = element("progress", { "aria-label": `Progress of ${tool}` });
    if (typeof progress === "number" && typeof total === "number") {
      bar.max = total;
      bar.value = progress;
    }
    const words = typeof progress === "number" ? `${progress}${total ? ` of ${total}` : ""}` : "";
    parts.push(
      element("p", { class: "row" }, bar, element("span", { text: `${words} ${message ?? ""}` })),
    );
  }
  if (bytes !== undefined) parts.push(...notes(`${bytes} bytes: shown in part.`));
  if (error !== undefined) parts.push(element("p", { class: "problem", text: error }));
  if (output) {
    parts.push(
      element("h4", { text: "What the server wrote to its standard error" }),
      textBlock(output, "Its output"),
    );
  }
  if (result) parts.push(...resultParts(result));
  place.replaceChildren(...parts);
}

export function resultParts(result: JsonObject): Node[] {
  const content: unknown[] = Array.isArray(result.content) ? result.content : [];
  const parts: Node[] = content.map((block) =>
    isObject(block) ? shown(block) : jsonBlock(block, "Content"),
  );
  if (result.structuredContent !== undefined) {
    parts.push(
      element("h4", { text: "structuredContent" }),
      jsonBlock(result.structuredContent, "structuredContent"),
    );
  }
  parts.push(folded("The whole result", () => [jsonBlock(result, "The whole result")]));
  return parts;
}
