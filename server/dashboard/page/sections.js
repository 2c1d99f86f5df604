// What the page shows besides the ring: tables of owners, ranges, moves and the rest.

import { model, stateOf } from "./model.js";
import { administrator } from "./admin.js";
import { lostText } from "./ring.js";
import { Table } from "./table.js";
import { bar, bytes, count, counted, dateOf, duration, facts, make, number, percent, rangeText, reasonText, swatch } from "./format.js";

const notSaid = "No data from the manager.";
const part = id => document.getElementById(id);
const named = name => make("span", {}, swatch(model.owner(name)), name);

export function figures() {
  const shown = n => n.name === model.namespace;
  const n = model.status?.namespaces.find(shown), policy = model.namespaces?.find(shown)?.policy;
  const share = which => model.rows.reduce((sum, r, i) => which(r) ? sum + model.share(i) : sum, 0);
  const vacant = share(r => r.owner === 0), hour = model.at / 1000 - 3600;
  const lost = share(r => r.lostAt > hour && r.lost > model.begun);
  const entries = !model.namespace || !model.known ? [] : [
    ["owners", count(n?.owners ?? 0), false],
    ["ranges", count(model.rows.length), false],
    ["keys without an owner", vacant === 0 ? "none" : percent(vacant), vacant > 0],
    ["lost state in the last hour", lost === 0 ? "none" : `${percent(lost)} of the keys`, lost > 0],
    ["moves under way", count(model.moves?.underWay ?? 0), false],
    ["lookups here", count(model.lookups?.total ?? 0), false],
    ["changes (LSN)", count(model.lsn), false],
    ["policy", policy || "?", false],
    ["leader", model.status?.leader || "none", !model.status?.leader],
  ];
  const remark = part("remark"), words = !n ? "" : n.problem ? `Trouble: ${n.problem}.` : n.lull ? `Not balanced by load now: ${n.lull}.` : "";
  remark.textContent = words;
  remark.className = n?.problem ? "bad" : "quiet";
  remark.hidden = words === "";
  const print = JSON.stringify(entries);
  if (part("figures").dataset.print === print) return;
  part("figures").dataset.print = print;
  part("figures").replaceChildren(...entries.map(([name, value, bad]) =>
    make("div", { class: bad ? "trouble" : "" }, make("dt", {}, name), make("dd", {}, value))));
}

export function namespaces() {
  const all = model.status?.namespaces ?? [], key = JSON.stringify([all.map(n => n.name), model.namespace]);
  const list = part("namespaces");
  part("empty").hidden = !model.status || all.some(n => n.name === model.namespace);
  part("empty").textContent = all.length ? `There is no namespace ${model.namespace}.` : "There is no namespace yet. Create one with: leasehold namespace create presence";
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  list.replaceChildren(...all.map(n => {
    const link = make("a", { href: `#/${encodeURIComponent(n.name)}` }, n.name);
    if (n.name === model.namespace) link.setAttribute("aria-current", "page");
    return make("li", {}, link);
  }));
}

const states = { member: "good", suspended: "bad", late: "bad", silent: "bad", waiting: "bad" };
const stateText = o => ["late", "silent"].includes(stateOf(o)) ? `${stateOf(o)}, ${duration(o.patienceSeconds)} left` : stateOf(o);

// loads is what bars are drawn against: the most that anybody does, and what each would do
// if work were divided by weight.
function loads() {
  let most = 0, sum = 0, weight = 0;
  for (const o of model.owners.values()) {
    most = Math.max(most, o.load);
    sum += o.load;
    if (["member", "late", "suspended"].includes(stateOf(o))) weight += o.weight;
  }
  return { most, fair: o => weight > 0 && stateOf(o) !== "waiting" ? sum * o.weight / weight : 0 };
}

