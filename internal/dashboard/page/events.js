// What happened, with filters.

import { model } from "./model.js";
import { dateOf, make, rangeText, timeOf } from "./format.js";

const kinds = { granted: "grants", moved: "moves", vacated: "losses", note: "notes", leader: "leaders" };
const most = 200;

const list = document.getElementById("events"), filters = document.getElementById("filters");
const wanted = new Set(Object.keys(kinds));
const search = make("input", { type: "search", placeholder: "Filter by owner, key or word", "aria-label": "Filter events by owner, key or word", oninput: () => events() });

filters.append(...Object.entries(kinds).map(([kind, word]) => make("label", {},
  make("input", { type: "checkbox", checked: true, onchange: event => {
    event.target.checked ? wanted.add(kind) : wanted.delete(kind);
    events();
  } }), word)), search);
filters.addEventListener("submit", event => event.preventDefault());

// eventText says in a sentence what a change did.
export function eventText(e) {
  const range = e.start ? rangeText(e.start, e.limit) : "";
  switch (e.kind) {
    case "granted": return `${e.owner} got ${range}, generation ${e.generation}${e.reason ? `: ${e.reason}` : ""}`;
    case "moved": return `${e.owner} got ${range} from ${e.from}, with its state, generation ${e.generation}${e.reason ? `: ${e.reason}` : ""}`;
    case "vacated": return `${e.owner} lost ${range}, and its state is lost: ${e.cause}, generation ${e.generation}`;
    case "note": return `${e.owner ? e.owner + ": " : ""}${e.text}`;
    case "leader": return e.leader ? `${e.leader} leads, in term ${e.term}` : "nobody leads";
  }
  return e.text ?? e.kind;
}
const word = e => e.kind === "vacated" ? "lost" : e.kind === "note" ? e.what : e.kind;

const lines = new WeakMap(); // of events
const none = make("li", { class: "none" }, "Nothing that is wanted.");

function line(e) {
  if (!lines.has(e)) {
    lines.set(e, make("li", { class: e.kind },
      make("time", { dateTime: new Date(e.at).toISOString(), title: dateOf(e.at) }, timeOf(e.at)), make("b", {}, word(e)), make("span", {}, eventText(e))));
  }
  return lines.get(e);
}

// events shows the newest that are wanted.
export function events() {
  const text = search.value.trim().toLowerCase(), shown = [];
  for (let i = model.events.length - 1; i >= 0 && shown.length < most; i--) {
    const e = model.events[i];
    if (kinds[e.kind] && !wanted.has(e.kind)) continue;
    if (text && !`${word(e)} ${eventText(e)}`.toLowerCase().includes(text)) continue;
    shown.push(line(e));
  }
  if (shown.length === 0) shown.push(none);
  const kept = new Set(shown);
  for (const old of [...list.children]) if (!kept.has(old)) old.remove();
  let at = list.firstChild; // lines that stay are left alone: somebody may be reading them
  for (const next of shown) {
    if (next === at) at = at.nextSibling;
    else list.insertBefore(next, at);
  }
}
