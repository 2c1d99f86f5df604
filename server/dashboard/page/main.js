// The page: what comes over the link is put into the model, and shown a frame later.

import { administrator } from "./admin.js";
import { events } from "./events.js";
import { begin, explain, forget } from "./explain.js";
import { keyText, make } from "./format.js";
import { Link } from "./link.js";
import { model } from "./model.js";
import { Ring } from "./ring.js";
import { figures, hotTable, lookupsTable, managers, movesTable, namespaces, ownersTable, rangesTable } from "./sections.js";

const search = key => {
  document.getElementById("explain-title").scrollIntoView({ block: "nearest" });
  explain(key);
};
const ring = new Ring(search, i => {
  const { start } = model.rows[i], explains = make("button", { type: "button", onclick: () => search("0x" + keyText(start)) }, "Explain");
  return administrator.admin ? [explains, administrator.moveButton(i)] : [explains];
});
const select = key => {
  ring.select(key);
  document.getElementById("ring-section").scrollIntoView({ block: "nearest" });
};
const tables = [ownersTable(), rangesTable(select), movesTable(), hotTable(search), lookupsTable()];

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

const link = new Link(() => administrator.refresh(), () => {
  changed();
  if (model.namespace === "" && model.status?.namespaces.length) location.replace("#/" + encodeURIComponent(model.status.namespaces[0].name));
});
// open shows the namespace that the address names after #/; another # is a place in the page.
const open = () => {
  if (!administrator.looks || location.hash && !location.hash.startsWith("#/")) return;
  drawn = -1;
  forget();
  link.open(named(location.hash.slice(2)));
  changed();
  administrator.refresh(); // what one may do differs by namespace
};
// named is the namespace of an address, which may be mistyped.
function named(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // the manager returns the error
  }
}
addEventListener("hashchange", open);
// A page that was left may be kept for whoever goes back. It must not take a viewer's place meanwhile.
addEventListener("pagehide", () => link.leave());
addEventListener("pageshow", event => event.persisted && open());
begin(ring.select.bind(ring));
// Who may not look is shown nothing, and nothing of what was shown to who was here before.
let looks = null;
administrator.begin(() => {
  drawn = -1;
  changed();
  if (looks === administrator.looks) return;
  looks = administrator.looks;
  if (looks) {
    open();
    return;
  }
  link.close();
  forget();
  administrator.wanted();
});
