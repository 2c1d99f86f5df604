// A table that shows a page of many rows at a time, sorted and filtered.

import { count, counted, make } from "./format.js";

// A column has a title, the cells' content (a string or a node), and if it can be sorted
// by, a value to compare.
export class Table {
  #root; #options; #body; #head; #count; #previous; #next; #filter; #note;
  #page = 0;
  #order = { column: -1, down: false };
  #cells = new Map(); // the lines on the page, by their rows' keys
  #found = { rows: null, text: "", order: null, all: [] }; // what was wanted last, and of what

  // options: caption, noun, columns, rows() returning all rows, and the very same array if
  // nothing has changed in them, total() if there are more than those, key(row), page,
  // filter(row, text) and its label, empty, which may be a function.
  constructor(root, options) {
    [this.#root, this.#options] = [root, { page: 20, ...options }];
    this.#head = make("tr");
    this.#body = make("tbody");
    this.#count = make("span", { class: "count" });
    this.#note = make("p", { class: "quiet", hidden: true });
    this.#previous = make("button", { type: "button", onclick: () => this.#turn(-1) }, "Previous");
    this.#next = make("button", { type: "button", onclick: () => this.#turn(1) }, "Next");
    const tools = make("div", { class: "tools" });
    if (options.filter) {
      this.#filter = make("input", { type: "search", placeholder: options.label, "aria-label": options.label, oninput: () => { this.#page = 0; this.draw(); } });
      tools.append(this.#filter);
    }
    tools.append(this.#previous, this.#next, this.#count);
    this.#headings();
    root.replaceChildren(tools, make("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": options.caption },
      make("table", {}, make("caption", {}, options.caption), make("thead", {}, this.#head), this.#body)), this.#note);
  }

  #headings() {
    this.#head.replaceChildren(...this.#options.columns.map((column, i) => {
      const sorted = i === this.#order.column;
      const heading = make("th", { scope: "col", class: column.number ? "number" : "" });
      if (!column.value) {
        heading.append(make("span", { class: column.unseen ? "unseen" : "" }, column.title));
        return heading;
      }
      heading.setAttribute("aria-sort", sorted ? (this.#order.down ? "descending" : "ascending") : "none");
      heading.append(make("button", { type: "button", onclick: () => this.#sort(i) }, column.title + (sorted ? (this.#order.down ? " ▾" : " ▴") : "")));
      return heading;
    }));
  }

  #sort(i) {
    const down = this.#order.column === i ? !this.#order.down : Boolean(this.#options.columns[i].number);
    this.#order = { column: i, down };
    this.#page = 0;
    this.#headings();
    this.#head.children[i].querySelector("button").focus();
    this.draw();
  }

  #turn(by) {
    this.#page += by;
    this.draw();
  }

  // wanted returns the rows that are wanted, in order. To find them among many takes long: if
  // nothing has changed they are those of the last time.
  #wanted() {
    const { columns, filter } = this.#options, text = this.#filter?.value.trim().toLowerCase() ?? "";
    const rows = this.#options.rows(), found = this.#found;
    if (rows === found.rows && text === found.text && this.#order === found.order) return found.all;
    let all = text ? rows.filter(row => filter(row, text)) : rows;
    const value = columns[this.#order.column]?.value, sign = this.#order.down ? -1 : 1;
    if (value) all = all.map(row => [value(row), row]).sort(([a], [b]) => a < b ? -sign : a > b ? sign : 0).map(([, row]) => row);
    this.#found = { rows, text, order: this.#order, all };
    return all;
  }

  // draw shows the page as it is now. Rows that stay are kept, with the focus in them.
  draw() {
    const { columns, key, page, noun, empty, total = () => 0 } = this.#options;
    const rows = this.#wanted(), pages = Math.max(1, Math.ceil(rows.length / page));
    this.#page = Math.min(Math.max(0, this.#page), pages - 1);
    const shown = rows.slice(this.#page * page, (this.#page + 1) * page), before = this.#cells;
    const focused = document.activeElement;
    this.#cells = new Map();
    for (const row of shown) {
      let id = key(row);
      while (this.#cells.has(id)) id += "'"; // two that cannot be told apart
      const line = before.get(id) ?? make("tr");
      before.delete(id);
      this.#cells.set(id, line);
      columns.forEach((column, i) => fill(line, i, column, row));
    }
    for (const line of before.values()) line.remove();
    let at = this.#body.firstChild;
    for (const line of this.#cells.values()) {
      if (line === at) at = at.nextSibling;
      else this.#body.insertBefore(line, at);
    }
    if (focused !== document.activeElement && this.#body.contains(focused)) focused.focus({ preventScroll: true }); // its line was moved
    this.#count.textContent = pages > 1
      ? `${this.#page * page + 1} to ${this.#page * page + shown.length} of ${counted(rows.length, noun)}` : counted(rows.length, noun);
    if (total() > rows.length) this.#count.textContent += `; there are ${count(total())}`;
    this.#previous.hidden = this.#next.hidden = pages === 1;
    this.#previous.disabled = this.#page === 0;
    this.#next.disabled = this.#page === pages - 1;
    this.#note.hidden = rows.length > 0;
    this.#note.textContent = rows.length > 0 ? "" : typeof empty === "function" ? empty() : empty;
  }
}

// fill brings one cell up to date, and leaves it alone if it is.
function fill(line, i, column, row) {
  const print = column.print?.(row) ?? column.text(row);
  let cell = line.children[i];
  if (!cell) line.append(cell = make(column.heading ? "th" : "td", column.heading ? { scope: "row" } : { class: column.number ? "number" : "" }));
  if (cell.print === print) return;
  cell.print = print;
  cell.replaceChildren(column.cell ? column.cell(row) : column.text(row));
}
