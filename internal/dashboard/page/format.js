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
export const timeOf = milliseconds => clock.format(milliseconds);
export const dateOf = milliseconds => calendar.format(milliseconds);

// duration says how long something has lasted, in the largest unit that makes sense.
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

const zero = "0000000000000000";
export const keyText = key => key.toString(16).padStart(16, "0");
// rangeText writes a range as the command line does.
export const rangeText = (start, limit) => `${start}-${limit === zero ? "end" : limit}`;

// colour tells owners apart: neighbours in number get hues far from each other. Nobody is 0.
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
