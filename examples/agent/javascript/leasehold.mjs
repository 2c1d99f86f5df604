// Leasehold for programs in JavaScript, through a local agent ("leasehold agent").
//
//   import { Agent } from "./leasehold.mjs";
//
//   const agent = new Agent("http://127.0.0.1:7404");   // or "unix:/run/leasehold/agent.sock"
//   const owner = await agent.join("presence", { addr: "10.0.0.1:8080" });
//   const lease = await owner.check("alice");            // do I own the key? (null: no)
//   ...                                                  // operate on state stamped with lease.generation
//   if (!(await owner.held(lease))) ...                  // have I owned it all along?
//
//   const { addr } = await agent.lookup("presence").find("alice");          // where is it?
//   for await (const loss of agent.lookup("presence").losses()) ...         // what has been lost?
//
// It needs only Node 18. Keys and generations have 64 bits, and are BigInts.
// docs/AGENT.md defines the validity of the agent's replies; this module computes it.

import http from "node:http";
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";

const END = 1n << 64n;
const MASK = END - 1n;
const YOUNG = 50; // minimum milliseconds between two requests for keys that are not held
const MAX_COSTS = 1000; // in one report
const MAX_SEEN = 4096; // maximum number of leases kept for reporting their end

// A LeaseholdError is an error of the agent, or of the connection to it. docs/AGENT.md
// lists the kinds; "unreachable" means that there is no agent, or that another server
// answers at its address.
export class LeaseholdError extends Error {
  constructor(kind, message) {
    super(`${kind}: ${message}`);
    this.kind = kind;
  }
}

// reading runs f, which reads a reply, and throws "unreachable" for replies that are not an
// agent's.
function reading(f) {
  try {
    return f();
  } catch (e) {
    throw e instanceof LeaseholdError ? e : new LeaseholdError("unreachable", `this is no agent: ${e.message}`);
  }
}

function object(text) {
  return reading(() => {
    const document = JSON.parse(text);
    if (document === null || typeof document !== "object" || Array.isArray(document)) throw new TypeError("its answer is no object");
    return document;
  });
}

// number reads a required number.
function number(n) {
  if (typeof n !== "number") throw new TypeError(`${n} is no number`);
  return n;
}

// A Clock returns the maximum time that can have passed since a reading, in milliseconds.
//
// The monotonic clock stops while the computer sleeps, so that expired replies would seem
// valid. The wall clock continues, unless it is set back. So both are read, and the one
// that advanced more is used.
export class Clock {
  read() {
    return { monotonic: performance.now(), wall: Date.now() };
  }

  since(reading) {
    const now = this.read();
    // The wall clock is rounded down to whole milliseconds.
    return Math.max(now.monotonic - reading.monotonic, now.wall - reading.wall);
  }
}

// pause ends early when the signal is aborted.
const pause = (ms, signal) => sleep(ms, undefined, { signal }).catch(() => {});
const between = (a, b) => a + Math.random() * (b - a);

// target returns the options of http.request for an agent's address.
function target(address) {
  if (address.startsWith("unix:") && address !== "unix:") {
    return { socketPath: address.slice("unix:".length), host: "localhost" };
  }
  let url;
  try {
    url = new URL(address);
  } catch {
    url = {}; // no host or no scheme
  }
  if (url.protocol !== "http:" || !url.hostname || url.pathname !== "/") {
    throw new LeaseholdError("invalid", `"${address}" is no address of an agent: want http://HOST:PORT, such as http://127.0.0.1:7404, or unix:/PATH`);
  }
  return { host: url.hostname.replace(/^\[|\]$/g, ""), port: url.port || 80 };
}

// An Agent is an agent at an address.
export class Agent {
  constructor(address = "http://127.0.0.1:7404", { timeout = 2000, clock = new Clock() } = {}) {
    this.address = address;
    target(address); // rejects invalid addresses
    this.timeout = timeout; // for the reply to a request, in milliseconds
    this.clock = clock;
  }

  // join makes this program an owner until close(). It joins again automatically after a
  // restart of the agent, or if the agent has removed it for its silence. addr is the
  // address for callers. onRevoke(leases, cause), if given, is called when leases have
  // ended: their generations, and all older ones, have ended on all of their keys. It is
  // for cleanup; nothing waits for it, and its exceptions are printed. The agent does not
  // see checks that are answered locally: to balance keys by load, join with load
  // "reported", and call report().
  async join(namespace, { addr, name = "", weight = 1, ttl = 10000, timeout = 30000, load = "checks", onRevoke } = {}) {
    const owner = new Owner(this, { namespace, addr, name, weight, load, ttl_ms: ttl }, onRevoke);
    await owner._join(timeout);
    owner._start();
    return owner;
  }

