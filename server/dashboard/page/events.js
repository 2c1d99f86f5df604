// What happened, with filters.

import { model } from "./model.js";
import { dateOf, make, rangeText, reasonText, timeOf } from "./format.js";

const kindOf = e => e.change?.kind ?? e.type;
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

// changeText describes a change.
export function changeText(c) {
  const range = rangeText(c), why = c.reason ? `: ${reasonText(c.reason)}` : "";
  switch (c.kind) {
    case "granted": return `${c.owner} got ${range}, generation ${c.generation}${why}`;
    case "moved": return `${c.owner} got ${range} from ${c.from}, with its state, generation ${c.generation}${why}`;
    case "vacated": return `${c.owner} lost ${range}, and its state is lost: ${c.cause}, generation ${c.generation}`;
  }
  return c.kind;
}
function eventText(e) {
  switch (e.type) {
    case "change": return changeText(e.change);
    case "note": return `${e.note.owner ? e.note.owner + ": " : ""}${e.note.text}`;
    case "leader": return e.leader.leader ? `${e.leader.leader} leads, term ${e.leader.term}` : "no leader";
  }
  return e.text ?? e.type;
}
const word = e => kindOf(e) === "vacated" ? "lost" : e.note?.what ?? kindOf(e);

const lines = new WeakMap(); // of events
const none = make("li", { class: "none" }, "Nothing that is wanted.");

function line(e) {
  if (!lines.has(e)) {
    lines.set(e, make("li", { class: kindOf(e) },
      make("time", { dateTime: new Date(e.at).toISOString(), title: dateOf(e.at) }, timeOf(e.at)), make("b", {}, word(e)), make("span", {}, eventText(e))));
  }
  return lines.get(e);
}

// events shows the newest that are wanted.
export function events() {
  const text = search.value.trim().toLowerCase(), shown = [];
  for (let i = model.events.length - 1; i >= 0 && shown.length < most; i--) {
    const e = model.events[i];
    if (kinds[kindOf(e)] && !wanted.has(kindOf(e))) continue;
    if (text && !`${word(e)} ${eventText(e)}`.toLowerCase().includes(text)) continue;
    shown.push(line(e));
  }
  if (shown.length === 0) shown.push(none);
  const kept = new Set(shown);
  for (const old of [...list.children]) if (!kept.has(old)) old.remove();
  let at = list.firstChild; // unchanged lines are kept, for readers
  for (const next of shown) {
    if (next === at) at = at.nextSibling;
    else list.insertBefore(next, at);
  }
}
