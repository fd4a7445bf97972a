/** The chat: messages, Views beside the messages that opened them, and questions in the chat's own way. */
const $ = (id) => document.getElementById(id);
const messages = $("messages");
const IDEAS = ["Show the open orders", "Select A-1041", "What is selected?", "Play music", "Play greensleeves"];

function element(tag, { text, ...attributes } = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  made.append(...children);
  return made;
}

const send = (path, body) =>
  fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

// --- messages ---------------------------------------------------------------------------------

let answering = null; // the message that is being written

function addMessage({ role, text, parts = [] }) {
  const message = element("article", { class: role });
  if (text) message.append(element("p", { text }));
  messages.append(message);
  for (const part of parts) addPart(message, part);
  return message;
}

function addPart(message, { type, text, tool, arguments: given, view }) {
  if (type === "text") message.append(element("p", { text }));
  else if (type === "call") {
    const shown = Object.keys(given).length ? `${tool} ${JSON.stringify(given)}` : tool;
    message.append(element("p", { class: "call", text: shown }));
  } else if (type === "view" && !message.querySelector(`transom-view[view="${CSS.escape(view)}"]`)) {
    message.append(element("transom-view", { view }));
  }
  message.scrollIntoView({ block: "end", behavior: "smooth" });
}

async function say(text) {
  addMessage({ role: "user", text });
  answering = addMessage({ role: "assistant" });
  answering.toggleAttribute("data-busy", true);
  $("write").inert = true;
  try {
    const { body } = await send("/messages", { text });
    let rest = "";
    for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop();
      for (const line of lines) addPart(answering, JSON.parse(line));
    }
  } catch {
    addPart(answering, { type: "text", text: "The connection was lost." });
  }
  answering.toggleAttribute("data-busy", false);
  answering = null;
  $("write").inert = false;
  $("write").text.focus();
}

// --- Views ------------------------------------------------------------------------------------

/** A View wants a place: it is put where the answer that opens it is being written. */
document.addEventListener("opened", ({ detail: { view } }) => {
  if (answering) addPart(answering, { type: "view", view });
});

/** The user is asked in the conversation, below the View that it is about. */
document.addEventListener("approval", (event) => {
  const { kind, tool, server, arguments: given, answer, withdrawn } = event.detail;
  if (kind !== "approve") return; // the rest: Transom's own card
  event.preventDefault();
  const card = element(
    "div",
    { class: "approval", role: "alertdialog", "aria-label": `May ${tool} run?` },
    element("p", {}, "May ", element("b", { text: tool }), ` of ${server} run?`),
    element("pre", { text: JSON.stringify(given, null, 2) }),
  );
  for (const [text, value] of [["Allow", "allow"], ["Always allow", "always"], ["Refuse", "deny"]]) {
    const button = element("button", { type: "button", text, class: value === "allow" ? "main" : "" });
    button.addEventListener("click", () => {
      answer(value);
      card.remove();
    });
    button.disabled = true; // a click that was meant for something else allows nothing
    setTimeout(() => {
      button.disabled = false;
    }, 700);
    card.append(button);
  }
  withdrawn.addEventListener("abort", () => card.remove());
  (answering ?? event.target.parentElement).append(card);
  card.scrollIntoView({ block: "nearest", behavior: "smooth" });
});

document.addEventListener("problem", ({ detail: { kind, message } }) => {
  if (kind === "connection" || kind === "over") $("state").textContent = message;
});

document.addEventListener("recovered", ({ detail: { kind } }) => {
  if (kind === "connection") $("state").textContent = "";
});

// --- the page ---------------------------------------------------------------------------------

$("theme").addEventListener("click", () => {
  const root = document.documentElement;
  root.dataset.theme = getComputedStyle(root).getPropertyValue("--dark").trim() === "1" ? "light" : "dark";
});

$("sign-in").addEventListener("submit", async (event) => {
  event.preventDefault();
  await send("/sign-in", { name: event.target.name.value });
  location.reload();
});

$("sign-out").addEventListener("click", async () => {
  await send("/sign-out", {});
  location.reload();
});

$("write").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = event.target.text.value.trim();
  event.target.reset();
  if (text) say(text);
});

for (const idea of IDEAS) {
  const button = element("button", { type: "button", text: idea });
  button.addEventListener("click", () => say(idea));
  $("ideas").append(button);
}

const answer = await fetch("/conversation");
if (answer.ok) {
  const { user, messages: before } = await answer.json();
  await import("/transom/elements.js"); // not before somebody is signed in
  $("who").textContent = user;
  for (const id of ["messages", "write", "sign-out"]) $(id).hidden = false;
  for (const message of before) addMessage(message);
} else $("sign-in").hidden = false;