  lookup(namespace) {
    return new Lookup(this, namespace);
  }

  _unreachable(e) {
    return new LeaseholdError("unreachable", `no agent answers at ${this.address}: ${e.message || e.code}`);
  }

  // _request resolves with the response once its head is received. began, if given, is
  // called with the request before.
  _request(method, path, body, signal, began = () => {}) {
    return new Promise((resolve, reject) => {
      const headers = body === undefined ? {} : { "Content-Type": "application/json" };
      const request = http.request({ ...target(this.address), method, path, headers, agent: false, signal });
      request.on("response", resolve);
      request.on("error", (e) => reject(this._unreachable(e)));
      request.end(body === undefined ? undefined : JSON.stringify(body));
      began(request);
    });
  }

  // call sends a request, and resolves with the reply and a reading of the clock from
  // before the request was sent, from which the reply's durations count.
  async call(method, path, body, timeout = this.timeout, signal) {
    const sent = this.clock.read();
    let timer;
    try {
      const response = await this._request(method, path, body, signal, (request) => {
        timer = setTimeout(() => request.destroy(new Error(`no answer in ${timeout} ms`)), timeout);
      });
      return { answer: await this._read(response), sent };
    } finally {
      clearTimeout(timer);
    }
  }

  async _read(response) {
    let text = "";
    try {
      for await (const chunk of response.setEncoding("utf8")) text += chunk;
    } catch (e) {
      throw this._unreachable(e);
    }
    const document = object(text || "{}");
    if (response.statusCode < 300) return document;
    const { kind, message } = document.error ?? {};
    if (typeof kind !== "string") throw new LeaseholdError("unreachable", `this is no agent: status ${response.statusCode}`);
    throw new LeaseholdError(kind, message);
  }

  // lines yields the documents of a stream until it ends. The agent sends something every
  // five seconds; if it is silent for longer than silence, the stream fails.
  async *lines(path, { silence = 15000, signal } = {}) {
    let request, timer;
    const patient = () => {
      clearTimeout(timer);
      timer = setTimeout(() => request.destroy(new Error(`nothing was heard for ${silence} ms`)), silence);
    };
    try {
      const response = await this._request("GET", path, undefined, signal, (begun) => {
        request = begun;
        patient(); // applies to the head as well
      });
      if (response.statusCode !== 200) await this._read(response);
      let text = "";
      for await (const chunk of response.setEncoding("utf8")) {
        patient();
        const lines = (text + chunk).split("\n");
        text = lines.pop();
        for (const line of lines) yield object(line);
      }
    } catch (e) {
      throw e instanceof LeaseholdError ? e : this._unreachable(e);
    } finally {
      clearTimeout(timer);
      request?.destroy();
    }
  }
}

// A Lease is a lease of a range of keys; key is the one for which it was returned.
export class Lease {
  constructor({ start, limit, generation }, key) {
    this.start = typeof start === "bigint" ? start : BigInt("0x" + start);
    this.limit = typeof limit === "bigint" ? limit : limit === "end" ? END : BigInt("0x" + limit);
    this.generation = BigInt(generation); // the fencing token
    this.key = key;
  }

  covers(key) {
    return this.start <= key && key < this.limit;
  }
}

// An Owner is a program that has joined. It requests all leases from the agent several
// times within the validity of a reply. So check and held read the clock and a list, and
// send a request only if that is late or the key is not in the list. Concurrent requests
// are merged, and sent at most every 50 ms.
//
// lastError is the error of the last request or join, null if it succeeded.
export class Owner {
  constructor(agent, request, onRevoke = () => {}) {
    this.agent = agent;
    this.lastError = null;
    this._request = request;
    this._onRevoke = onRevoke;
    this._id = null;
    this._leases = [];
    this._sent = agent.clock.read();
    this._good = 0; // how long the leases are valid, from sent on
    this._answered = false; // in this session
    this._flight = null; // a promise during a request whose reply others wait for
    this._newest = 0n; // generation of this session
    this._seen = new Map(); // leases whose end was not reported yet
    this._closed = new AbortController();
  }

  // check resolves with the lease that covers a key, null if this owner does not hold it.
  // The result is valid for this moment: call held(lease) before a result leaves the
  // program. A key is a name, which is hashed, or a BigInt.
  async check(key) {
    key = toKey(key);
    const lease = this.checkNow(key);
    if (lease !== null) return lease;
    await this._ask(); // it may be new, or the last reply is too old
    return this.checkNow(key);
  }

