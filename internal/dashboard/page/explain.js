// Where is a key, and why?

import { model } from "./model.js";
import { eventText } from "./events.js";
import { dateOf, facts, make, rangeText, swatch } from "./format.js";

const form = document.getElementById("search"), input = document.getElementById("key"), out = document.getElementById("explanation");
let found = () => {};

// begin has keys explained. Whoever is told is called with each key that was found.
export function begin(told) {
  found = told;
  form.addEventListener("submit", event => {
    event.preventDefault();
    explain(input.value);
  });
}

export async function explain(key) {
  input.value = key;
  const query = new URLSearchParams({ namespace: model.namespace, key });
  try {
    const response = await fetch(`api/explain?${query}`);
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error);
    show(answer);
    found(BigInt("0x" + answer.key));
  } catch (error) {
    out.replaceChildren(make("p", { class: "bad" }, `It cannot be said: ${error.message}`));
  }
}

function show(e) {
  out.replaceChildren(
    make("p", { id: "why" }, e.why),
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
