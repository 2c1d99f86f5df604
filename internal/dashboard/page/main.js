// The page: what comes over the link is put into the model, and shown a frame later.

import { administrator } from "./admin.js";
import { events } from "./events.js";
import { begin, explain } from "./explain.js";
import { make } from "./format.js";
import { Link } from "./link.js";
import { model } from "./model.js";
import { Ring } from "./ring.js";
import { figures, hotTable, lookupsTable, managers, movesTable, namespaces, ownersTable, rangesTable } from "./sections.js";

const search = key => {
  document.getElementById("explain-title").scrollIntoView({ block: "nearest" });
  explain(key);
};
const ring = new Ring(search, i => [
  make("button", { type: "button", onclick: () => search("0x" + model.rows[i].start.toString(16).padStart(16, "0")) }, "Explain"), " ",
  administrator.admin ? administrator.moveButton(i) : "",
]);
const select = key => {
  ring.select(key);
  document.getElementById("ring-section").scrollIntoView({ block: "nearest" });
};
const ranges = rangesTable(select);
const tables = [ownersTable(), ranges.draw, movesTable(), hotTable(search), lookupsTable()];

let waiting = false, drawn = -1, filled = false;
function draw() {
  waiting = false;
  namespaces();
  figures();
  if (drawn !== model.version || model.moves?.moves.length) ring.draw();
  else ring.tick();
  drawn = model.version;
  for (const table of tables) table();
  managers();
  events();
  if (model.known && !filled) performance.mark("leasehold-filled"); // for who measures
  filled ||= model.known;
}
function changed() {
  if (!waiting) requestAnimationFrame(draw);
  waiting = true;
}

const link = new Link(() => {
  changed();
  if (model.namespace === "" && model.status?.namespaces.length) location.replace("#/" + encodeURIComponent(model.status.namespaces[0].name));
});
// open shows the namespace that the address names after #/; another # is a place in the page.
const open = () => {
  if (location.hash && !location.hash.startsWith("#/")) return;
  drawn = -1;
  link.open(decodeURIComponent(location.hash.slice(2)));
  changed();
};
addEventListener("hashchange", open);
begin(ring.select.bind(ring));
administrator.begin(() => {
  drawn = -1;
  changed();
});
open();
