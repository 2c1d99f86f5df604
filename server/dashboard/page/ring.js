// The ring: the key space drawn to scale, and the range that is selected.

import { model } from "./model.js";
import { colour, darkness, dateOf, duration, facts, keyOf, keyText, make, percent, rangeText, swatch, counted } from "./format.js";

const few = 360;    // so many arcs have lines between them, for who cannot tell colours
const slots = 2880; // as many as can be distinguished; a table with more ranges is drawn by what prevails

export class Ring {
  #canvas = document.getElementById("ring");
  #selected = document.getElementById("selected");
  #age = make("span"); // how old the selected range is
  #place = make("p", { class: "quiet" }); // which it is
  #shown = "";         // its last description
  #key = 0n;
  #explain;
  #extras;

  // explain is called with a key; extras returns what else to show of a row.
  constructor(explain, extras) {
    [this.#explain, this.#extras] = [explain, extras];
    this.#canvas.addEventListener("keydown", event => this.#press(event));
    this.#canvas.addEventListener("click", event => this.#point(event));
    darkness.addEventListener("change", () => this.draw());
  }

  get row() { return model.find(this.#key); }

  select(key) {
    this.#key = key;
    this.draw();
  }

  draw() {
    const size = this.#canvas.width, context = this.#canvas.getContext("2d");
    context.clearRect(0, 0, size, size);
    if (!model.known) {
      this.#selected.replaceChildren();
      this.#shown = "";
      return;
    }
    const dark = darkness.matches, all = [...arcs()];
    for (const [from, to, owner] of all) {
      context.lineWidth = size * (owner ? .13 : .04); // vacant ranges are thin
      this.#arc(context, size * .37, from, to, colour(owner, dark));
    }
    context.lineWidth = size * .14;
    if (all.length > 1 && all.length <= few) {
      for (const [from] of all) this.#arc(context, size * .37, from - .0008, from + .0008, getComputedStyle(this.#selected.closest("section")).backgroundColor);
    }
    context.lineWidth = size * .02;
    for (const move of model.moves?.moves ?? []) {
      const from = Number(keyOf(move.start)) / 2 ** 64, to = Number(keyOf(move.limit)) / 2 ** 64;
      this.#arc(context, size * .275, from, Math.max(to, from + 1 / slots), colour(model.owner(move.to), dark));
    }
    const i = this.row, at = model.rows[i];
    context.lineWidth = size * .025;
    this.#arc(context, size * .465, at.pos, Math.max(at.pos + model.share(i), at.pos + 4 / slots), getComputedStyle(this.#canvas).color);
    this.#describe(i);
  }

  // tick lets the selected range grow older.
  tick() {
    const at = model.rows[this.row];
    if (at) this.#age.textContent = at.since ? duration(model.at / 1000 - at.since) : "not known";
  }

  #arc(context, radius, from, to, style) {
    const middle = this.#canvas.width / 2, angle = part => 2 * Math.PI * part - Math.PI / 2;
    context.beginPath();
    context.strokeStyle = style;
    context.arc(middle, middle, radius, angle(from), angle(to));
    context.stroke();
  }

  #describe(i) {
    const at = model.rows[i], name = model.nameOf(at.owner);
    const text = rangeText(model.interval(i));
    const who = name || "none";
    this.#canvas.setAttribute("aria-valuemax", model.rows.length);
    this.#canvas.setAttribute("aria-valuenow", i + 1);
    this.#canvas.setAttribute("aria-valuetext", `range ${i + 1} of ${model.rows.length}: ${text}, ${percent(model.share(i))} of the keys, ${who}, generation ${at.generation}`);
    this.tick();
    this.#place.textContent = `range ${i + 1} of ${counted(model.rows.length, "range")}`;
    const extras = this.#extras(i), print = [text, who, at.generation, lostText(at), extras.length].join(" ");
    if (print === this.#shown) return; // the focus stays where it is
    this.#shown = print;
    this.#selected.replaceChildren(
      facts([
        ["range", make("span", { class: "key" }, text)],
        ["owner", make("span", { class: at.owner ? "" : "bad" }, swatch(at.owner), who)],
        ["share", percent(model.share(i))],
        ["generation", at.owner ? String(at.generation) : "none"],
        [at.owner ? "held for" : "vacant for", this.#age],
        ["state last lost", lostText(at)],
      ]),
      this.#place, make("p", { class: "line" }, ...extras));
  }

  #press(event) {
    if (!model.known) return;
    const i = this.row, last = model.rows.length - 1, leap = Math.max(1, Math.round(model.rows.length / 10));
    const to = {
      ArrowRight: i + 1, ArrowUp: i + 1, ArrowLeft: i - 1, ArrowDown: i - 1,
      PageUp: i + leap, PageDown: i - leap, Home: 0, End: last,
    }[event.key];
    if (event.key === "Enter") this.#explain("0x" + keyText(model.rows[i].start));
    else if (to === undefined) return;
    else this.select(model.rows[Math.min(last, Math.max(0, to))].start);
    event.preventDefault();
  }

  #point(event) {
    if (!model.known) return;
    const box = this.#canvas.getBoundingClientRect();
    const x = event.clientX - box.left - box.width / 2, y = event.clientY - box.top - box.height / 2;
    const part = (Math.atan2(y, x) / (2 * Math.PI) + 1.25) % 1;
    this.select(BigInt(Math.floor(part * 2 ** 32)) << 32n);
  }
}

export function lostText(at) {
  if (at.lost === 0n) return "never";
  if (at.lost <= model.begun) return "not known";
  return at.lostAt ? `${dateOf(1000 * at.lostAt)} (LSN ${at.lost})` : `at LSN ${at.lost}`;
}

// arcs yields what to draw: from, to and owner, neighbours of one owner together.
function* arcs() {
  let from = 0, owner = -1;
  for (const [start, next] of model.rows.length > slots ? prevailing() : model.rows.map(r => [r.pos, r.owner])) {
    if (next === owner) continue;
    if (owner >= 0) yield [from, start, owner];
    [from, owner] = [start, next];
  }
  yield [from, 1, owner];
}

// prevailing yields for each slot of the ring who has most of it.
function* prevailing() {
  let i = 0;
  for (let slot = 0; slot < slots; slot++) {
    const begin = slot / slots, end = (slot + 1) / slots, shares = new Map();
    let most = 0, winner = 0;
    for (; i < model.rows.length; i++) {
      const row = model.rows[i], limit = row.pos + model.share(i);
      const part = (shares.get(row.owner) ?? 0) + Math.min(limit, end) - Math.max(row.pos, begin);
      shares.set(row.owner, part);
      if (part > most) [most, winner] = [part, row.owner];
      if (limit > end) break;
    }
    yield [begin, winner];
  }
}
