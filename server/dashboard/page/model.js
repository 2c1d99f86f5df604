// What is known of a namespace: a snapshot, and what has changed since.

import { keyOf, keyText, limitText } from "./format.js";

const space = keyOf("end");
const mostNames = 10_000; // of owners; with more than that colours are given anew

function column(text, Type) {
  const raw = atob(text);
  const data = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) data[i] = raw.charCodeAt(i);
  return new Type(data.buffer); // little-endian, as is every computer that browsers run on
}

export class Model {
  version = 0; // rises when the table changes, and never falls

  constructor() { this.clear(""); }

  clear(namespace) {
    Object.assign(this, {
      namespace, rows: [], names: [], index: new Map(), lsn: 0n, begun: 0n, known: false,
      owners: new Map(), events: [], at: 0, stale: null,
      status: null, namespaces: null, moves: null, lookups: null, hot: null, members: null,
    });
    this.version++;
  }

  owner(name) {
    if (!this.index.has(name)) {
      this.names.push(name);
      this.index.set(name, this.names.length);
    }
    return this.index.get(name);
  }
  nameOf(owner) { return owner === 0 ? "" : this.names[owner - 1]; }

  // snapshot takes up everything. Owners keep their numbers, and so their colours.
  snapshot(s) {
    const { namespace, status, names, index } = this;
    this.clear(s.namespace);
    if (namespace === s.namespace && names.length < mostNames) Object.assign(this, { names, index });
    this.status = status;
    this.live(s);
    this.events = s.events.slice();
    if (!s.table) return;
    this.known = true;
    this.lsn = BigInt(s.lsn);
    this.begun = BigInt(s.begun);
    const numbers = (s.names ?? []).map(name => this.owner(name));
    const starts = column(s.table.starts, BigUint64Array), generations = column(s.table.generations, BigUint64Array);
    const lost = column(s.table.lost, BigUint64Array);
    const owners = column(s.table.owners, Uint32Array), since = column(s.table.since, Uint32Array);
    const lostAt = column(s.table.lostAt, Uint32Array);
    this.rows = Array.from({ length: s.table.ranges }, (_, i) => row(starts[i],
      { generation: generations[i], owner: owners[i] === 0 ? 0 : numbers[owners[i] - 1], lost: lost[i], lostAt: lostAt[i], since: since[i] }));
  }

  live(l) {
    this.at = l.at;
    this.stale = l.stale ?? null;
    for (const section of ["status", "namespaces", "moves", "lookups", "hot", "members"]) {
      if (l[section]) this[section] = l[section];
    }
    if (l.owners) {
      for (const session of l.owners.gone) this.owners.delete(session);
      for (const owner of l.owners.set) this.owners.set(owner.session, owner);
    }
  }

  // news takes up what has happened. It returns false if something before it is missing.
  news(n) {
    for (const event of n.events) {
      if (event.change && !this.change(event.change)) return false;
      this.events.push(event);
    }
    this.events.splice(0, this.events.length - 500);
    return this.lsn === BigInt(n.lsn);
  }

  change(c) {
    const lsn = BigInt(c.lsn);
    if (lsn <= this.lsn) return true;
    if (lsn !== this.lsn + 1n) return false;
    this.lsn = lsn;
    this.version++;
    const since = Math.floor(Date.parse(c.at) / 1000);
    this.replace(keyOf(c.start), keyOf(c.limit), before => {
      if (c.kind === "vacated") return { generation: 0n, owner: 0, lost: lsn, lostAt: since, since };
      const last = before.reduce((a, b) => b.lost > a.lost ? b : a); // a loss outlives a new lease, of several the latest
      return { generation: BigInt(c.generation), owner: this.owner(c.owner), lost: last.lost, lostAt: last.lostAt, since };
    });
    return true;
  }

  // find returns the number of the row that a key is in.
  find(key) {
    let low = 0, high = this.rows.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.rows[middle].start <= key) low = middle; else high = middle - 1;
    }
    return low;
  }

  limit(i) { return i + 1 < this.rows.length ? this.rows[i + 1].start : space; }
  share(i) { return (i + 1 < this.rows.length ? this.rows[i + 1].pos : 1) - this.rows[i].pos; }
  // interval is the range of a row, as the manager writes it.
  interval(i) { return { start: keyText(this.rows[i].start), limit: limitText(this.limit(i)) }; }

  // replace makes what is from start to limit one row, of which next says what it is, given
  // what was there. No two changes make rows that are the same: nothing has to be joined.
  replace(start, limit, next) {
    const first = this.split(start);
    const end = limit === space ? this.rows.length : this.split(limit);
    this.rows.splice(first, end - first, row(start, next(this.rows.slice(first, end))));
  }

  split(key) {
    const i = this.find(key), at = this.rows[i];
    if (at.start === key) return i;
    this.rows.splice(i + 1, 0, row(key, at));
    return i + 1;
  }
}

const row = (start, { generation, owner, lost, lostAt, since }) =>
  ({ start, pos: Number(start) / 2 ** 64, generation, owner, lost, lostAt, since });

// model is the one that the page shows.
export const model = new Model();

// stateOf is the state of an owner, in a word.
export function stateOf(o) {
  if (o.suspended) return "suspended";
  if (o.state !== "member") return o.state === "greeted" ? "joining" : o.state;
  return o.late ? "late" : o.leaving ? "leaving" : o.draining ? "draining" : "member";
}