export function ownersTable() {
  let scale = loads();
  const load = o => {
    if (scale.most === 0) return "none reported";
    const fair = scale.fair(o);
    return fair === 0 ? `${number(o.load)}/s` : `${number(o.load)}/s, ${number(100 * o.load / fair)} % of its share by weight`;
  };
  const table = new Table(part("owners"), {
    caption: "Owners of the namespace", noun: "owner", label: "Filter by name, address or state", empty: () => model.known ? "No owner has joined: all keys are vacant." : notSaid,
    rows: () => [...model.owners.values()].sort((a, b) => a.owner < b.owner ? -1 : a.owner > b.owner ? 1 : a.session < b.session ? -1 : 1),
    key: o => o.session, filter: (o, text) => `${o.owner} ${o.addr} ${stateOf(o)}`.toLowerCase().includes(text),
    columns: [
      { title: "Owner", heading: true, text: o => o.owner, cell: o => named(o.owner), value: o => o.owner },
      { title: "Address", text: o => o.addr, value: o => o.addr },
      { title: "State", text: stateText, value: stateOf, cell: o => make("span", { class: states[stateOf(o)] ?? "warn" }, stateText(o)) },
      { title: "Weight", number: true, text: o => number(o.weight), value: o => o.weight },
      { title: "Leases", number: true, text: o => count(o.leases), value: o => o.leases },
      { title: "Share of keys", number: true, text: o => percent(o.share), value: o => o.share },
      {
        title: "Load against capacity", text: load, value: o => o.load,
        print: o => `${load(o)} ${scale.most}`,
        cell: o => scale.most === 0 ? load(o)
          : bar(o.load / (1.25 * scale.most), load(o), scale.fair(o) / (1.25 * scale.most), o.load > 1.25 * scale.fair(o)),
      },
      { title: "Moves", text: o => o.movesState ? (o.movesIn || o.movesOut ? `${o.movesIn} in, ${o.movesOut} out` : "-") : "cannot" },
      { title: "Supervised", text: o => ({ true: "yes", false: "no" })[o.supervised] ?? "unknown" },
      { title: "Orders", unseen: true, text: o => `${administrator.admin} ${o.draining}`, cell: o => administrator.drainButton(o) },
    ],
  });
  return () => { scale = loads(); table.draw(); };
}

export function rangesTable(select) {
  const name = i => model.nameOf(model.rows[i].owner);
  const text = i => rangeText(model.interval(i));
  const age = i => model.rows[i].since ? duration(model.at / 1000 - model.rows[i].since) : "not known";
  let rows = [], version = -1;
  const table = new Table(part("ranges"), {
    caption: "Ranges of the lease table", noun: "range", label: "Filter by owner or key", page: 15, empty: () => model.known ? "There is no such range." : notSaid,
    rows: () => rows, key: i => String(model.rows[i].start),
    filter: (i, wanted) => (name(i) || "none").toLowerCase().includes(wanted) || text(i).includes(wanted),
    columns: [
      {
        title: "Range", text, value: i => model.rows[i].start,
        cell: i => {
          const { start } = model.rows[i]; // its number changes when there are more before it
          return make("button", { type: "button", class: "key", title: "Show it on the ring", onclick: () => select(start) }, text(i));
        },
      },
      { title: "Owner", text: i => name(i) || "none", value: name, cell: i => name(i) ? named(name(i)) : make("span", { class: "bad" }, "none") },
      { title: "Share", number: true, text: i => percent(model.share(i)), value: i => model.share(i) },
      { title: "Generation", number: true, text: i => model.rows[i].owner ? String(model.rows[i].generation) : "-", value: i => model.rows[i].generation },
      { title: "Age", number: true, text: age, value: i => -model.rows[i].since },
      { title: "State last lost", text: i => lostText(model.rows[i]), value: i => model.rows[i].lost },
      { title: "Orders", unseen: true, text: i => `${administrator.admin} ${text(i)}`, cell: i => administrator.moveButton(i) },
    ],
  });
  return () => {
    if (version !== model.version) [rows, version] = [model.rows.map((_, i) => i), model.version];
    table.draw();
  };
}

export function movesTable() {
  const table = new Table(part("moves"), {
    caption: "Moves of state under way and waiting", noun: "move", page: 10, empty: () => model.moves ? "No state is on its way." : notSaid,
    rows: () => model.moves?.moves ?? [], total: () => model.moves ? model.moves.underWay + model.moves.waiting : 0, key: m => m.id || `${m.start} ${m.to}`,
    columns: [
      { title: "Range", text: rangeText, cell: m => make("span", { class: "key" }, rangeText(m)) },
      { title: "From", text: m => m.from, cell: m => named(m.from) },
      { title: "To", text: m => m.to, cell: m => named(m.to) },
      { title: "State", text: m => m.state },
      { title: "Why", text: m => reasonText(m.reason) || "not known" },
      { title: "Sent", number: true, text: m => `${counted(m.records, "record")}, ${bytes(m.bytes)}` },
      { title: "For", number: true, text: m => m.id ? duration(m.ageSeconds) : "-" },
    ],
  });
  return () => table.draw();
}

