// Where is a key, and why?

import { ask } from "./ask.js";
import { model } from "./model.js";
import { eventText } from "./events.js";
import { dateOf, facts, make, rangeText, swatch } from "./format.js";

const form = document.getElementById("search"), input = document.getElementById("key");
const why = document.getElementById("why"), out = document.getElementById("explanation");
let found = () => {}, newest = 0;

// begin has keys explained. Whoever is told is called with each key that was found.
export function begin(told) {
  found = told;
  form.addEventListener("submit", event => {
    event.preventDefault();
    explain(input.value);
  });
}

// forget leaves nothing of what was explained: it was of another namespace.
export function forget() {
  newest++;
  say("", false);
}

function say(text, bad) {
  why.textContent = text;
  why.className = bad ? "bad" : "";
  out.replaceChildren();
}

export async function explain(key) {
  input.value = key;
  const mine = ++newest, namespace = model.namespace;
  try {
    const answer = await ask(`explain?${new URLSearchParams({ namespace, key })}`);
    if (mine !== newest) return; // another was asked for meanwhile
    show(answer);
    found(BigInt("0x" + answer.key));
  } catch (error) {
    if (mine === newest) say(`It cannot be said: ${error.message}`, true);
  }
}

function show(e) {
  say(e.why, false);
  out.replaceChildren(
    facts([
      ["key", make("span", { class: "key" }, e.key + (e.name ? `, the hash of ${JSON.stringify(e.name)}` : ""))],
      ["range", make("span", { class: "key" }, rangeText(e.start, e.limit))],
      ["owner", e.owner ? make("span", {}, swatch(model.owner(e.owner)), `${e.owner} at ${e.addr}`) : make("span", { class: "bad" }, "nobody")],
      ["generation", e.owner ? e.generation : "none"],
      ["as of", `LSN ${e.lsn}`],
    ]),
    make("h3", {}, "Its history"),
    make("ol", { class: "history" }, ...e.history.map(h =>
      make("li", {}, make("time", { dateTime: new Date(h.at).toISOString() }, dateOf(h.at)), `: ${eventText(h)}`))),
    make("p", { class: "quiet" }, e.history.length === 0 ? "Nothing is remembered." : e.forgotten ? "What was before is no longer remembered, or not shown." : "That is all there was."));
}
