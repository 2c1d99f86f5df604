// What is known of a namespace: a snapshot, and what has changed since.

const space = 2n ** 64n;

function column(text, Type) {
  const raw = atob(text);
  const data = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) data[i] = raw.charCodeAt(i);
  return new Type(data.buffer); // little-endian, as is every computer that browsers run on
}

export class Model {
  constructor() { this.clear(""); }

  clear(namespace) {
    Object.assign(this, {
      namespace, rows: [], names: [], index: new Map(), lsn: 0n, begun: 0n, known: false,
      owners: new Map(), events: [], at: 0, stale: null,
      status: null, moves: null, lookups: null, hot: null, members: null,
      version: 0, // rises when the table changes
    });
  }

  owner(name) {
    if (!this.index.has(name)) {
      this.names.push(name);
      this.index.set(name, this.names.length);
    }
    return this.index.get(name);
  }
  nameOf(owner) { return owner === 0 ? "" : this.names[owner - 1]; }

  snapshot(s) {
    const status = this.status;
    this.clear(s.namespace);
    this.status = status;
    this.live(s);
    this.events = s.events.slice();
    this.version++;
    if (!s.table) return;
    this.known = true;
    this.lsn = BigInt(s.lsn);
    this.begun = BigInt(s.begun);
    for (const name of s.names ?? []) this.owner(name);
    const starts = column(s.table.starts, BigUint64Array), generations = column(s.table.generations, BigUint64Array);
    const lost = column(s.table.lost, BigUint64Array);
    const owners = column(s.table.owners, Uint32Array), since = column(s.table.since, Uint32Array);
    this.rows = Array.from({ length: s.table.ranges }, (_, i) =>
      row(starts[i], generations[i], owners[i], lost[i], since[i]));
  }

  live(l) {
    this.at = l.at;
    this.stale = l.stale ?? null;
    for (const section of ["status", "moves", "lookups", "hot", "members"]) {
      if (l[section]) this[section] = l[section];
    }
    if (l.owners) {
      for (const id of l.owners.gone) this.owners.delete(id);
      for (const owner of l.owners.set) this.owners.set(owner.id, owner);
    }
  }

  // news takes up what has happened. It returns false if something before it is missing.
  news(n) {
    for (const event of n.events) {
      if (event.lsn && !this.change(event)) return false;
      this.events.push(event);
    }
    this.events.splice(0, this.events.length - 500);
    return this.lsn === BigInt(n.lsn);
  }

  change(event) {
    const lsn = BigInt(event.lsn);
    if (lsn <= this.lsn) return true;
    if (lsn !== this.lsn + 1n) return false;
    this.lsn = lsn;
    this.version++;
    const since = Math.floor(event.at / 1000), generation = BigInt(event.generation);
    const owner = event.kind === "vacated" ? 0 : this.owner(event.owner);
    this.set(BigInt("0x" + event.start), BigInt("0x" + event.limit) || space, before => owner === 0
      ? { generation: 0n, owner: 0, lost: lsn, since }
      : { generation, owner, lost: before.lost, since });
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
  // limitText writes the end of a row as the manager does: all zeros is the end.
  limitText(i) { return (this.limit(i) % space).toString(16).padStart(16, "0"); }

  // set changes what is from start to limit, splitting and merging rows as needed.
  set(start, limit, change) {
    const first = this.split(start);
    const end = limit === space ? this.rows.length : this.split(limit);
    for (let i = first; i < end; i++) Object.assign(this.rows[i], change(this.rows[i]));
    for (let i = Math.min(end, this.rows.length - 1); i >= Math.max(1, first); i--) {
      if (same(this.rows[i - 1], this.rows[i])) this.rows.splice(i, 1);
    }
  }

  split(key) {
    const i = this.find(key), at = this.rows[i];
    if (at.start === key) return i;
    this.rows.splice(i + 1, 0, row(key, at.generation, at.owner, at.lost, at.since));
    return i + 1;
  }
}

const row = (start, generation, owner, lost, since) => ({ start, pos: Number(start) / 2 ** 64, generation, owner, lost, since });
const same = (a, b) => a.owner === b.owner && a.generation === b.generation && a.lost === b.lost && a.since === b.since;

// model is the one that the page shows.
export const model = new Model();
