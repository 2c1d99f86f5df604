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
// Nothing but Node 18 is needed. Keys, generations and LSNs have 64 bits, and are
// BigInts. What an answer of the agent is worth is in docs/AGENT.md; this module does
// the arithmetic.

import http from "node:http";
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";

const END = 1n << 64n;
const MASK = END - 1n;

// A LeaseholdError is what the agent has to say, or why it says nothing. Its kind is
// one of those that docs/AGENT.md lists; "unreachable" means that there is no agent.
export class LeaseholdError extends Error {
  constructor(kind, message) {
    super(`${kind}: ${message}`);
    this.kind = kind;
  }
}

// A Clock says how much time has passed at most since a reading, in milliseconds.
//
// The monotonic clock stands still while the computer sleeps, and would make an answer
// of yesterday true today. The wall clock goes on, as long as nobody sets it back. So we
// read both, and believe the one that has advanced more.
export class Clock {
  read() {
    return { monotonic: performance.now(), wall: Date.now() };
  }

  since(reading) {
    const now = this.read();
    // The wall clock has whole milliseconds, and may be one behind.
    return Math.max(now.monotonic - reading.monotonic, now.wall - reading.wall);
  }
}

// pause ends early when the signal says so.
const pause = (ms, signal) => sleep(ms, undefined, { signal }).catch(() => {});
const between = (a, b) => a + Math.random() * (b - a);

// An Agent is one at an address.
export class Agent {
  constructor(address = "http://127.0.0.1:7404", { timeout = 2000, clock = new Clock() } = {}) {
    this.address = address;
    this.timeout = timeout; // how long to wait for an answer to a question, in milliseconds
    this.clock = clock;
  }

  // join makes this program an owner until close(). It joins again by itself when the
  // agent was restarted, or has not heard of us for too long. addr is where callers reach
  // us. onRevoke(leases, cause), if given, is called when leases have ended: their
  // generations, and all older ones, have ended on all of their keys. It is for clearing
  // away; nobody waits for it.
  async join(namespace, { addr, name = "", weight = 1, ttl = 10000, timeout = 30000, onRevoke } = {}) {
    const owner = new Owner(this, { namespace, addr, name, weight, ttl_ms: ttl }, onRevoke);
    await owner._join(timeout);
    owner._start();
    return owner;
  }

  lookup(namespace) {
    return new Lookup(this, namespace);
  }

  _target() {
    if (this.address.startsWith("unix:")) {
      return { socketPath: this.address.slice("unix:".length), host: "localhost" };
    }
    const url = new URL(this.address);
    return { host: url.hostname.replace(/^\[|\]$/g, ""), port: url.port || 80 };
  }