  // checkNow is check without communication: it may not know new leases yet.
  checkNow(key) {
    key = toKey(key);
    if (!this._fresh()) return null;
    const lease = this._leases.find((l) => l.covers(key));
    return lease === undefined ? null : new Lease(lease, key);
  }

  // held resolves with whether a lease has been held since it was checked: on the key that
  // it was found for, or on all of its keys if it is one of leases().
  async held(lease) {
    if (this.heldNow(lease)) return true;
    await this._ask();
    return this.heldNow(lease);
  }

  // heldNow is held without communication.
  heldNow(lease) {
    if (lease.key === undefined) return ended([lease], this.leases()).length === 0;
    return this.checkNow(lease.key)?.generation === lease.generation;
  }

  // leases returns all leases that are held now.
  leases() {
    return this._fresh() ? [...this._leases] : [];
  }

  // wait waits until a key is owned, and resolves with its lease, or null. It rejects if a
  // request to the agent fails.
  async wait(key, timeout = 10000) {
    key = toKey(key);
    const deadline = performance.now() + timeout;
    for (;;) {
      const left = deadline - performance.now();
      const ms = Math.min(Math.max(Math.floor(left), 1), 10000);
      await this._post("await", { key: hex(key), timeout_ms: ms }, ms + this.agent.timeout);
      await this._refresh();
      const lease = this.checkNow(key);
      if (lease !== null || left <= 0) return lease;
      await pause(YOUNG); // it exists, but is about to end
    }
  }

  // report reports the cost of work: [key, cost] pairs, for example a Map, in the same unit
  // for all owners. For owners that joined with load "reported".
  async report(costs) {
    const entries = Array.from(costs, ([key, cost]) => ({ key: hex(toKey(key)), cost }));
    for (let at = 0; at < entries.length; at += MAX_COSTS) {
      await this._post("report", { costs: entries.slice(at, at + MAX_COSTS) });
    }
  }

  // close releases all leases. Once called, no check succeeds. If the agent is gone, or has
  // closed the owner, the leases expire: that is not an error.
  async close() {
    const id = this._id;
    this._forget();
    this._closed.abort();
    if (id !== null) await this._leave(id);
  }

  async _leave(id) {
    try {
      await this.agent.call("DELETE", `/v1/owners/${id}`, undefined, 30000);
    } catch (e) {
      if (!["not_found", "closed", "unreachable"].includes(e.kind)) throw e;
    }
  }

  _forget() {
    this._id = null;
    this._leases = [];
    this._good = 0;
    this._answered = false;
  }

  _fresh() {
    return this.agent.clock.since(this._sent) < this._good;
  }

  // _post sends a request about this owner.
  async _post(what, body, timeout) {
    const id = this._id;
    if (id === null) throw new LeaseholdError("closed", "this owner has not joined");
    return { id, ...(await this.agent.call("POST", `/v1/owners/${id}/${what}`, body, timeout, this._closed.signal)) };
  }

  // _ask refreshes, unless that was done a moment ago. Concurrent callers wait for the same
  // reply. Errors are stored in lastError.
  async _ask() {
    if (this._answered && this.agent.clock.since(this._sent) < YOUNG) return;
    this._flight ??= this._refresh()
      .catch((e) => this._failed(e))
      .finally(() => (this._flight = null));
    await this._flight;
  }

  // _failed stores an error of the agent or its connection. Any other error is a bug.
  _failed(e) {
    if (!(e instanceof LeaseholdError)) throw e;
    this.lastError = e;
  }

  // _refresh requests all leases. The reply counts from before the request.
  async _refresh() {
    const { id, answer, sent } = await this._post("leases", {});
    const [leases, good] = reading(() => [answer.leases.map((l) => new Lease(l)), number(answer.valid_for_ms)]);
    this.lastError = null;
    if (id !== this._id || sent.monotonic < this._sent.monotonic) return; // replies may be reordered
    this._leases = leases;
    this._sent = sent;
    this._good = good - 1; // the wall clock's rounding
    this._answered = true;
    for (const l of leases) if (l.generation > this._newest) this._newest = l.generation;
    this._see(leases);
  }

  _see(leases) {
    for (const l of leases) this._seen.set(`${l.start} ${l.limit} ${l.generation}`, l);
    for (const name of this._seen.keys()) {
      if (this._seen.size <= MAX_SEEN) break;
      this._seen.delete(name); // only delays the cleanup of memory
    }
  }

