// Where is a key, and why?

import { ask } from "./ask.js";
import { model } from "./model.js";
import { changeText } from "./events.js";
import { dateOf, facts, keyOf, make, rangeText, reasonText, swatch } from "./format.js";

const form = document.getElementById("search"), input = document.getElementById("key");
const answer = document.getElementById("why"), out = document.getElementById("explanation");
let found = () => {}, newest = 0;

// begin starts the form. It calls told with each key that was found.
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
  answer.textContent = text;
  answer.className = bad ? "bad" : "";
  out.replaceChildren();
}

export async function explain(key) {
  input.value = key;
  const mine = ++newest, namespace = model.namespace;
  try {
    const e = await ask(`explain?${new URLSearchParams({ namespace, key })}`);
    if (mine !== newest) return; // another was asked for meanwhile
    show(e);
    found(keyOf(e.found.key));
  } catch (error) {
    if (mine === newest) say(`No explanation: ${error.message}`, true);
  }
}

function show(e) {
  const { found, history } = e;
  say(why(e), false);
  out.replaceChildren(
    facts([
      ["key", make("span", { class: "key" }, found.key + (e.name ? `, the hash of ${JSON.stringify(e.name)}` : ""))],
      ["range", make("span", { class: "key" }, rangeText(found))],
      ["owner", found.owner ? make("span", {}, swatch(model.owner(found.owner)), `${found.owner} at ${found.addr}`) : make("span", { class: "bad" }, "none")],
      ["generation", found.owner ? found.generation : "none"],
      ["as of", `LSN ${found.lsn}`],
    ]),
    make("h3", {}, "Its history"),
    make("ol", { class: "history" }, ...history.entries.map(c =>
      make("li", {}, make("time", { dateTime: new Date(c.at).toISOString() }, dateOf(c.at)), `: ${changeText(c)}`))),
    make("p", { class: "quiet" }, history.entries.length === 0 ? "Nothing is remembered."
      : history.truncated || history.more ? "What was before is no longer remembered, or not shown." : "That is all there was."));
}

// why explains the current owner of a key by its history.
export function why({ policy: name, found: { owner }, history: { entries } }) {
  const policy = name ? `the policy ${name}` : "the policy of the namespace";
  const merged = c => c.kind === "moved" && c.from === c.owner;
  const first = entries.findIndex(c => !merged(c)), past = first < 0 ? [] : entries.slice(first);
  const joint = past.length < entries.length ? " Leases that lay side by side were made one since." : "";
  const [newest = {}, before = {}] = past;
  if (!owner && newest.kind === "vacated") {
    return `No owner: the lease of ${newest.owner} has ended (${newest.cause}), and ${policy} has not granted it again.`;
  }
  if (!owner) return "No owner: no owner has joined, or no lease is granted yet.";
  if (newest.owner === owner && newest.kind === "moved") return `${owner} has it, with its state, from ${newest.from}: ${movedWhy(newest, policy)}${joint}`;
  if (newest.owner !== owner || newest.kind !== "granted") return `${owner} has it; how it came to that is no longer remembered.${joint}`;
  const planned = newest.reason ? ` The plan that says so was made ${reasonText(newest.reason)}.` : "";
  return `${owner} has it because ${policy} gave it to this owner${before.kind === "vacated"
    ? ` when the lease of ${before.owner} had ended (${before.cause}); the state held under that was lost.`
    : "; nobody had it before that is remembered."}${planned}${joint}`;
}

function movedWhy(moved, policy) {
  if (!moved.reason) return `${policy} or an operator wanted it moved, or ${moved.from} wanted to leave; which of them was not recorded.`;
  const words = `it was moved ${reasonText(moved.reason)}`;
  return moved.reason === "order" ? `${words}.` : `${words}, and ${policy} chose ${moved.owner}.`;
}