  // _request resolves with the response when its head is there.
  _request(method, path, body, options = {}) {
    return new Promise((resolve, reject) => {
      const headers = body === undefined ? {} : { "Content-Type": "application/json" };
      const request = http.request({ ...this._target(), method, path, headers, agent: false, ...options });
      request.on("response", resolve);
      request.on("error", (e) => reject(new LeaseholdError("unreachable", `${this.address}: ${e.message}`)));
      request.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  // call asks, and resolves with the answer and the reading of the clock from before the
  // question was sent: what an answer says counts from there.
  async call(method, path, body, timeout = this.timeout) {
    const sent = this.clock.read();
    const response = await this._request(method, path, body, { signal: AbortSignal.timeout(timeout) });
    return { answer: await this._read(response), sent };
  }

  async _read(response) {
    let text = "";
    let document;
    try {
      for await (const chunk of response.setEncoding("utf8")) text += chunk;
      document = JSON.parse(text || "{}");
    } catch (e) {
      throw new LeaseholdError("unreachable", `${this.address}: ${e.message}`);
    }
    if (response.statusCode >= 300) {
      throw new LeaseholdError(document.error?.kind ?? "internal", document.error?.message ?? text);
    }
    return document;
  }

  // lines yields the documents of a stream until it ends. The agent speaks every five
  // seconds; one that is silent for longer than silence is taken for dead.
  async *lines(path, { silence = 15000, signal } = {}) {
    const response = await this._request("GET", path, undefined, { signal });
    if (response.statusCode !== 200) await this._read(response);
    const late = () => response.destroy(new Error(`nothing was heard for ${silence} ms`));
    let timer = setTimeout(late, silence);
    let text = "";
    try {
      for await (const chunk of response.setEncoding("utf8")) {
        clearTimeout(timer);
        timer = setTimeout(late, silence);
        const lines = (text + chunk).split("\n");
        text = lines.pop();
        for (const line of lines) yield JSON.parse(line);
      }
    } catch (e) {
      throw new LeaseholdError("unreachable", `${this.address}: ${e.message}`);
    } finally {
      clearTimeout(timer);
      response.destroy();
    }
  }
}

// A Lease is the right to a range of keys; key is the one that it was found for.
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

// An Owner is a program that has joined. Several times while an answer is good it asks
// the agent for all leases. So check and held look at the clock and at a list, and ask the
// agent only if that has not kept up.
export class Owner {
  constructor(agent, request, onRevoke = () => {}) {
    this.agent = agent;
    this._request = request;
    this._onRevoke = onRevoke;
    this._id = null;
    this._leases = [];
    this._sent = agent.clock.read();
    this._good = 0; // for how long the leases are, from sent on
    this._newest = 0n; // generation of this session
    this._closed = new AbortController();
  }

  // check resolves with the lease that covers a key, null if we do not own it. The answer
  // is about this moment: ask held(lease) before a result leaves the program. A key is a
  // name, which is hashed, or a BigInt.
  async check(key) {
    if (typeof key === "string") key = keyOf(key);
    let lease = this.checkNow(key);
    if (lease === null) {
      // It may be new, or we have not asked for too long.
      try {
        await this._refresh();
      } catch (e) {
        if (!(e instanceof LeaseholdError)) throw e;
        return null;
      }
      lease = this.checkNow(key);
    }
    return lease;
  }

  // checkNow is check without asking anybody: it may not know yet what is new.
  checkNow(key) {
    if (typeof key === "string") key = keyOf(key);
    if (!(this.agent.clock.since(this._sent) < this._good)) return null;
    const lease = this._leases.find((l) => l.covers(key));
    return lease === undefined ? null : new Lease(lease, key);
  }

  // held resolves with whether a lease has been held on its key since it was checked.
  async held(lease) {
    return (await this.check(lease.key))?.generation === lease.generation;
  }

  // heldNow is held without asking anybody.
  heldNow(lease) {
    return this.checkNow(lease.key)?.generation === lease.generation;
  }

  // leases returns all that are held now.
  leases() {
    return this.agent.clock.since(this._sent) < this._good ? [...this._leases] : [];
  }

  // close gives everything back. No check succeeds from its beginning on.
  async close() {
    const id = this._id;
    this._forget();
    this._closed.abort();
    if (id !== null) await this.agent.call("DELETE", `/v1/owners/${id}`, undefined, 30000);
  }

  _forget() {
    this._id = null;
    this._leases = [];
    this._good = 0;
  }

  // _refresh asks for all leases. The answer counts from before the question.
  async _refresh() {
    const id = this._id;
    if (id === null) throw new LeaseholdError("closed", "this owner has not joined");
    const { answer, sent } = await this.agent.call("POST", `/v1/owners/${id}/leases`, {});
    if (id !== this._id || sent.monotonic < this._sent.monotonic) return; // answers may overtake each other
    this._leases = answer.leases.map((l) => new Lease(l));
    this._sent = sent;
    this._good = answer.valid_for_ms - 1; // the wall clock's millisecond
    for (const l of this._leases) if (l.generation > this._newest) this._newest = l.generation;
  }

  async _join(timeout) {
    const request = { ...this._request, timeout_ms: Math.min(timeout, 60000) };
    const { answer } = await this.agent.call("POST", "/v1/owners", request, timeout + 5000);
    if (this._closed.signal.aborted) {
      await this.agent.call("DELETE", `/v1/owners/${answer.id}`, undefined, 30000);
      return;
    }
    this._id = answer.id;
    this._newest = 0n;
    this._interval = answer.max_promise_ms / 4;
  }

  // _start has the owner kept until it is closed. A bug of ours ends the program, as any
  // rejection does that nobody handles: an owner that is not kept is no owner.
  _start() {
    this._keep();
    this._follow();
  }

  // _keep keeps in touch. A program that is stopped, or dies, is an owner no more when the
  // agent has not heard of it for the ttl.
  async _keep() {
    for (;;) {
      await pause(this._interval, this._closed.signal);
      if (this._closed.signal.aborted) return;
      try {
        await this._refresh();
      } catch (e) {
        if (!(e instanceof LeaseholdError)) throw e;
        if (["not_found", "closed"].includes(e.kind) && !this._closed.signal.aborted) await this._again();
      }
    }
  }

  // _again joins once more. Whatever we had has ended, and what comes has newer generations.
  async _again() {
    const newest = this._newest;
    this._forget();
    if (newest > 0n) this._onRevoke([new Lease({ start: 0n, limit: END, generation: newest })], "closed");
    try {
      await this._join(30000);
    } catch (e) {
      if (!(e instanceof LeaseholdError)) throw e;
      await pause(between(100, 1000), this._closed.signal);
    }
  }

  // _follow follows the events. That the stream breaks when we die is how the agent learns
  // of it at once.
  async _follow() {
    while (!this._closed.signal.aborted) {
      try {
        if (this._id !== null) {
          for await (const event of this.agent.lines(`/v1/owners/${this._id}/events`, { signal: this._closed.signal })) {
            if (event.type === "revoked") this._onRevoke(event.leases.map((l) => new Lease(l)), event.cause);
          }
        }
      } catch (e) {
        if (!(e instanceof LeaseholdError)) throw e;
      }
      await pause(between(100, 300), this._closed.signal);
    }
  }
}

// A Lookup says where the keys of a namespace are.
export class Lookup {
  constructor(agent, namespace) {
    this.agent = agent;
    this._path = "/v1/namespaces/" + encodeURIComponent(namespace);
  }

  // find resolves with the answer of the agent; its addr is where the key is. It is a
  // hint: the server knows whether it owns the key. An error of kind "no_owner" says that
  // nobody does for now.
  async find(key, { refresh = false } = {}) {
    const query = new URLSearchParams(typeof key === "string" ? { name: key } : { key: hex(key) });
    if (refresh) query.set("refresh", "true");
    return (await this.agent.call("GET", `${this._path}/find?${query}`, undefined, 10000)).answer;
  }

  // do calls f(addr) with the server that owns the key, and again, after a pause, as long as
  // that resolves with undefined: the server was not the owner, or was not there. Only for
  // requests that may be carried out twice.
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

  // losses yields losses as they happen, for ever: objects with start, limit, owner,
  // generation, cause and lsn, as the agent writes them. It resumes where it was when the
  // agent was restarted. With an earlier lsn it begins after that.
  async *losses(since) {
    for (;;) {
      try {
        for await (const line of this.agent.lines(`${this._path}/losses${since === undefined ? "" : `?since=${since}`}`)) {
          if (line.type === "begin" || line.type === "loss") since = line.lsn;
          if (line.type === "loss") yield line;
        }
      } catch (e) {
        if (!["unreachable", "unavailable", "closed", "limit"].includes(e.kind)) throw e;
      }
      await pause(between(100, 1000));
    }
  }
}

const hex = (key) => key.toString(16).padStart(16, "0");

// keyOf is the key of a name: XXH64 with seed 0, as every Leasehold library has it.
export function keyOf(name) {
  const data = Buffer.from(name);
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