  async _join(timeout) {
    const request = { ...this._request, timeout_ms: Math.min(timeout, 60000) };
    const { answer } = await this.agent.call("POST", "/v1/owners", request, timeout + 5000, this._closed.signal);
    const [id, interval] = reading(() => [answer.id.toString(), number(answer.max_promise_ms) / 4]);
    if (this._closed.signal.aborted) return this._leave(id);
    this._id = id;
    this._newest = 0n;
    this._seen = new Map();
    this._interval = Math.max(interval, 10);
  }

  // _start keeps the owner alive until it is closed. A bug ends the program, as any
  // unhandled rejection does, because the owner would no longer be kept alive.
  _start() {
    this._keep();
    this._follow();
  }

  // _keep keeps the owner alive. If the program is stopped or dies, the agent removes the
  // owner after the ttl without requests.
  async _keep() {
    for (;;) {
      await pause(this._interval, this._closed.signal);
      if (this._closed.signal.aborted) return;
      await this._touch();
    }
  }

  async _touch() {
    try {
      await this._refresh();
    } catch (e) {
      this._failed(e);
      if (["not_found", "closed"].includes(e.kind) && !this._closed.signal.aborted) await this._again();
    }
  }

  // _again joins again. All previous leases have ended, and new ones have newer generations.
  async _again() {
    const newest = this._newest;
    this._newest = 0n;
    this._forget();
    if (newest > 0n) this._revoke([new Lease({ start: 0n, limit: END, generation: newest })], "closed");
    try {
      await this._join(30000);
      this.lastError = null;
    } catch (e) {
      this._failed(e);
      await pause(between(100, 1000), this._closed.signal);
    }
  }

  // _revoke calls onRevoke. A bug there must not end the loop that keeps the owner alive.
  async _revoke(leases, cause) {
    if (leases.length === 0) return;
    try {
      await this._onRevoke(leases, cause);
    } catch (e) {
      console.error(e);
    }
  }

  // _follow follows the events. If the program dies, the stream breaks, by which the agent
  // detects it at once.
  async _follow() {
    while (!this._closed.signal.aborted) {
      try {
        if (this._id !== null) await this._listen(this._id);
      } catch (e) {
        if (!(e instanceof LeaseholdError)) throw e; // _keep determines what is wrong with the agent
      }
      await pause(between(100, 300), this._closed.signal);
    }
  }

  // _listen reads one stream. Leases seen before it was opened that are not in its first
  // line ended in between. If it reports omitted events, another stream is opened, because
  // leases seen meanwhile may be newer than its line.
  async _listen(id) {
    const before = [...this._seen.values()];
    let first = true;
    for await (const event of this.agent.lines(`/v1/owners/${id}/events`, { signal: this._closed.signal })) {
      const leases = reading(() => (event.leases ?? []).map((l) => new Lease(l)));
      if (id !== this._id) return; // all leases of that session have ended, and were reported
      if (event.type === "leases") {
        if (!first) return;
        first = false;
        this._see(leases);
        this._end(ended(before, leases), "unknown");
      } else if (event.type === "granted") {
        this._see(leases);
      } else if (event.type === "revoked") {
        this._end(leases, event.cause);
      }
    }
  }

  _end(leases, cause) {
    const left = without([...this._seen.values()], leases);
    this._seen = new Map();
    this._see(left);
    this._revoke(leases, cause);
  }
}

// cut returns the parts of a lease that another does not cover.
function cut(lease, other) {
  const parts = [];
  if (lease.start < other.start) parts.push(new Lease({ ...lease, limit: other.start < lease.limit ? other.start : lease.limit }));
  if (other.limit < lease.limit) parts.push(new Lease({ ...lease, start: other.limit > lease.start ? other.limit : lease.start }));
  return parts;
}

// ended returns the leases that were held before and are not held under their generation now.
function ended(before, now) {
  return before.flatMap((lease) =>
    now.filter((l) => l.generation === lease.generation).reduce((parts, l) => parts.flatMap((p) => cut(p, l)), [lease]),
  );
}

// without returns the remaining leases when some end. A generation ends with all older ones.
function without(leases, some) {
  return some.reduce((left, l) => left.flatMap((p) => (p.generation > l.generation ? [p] : cut(p, l))), leases);
}

// A Lookup finds the owners of a namespace's keys.
export class Lookup {
  constructor(agent, namespace) {
    this.agent = agent;
    this._path = "/v1/namespaces/" + encodeURIComponent(namespace);
  }

