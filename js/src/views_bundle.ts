/**
 * What pages that show Views have in common, with its styles. It is built once, as `views.js`, which
 * `stage.js` and `elements.js` import; the npm package has it as `transom/elements`.
 */
export { Agent, surroundings } from "./agent.js";
export { blobOf, element, saveFile } from "./dom.js";
export { connectElements } from "./elements.js";
export { Link, socketUrl } from "./link.js";
export { Questions } from "./questions.js";
export { inlineSize, View } from "./view.js";
export { Views } from "./views.js";
