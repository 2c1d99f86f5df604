// Words, numbers and elements. What comes from elsewhere becomes text here, never HTML.

// make returns an element with properties and children; a child that is no node is text.
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter(child => child !== null && child !== undefined));
  return element;
}

// facts is a list of what there is to know.
export const facts = entries =>
  make("dl", { class: "facts" }, ...entries.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));

const whole = new Intl.NumberFormat("en");
const rounded = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
export const count = n => whole.format(n);
export const counted = (n, word) => `${count(n)} ${word}${Number(n) === 1 ? "" : "s"}`;
export const number = n => rounded.format(n);
export const percent = share => `${rounded.format(100 * share)} %`;

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const calendar = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });
// A time is in milliseconds since 1970, or text as in RFC 3339.
export const timeOf = at => clock.format(new Date(at));
export const dateOf = at => calendar.format(new Date(at));

// duration formats a duration in the largest suitable unit.
export function duration(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 120) return `${s} s`;
  if (s < 7200) return `${Math.round(s / 60)} min`;
  if (s < 172800) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86400)} days`;
}

export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = Number(n), unit = 0;
  while (value >= 1024 && unit < units.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${rounded.format(value)} ${units[unit]}`;
}

// Keys are BigInts here, and 16 digits elsewhere; the limit of the last range is "end".
const space = 2n ** 64n;
export const keyText = key => key.toString(16).padStart(16, "0");
export const limitText = key => key === space ? "end" : keyText(key);
export const keyOf = text => text === "end" ? space : BigInt("0x" + text);
export const rangeText = ({ start, limit }) => `${start}-${limit}`;

const reasons = {
  joined: "because owners have joined", gone: "because owners have gone", load: "to divide the load",
  leaving: "because an owner wants to leave", drain: "because an operator has an owner drained",
  order: "because an operator asked for it", rebalance: "because an operator asked for the keys to be divided anew",
  configured: "because the namespace was configured otherwise", joint: "to make leases one that lay side by side",
};
// reasonText describes why an owner received a range, as the end of a sentence; "" if unknown.
export const reasonText = reason => !reason ? "" : reasons[reason] ?? `for a reason that this page does not know (${reason})`;

// colour distinguishes owners: adjacent numbers get distant hues. 0 means no owner.
export function colour(owner, dark) {
  if (owner === 0) return dark ? "#5c1a1a" : "#f3c6c2";
  const hue = (owner * 137.508) % 360;
  const tier = Math.floor(owner * 137.508 / 360) % 3;
  return `hsl(${hue.toFixed(1)} ${[70, 55, 80][tier]}% ${(dark ? [58, 44, 70] : [46, 60, 34])[tier]}%)`;
}
export const darkness = matchMedia("(prefers-color-scheme: dark)");

export function swatch(owner) {
  const mark = make("span", { class: "swatch", "aria-hidden": "true" });
  mark.style.background = `light-dark(${colour(owner, false)}, ${colour(owner, true)})`;
  return mark;
}

// bar draws a part of a whole, with a mark for what it should be, under words that say it.
export function bar(part, text, mark, over) {
  const fill = make("i"), line = make("b");
  fill.style.width = `${Math.min(100, 100 * part)}%`;
  line.style.left = `${Math.min(99, 100 * mark)}%`;
  return make("div", {}, text, make("div", { class: over ? "bar over" : "bar", "aria-hidden": "true" }, fill, line));
}