export function hotTable(explain) {
  const table = new Table(part("hot"), {
    caption: "The keys that cost most", noun: "key", page: 10,
    empty: () => model.hot ? "No hot keys, or the policy does not use loads." : notSaid,
    rows: () => model.hot ?? [], key: k => k.key,
    columns: [
      { title: "Key", text: k => k.key, cell: k => make("button", { type: "button", class: "key", title: "Explain", onclick: () => explain("0x" + k.key) }, k.key) },
      { title: "Work per second", number: true, text: k => number(k.rate) },
      { title: "Owner", text: k => k.owner, cell: k => named(k.owner) },
    ],
  });
  return () => table.draw();
}

export function lookupsTable() {
  const table = new Table(part("lookups"), {
    caption: "Lookups connected to this manager", noun: "lookup", page: 10,
    empty: () => model.lookups ? "No lookup of this namespace is connected to this manager. They prefer managers that stand by." : notSaid,
    rows: () => model.lookups?.lookups ?? [], total: () => model.lookups?.total ?? 0, key: l => l.addr,
    columns: [
      { title: "From", text: l => l.addr || "?" },
      { title: "Lag", number: true, text: l => l.behind === 0 ? "none" : counted(l.behind, "change") },
      { title: "Last request", number: true, text: l => `${duration(l.heardAgoSeconds)} ago` },
      { title: "Connected for", number: true, text: l => duration(l.connectedSeconds) },
    ],
  });
  return () => {
    table.draw();
    autosharding(model.lookups?.autosharding);
  };
}

// autosharding shows the clients that receive the table by the auto-sharding protocol of gRPC.
function autosharding(s) {
  const line = part("autosharding");
  line.hidden = !s;
  line.className = s?.rejected ? "bad" : "quiet";
  line.textContent = !s ? "" : `${counted(s.clients, "gRPC auto-sharding client")}: ${counted(s.accepted, "assignment")} accepted` +
    (s.rejected ? `, ${count(s.rejected)} rejected, the last by ${s.rejection}` : "");
}

// others is links to the dashboards of other managers, as far as they are known.
export function others() {
  return (model.status?.managers ?? []).filter(m => m.http && m.addr !== model.status.manager).map(m => make("a", { href: pageOf(m) }, m.addr));
}
const pageOf = m => `${location.protocol}//${m.http}/${location.hash}`;

function role(m) {
  if (m.leads) return make("span", { class: "good" }, "leads");
  if (!m.heard) return make("span", { class: "bad" }, "no contact");
  if (m.heardAgoSeconds) return make("span", { class: "bad" }, `silent for ${duration(m.heardAgoSeconds)}`);
  return m.addr === model.status.manager && !model.status.leader ? "no leader" : "standby";
}

export function managers() {
  const s = model.status;
  if (!s) return;
  const all = s.managers ?? [], terms = s.terms ?? [];
  const print = JSON.stringify([s.manager, s.leader, s.term, s.terms, s.managers, s.build, s.store, s.warnings, model.members]);
  if (part("managers").dataset.print === print) return;
  part("managers").dataset.print = print;
  const entries = [
    ["this page is from", s.manager + (s.manager === s.leader ? ", the leader" : s.leader ? ", a standby" : "")],
    ["leader", s.leader ? `${s.leader}, term ${s.term}` : make("span", { class: "bad" }, "no leader")],
    ["store", s.store],
    ...(s.warnings ?? []).map(w => ["warning", make("span", { class: "bad" }, w)]),
    ...all.map(m => ["manager", make("span", {}, m.http && m.addr !== s.manager ? make("a", { href: pageOf(m) }, m.addr) : m.addr,
      " ", role(m), m.build ? `, ${m.build}` : "")]),
    ...(model.members ?? []).map(m => ["store member", make("span", {}, `${m.name} at ${m.peerUrls[0] ?? ""} `,
      make("span", { class: m.healthy ? "good" : "bad" }, m.learner ? "catching up" : m.healthy ? "healthy" : "does not respond"))]),
  ];
  const oldest = terms.at(-1);
  part("managers").replaceChildren(facts(entries),
    make("h3", {}, "Past leaders"),
    make("ol", { class: "terms", tabIndex: 0, "aria-label": "Past leaders, newest first" }, ...terms.map(t =>
      make("li", {}, `${dateOf(t.at)}: ${t.leader || "none"}${t.leader ? `, term ${t.term}` : ""}`))),
    make("p", { class: "quiet" }, oldest ? `Known since ${dateOf(oldest.at)}.` : "This manager knows of none."));
}