  // find resolves with the agent's reply; its addr is the address of the key's owner. It is
  // a hint: only the server knows whether it owns the key. An error of kind "no_owner" means
  // that the key has no owner at the moment.
  async find(key, { refresh = false } = {}) {
    const query = new URLSearchParams({ key: hex(toKey(key)) });
    if (refresh) query.set("refresh", "true");
    return (await this.agent.call("GET", `${this._path}/find?${query}`, undefined, 10000)).answer;
  }

  // do calls f(addr) with the server that owns the key, and again, after a pause, as long as
  // that resolves with undefined: the server was not the owner, or not reachable. Only for
  // idempotent requests.
  async do(key, f, { attempts = 40, patience = 30000 } = {}) {
    const deadline = performance.now() + patience;
    let why;
    for (let attempt = 0; attempt < attempts; attempt++) {
      try {
        const answer = await f((await this.find(key, { refresh: attempt > 0 })).addr);
        if (answer !== undefined) return answer;
        why = new LeaseholdError("not_owner", `no server says that it owns ${key}`);
      } catch (e) {
        if (!["no_owner", "unavailable", "unreachable"].includes(e.kind)) throw e;
        why = e;
      }
      const wait = Math.min(1000, 10 * 2 ** attempt) * between(0.5, 1);
      if (performance.now() + wait > deadline) break;
      await pause(wait);
    }
    throw why;
  }

  // losses yields losses as they happen, without end: objects with start, limit, owner,
  // generation, cause, lsn and resume, as the agent writes them. It continues after a restart
  // of the agent. With resume of an earlier loss it starts after that loss.
  async *losses(since) {
    for (;;) {
      try {
        for await (const line of this.agent.lines(`${this._path}/losses${since === undefined ? "" : `?since=${since}`}`)) {
          if (line.type === "begin" || line.type === "loss") since = line.resume ?? line.lsn;
          if (line.type === "loss") yield line;
        }
      } catch (e) {
        if (!["unreachable", "unavailable", "closed", "limit"].includes(e.kind)) throw e;
      }
      await pause(between(100, 1000));
    }
  }
}

const toKey = (key) => (typeof key === "string" ? keyOf(key) : key);
const hex = (key) => key.toString(16).padStart(16, "0");

// keyOf returns the key of a name: XXH64 with seed 0, as in every Leasehold library. A
// string is hashed as UTF-8; one that cannot be encoded, such as half of a surrogate pair,
// is a RangeError.
export function keyOf(name) {
  const data = Buffer.from(name);
  if (typeof name === "string" && data.toString() !== name) throw new RangeError("a name must be well-formed Unicode");
  const p = [0x9e3779b185ebca87n, 0xc2b2ae3d27d4eb4fn, 0x165667b19e3779f9n, 0x85ebca77c2b2ae63n, 0x27d4eb2f165667c5n];
  const rotate = (x, bits) => ((x << bits) | (x >> (64n - bits))) & MASK;
  const mix = (acc, lane) => (rotate((acc + lane * p[1]) & MASK, 31n) * p[0]) & MASK;
  let at = 0;
  let h = p[4];
  if (data.length >= 32) {
    let acc = [(p[0] + p[1]) & MASK, p[1], 0n, -p[0] & MASK];
    for (; at + 32 <= data.length; at += 32) {
      acc = acc.map((a, i) => mix(a, data.readBigUInt64LE(at + 8 * i)));
    }
    h = (rotate(acc[0], 1n) + rotate(acc[1], 7n) + rotate(acc[2], 12n) + rotate(acc[3], 18n)) & MASK;
    for (const a of acc) h = ((h ^ mix(0n, a)) * p[0] + p[3]) & MASK;
  }
  h = (h + BigInt(data.length)) & MASK;
  for (; at + 8 <= data.length; at += 8) {
    h = (rotate(h ^ mix(0n, data.readBigUInt64LE(at)), 27n) * p[0] + p[3]) & MASK;
  }
  if (at + 4 <= data.length) {
    h = (rotate(h ^ ((BigInt(data.readUInt32LE(at)) * p[0]) & MASK), 23n) * p[1] + p[2]) & MASK;
    at += 4;
  }
  for (; at < data.length; at++) h = (rotate(h ^ ((BigInt(data[at]) * p[4]) & MASK), 11n) * p[0]) & MASK;
  h = ((h ^ (h >> 33n)) * p[1]) & MASK;
  h = ((h ^ (h >> 29n)) * p[2]) & MASK;
  return h ^ (h >> 32n);
}
