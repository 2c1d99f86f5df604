// Tests of the arithmetic: node --test

import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import { after, afterEach, beforeEach, test } from "node:test";
import { Agent, Clock, keyOf, Lease, LeaseholdError, Owner } from "./leasehold.mjs";

// A clock that stands still, but for what a test adds.
class FakeClock extends Clock {
  monotonic = 100000;
  wall = 1e12;
  read() {
    return { monotonic: this.monotonic, wall: this.wall };
  }
  advance(ms, { asleep = false } = {}) {
    this.wall += ms;
    if (!asleep) this.monotonic += ms;
  }
}

// A fake agent: everything is ours, under generation 2^63 + 7, for 800 ms.
let delay = () => {};
const server = http.createServer((request, response) => {
  request.resume().on("end", () => {
    if (request.url.endsWith("/leases")) delay();
    if (request.method !== "POST") {
      return response.writeHead(404).end('{"error": {"kind": "not_found", "message": "no stream"}}');
    }
    const lease = { start: "0".repeat(16), limit: "end", generation: "9223372036854775815" };
    const answer = request.url.endsWith("/leases")
      ? { leases: [lease], valid_for_ms: 800 }
      : { id: "x", max_promise_ms: 3600000 }; // so that nobody asks but the test
    response.end(JSON.stringify(answer));
  });
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));

let clock, owner;
afterEach(() => owner._closed.abort());
after(() => server.close());
beforeEach(async () => {
  delay = () => {};
  clock = new FakeClock();
  owner = await new Agent(`http://127.0.0.1:${server.address().port}`, { clock }).join("n", { addr: "a:1" });
});
const found = () => owner.checkNow("alice") !== null;

test("an answer is good for as long as it says", async () => {
  const lease = await owner.check("alice");
  assert.equal(lease.generation, (1n << 63n) + 7n);
  assert.equal(lease.key, keyOf("alice"));
  clock.advance(798);
  assert.ok(found());
  clock.advance(3);
  assert.ok(!found());
  assert.ok(await owner.held(lease)); // it asks, and the generation is the same
});

test("time under way counts", async () => {
  delay = () => clock.advance(500);
  await owner.check("alice");
  assert.ok(found());
  clock.advance(301);
  assert.ok(!found());
  delay = () => clock.advance(900);
  assert.equal(await owner.check("alice"), null); // true once, and over when it arrives
});

test("sleep counts", async () => {
  await owner.check("alice");
  clock.advance(1000, { asleep: true });
  assert.ok(!found());
});

test("the past is not the future", async () => {
  await owner.check("alice");
  clock.wall -= 3600000; // somebody sets the clock
  assert.ok(found());
  clock.advance(801);
  assert.ok(!found());
});

test("without an agent nothing is owned", async () => {
  await owner.check("alice");
  owner.agent.address = "http://127.0.0.1:1";
  assert.ok(await owner.check("alice"));
  clock.advance(801);
  assert.equal(await owner.check("alice"), null);
});

test("keys are hashed as everywhere", () => {
  const text = fs.readFileSync(new URL("../../../testdata/keyhash.tsv", import.meta.url), "utf8");
  const lines = text.split("\n").filter((l) => l !== "" && !l.startsWith("#"));
  assert.ok(lines.length > 10);
  for (const line of lines) {
    const [name, key] = line.split("\t");
    assert.equal(keyOf(Buffer.from(name, "hex")).toString(16).padStart(16, "0"), key);
  }
});

test("half a character has no key", () => {
  assert.throws(() => keyOf("\ud800"), RangeError);
});

// What follows has an agent whose answers are functions of the test and whose streams are
// lists, and an owner that does nothing by itself.

const END = 1n << 64n;
const HALF = 1n << 63n;
const ALL = [0n, END, 5n];
const hex = (n) => (n === END ? "end" : n.toString(16).padStart(16, "0"));
const wire = (...leases) => leases.map(([start, limit, generation]) => ({ start: hex(start), limit: hex(limit), generation: String(generation) }));
const parts = (leases) => leases.map((l) => [l.start, l.limit, l.generation]);
const gone = (kind) => () => {
  throw new LeaseholdError(kind, "it is gone");
};

class Script extends Agent {
  constructor() {
    super(undefined, { clock: new FakeClock() });
    this.calls = [];
    this.joins = 0;
    this.stream = [];
    this.answer = () => ({ leases: wire(ALL), valid_for_ms: 800 });
  }
  async call(method, path, body) {
    const sent = this.clock.read();
    this.calls.push([method, path, body]);
    if (path !== "/v1/owners") return { answer: await this.answer(), sent };
    return { answer: { id: `id${++this.joins}`, max_promise_ms: 3600000 }, sent };
  }
  async *lines() {
    yield* this.stream;
  }
}

async function scripted() {
  const agent = new Script();
  const told = [];
  const o = new Owner(agent, {}, (leases, cause) => told.push([parts(leases), cause]));
  await o._join(1000);
  const listen = async (...events) => {
    agent.stream = events;
    await o._listen(o._id);
  };
  return { agent, o, told, listen };
}

test("another generation is not held", async () => {
  const { agent, o } = await scripted();
  const lease = await o.check("alice");
  const [whole] = o.leases();
  for (const l of [lease, whole]) assert.ok((await o.held(l)) && o.heldNow(l));
  agent.clock.advance(100);
  agent.answer = () => ({ leases: wire([0n, END, 6n]), valid_for_ms: 800 });
  await o._refresh();
  for (const l of [lease, whole]) assert.ok(!(await o.held(l)) && !o.heldNow(l));
});

test("a whole lease is held on all of its keys", async () => {
  const { agent, o } = await scripted();
  await o.check("alice");
  const [whole] = o.leases();
  agent.clock.advance(100);
  agent.answer = () => ({ leases: wire([0n, HALF, 5n]), valid_for_ms: 800 });
  await o._refresh();
  assert.ok(!(await o.held(whole)));
});

test("an answer that is overtaken is dropped", async () => {
  const { agent, o } = await scripted();
  agent.answer = async () => {
    agent.clock.advance(100);
    agent.answer = () => ({ leases: [], valid_for_ms: 800 });
    await o._refresh();
    return { leases: wire(ALL), valid_for_ms: 800 };
  };
  await o._refresh();
  assert.deepEqual(o.leases(), []);
});

test("an answer for a former session is dropped", async () => {
  const { agent, o } = await scripted();
  agent.answer = async () => {
    await o._again();
    return { leases: wire(ALL), valid_for_ms: 800 };
  };
  await o._refresh();
  assert.deepEqual([o.leases(), o._id], [[], "id2"]);
});

test("joining again ends everything, whatever the callback does", async (t) => {
  const { agent, o, told, listen } = await scripted();
  const printed = t.mock.method(console, "error", () => {});
  await o.check("alice");
  agent.answer = gone("not_found");
  const onRevoke = o._onRevoke;
  o._onRevoke = (...args) => {
    onRevoke(...args);
    throw new Error("a bug of the application");
  };
  await o._touch();
  assert.deepEqual([agent.joins, o.leases(), told], [2, [], [[[[0n, END, 5n]], "closed"]]]);
  await listen({ type: "revoked", leases: wire(ALL), cause: "released" });
  assert.equal(told.length, 2);
  assert.equal(printed.mock.callCount(), 2);
});

test("a failed join is told", async (t) => {
  const { agent, o } = await scripted();
  await o.check("alice");
  assert.equal(o.lastError, null);
  agent.answer = gone("not_found");
  const join = t.mock.method(o, "_join", gone("name_taken"));
  await o._touch();
  assert.equal(o.lastError.kind, "name_taken");
  join.mock.restore();
  await o._touch();
  assert.deepEqual([o.lastError, agent.joins], [null, 2]);
});

test("closing what is gone", async () => {
  for (const kind of ["not_found", "closed", "unreachable"]) {
    const { agent, o } = await scripted();
    await o.check("alice");
    agent.answer = () => {
      assert.deepEqual([o.leases(), o.checkNow("alice")], [[], null]); // from the beginning on
      return gone(kind)();
    };
    await o.close();
    assert.deepEqual(agent.calls.at(-1).slice(0, 2), ["DELETE", "/v1/owners/id1"]);
    assert.equal(await o.check("alice"), null);
  }
});

test("what ended while nobody listened", async () => {
  const { o, told, listen } = await scripted();
  await o.check("alice");
  await listen({ type: "leases", leases: wire([0n, HALF, 5n]) });
  assert.deepEqual(told.splice(0), [[[[HALF, END, 5n]], "unknown"]]);
  await listen({ type: "leases", leases: wire([0n, HALF, 5n]) }); // and only once
  assert.deepEqual(told, []);
  await listen({ type: "granted", leases: wire([HALF, END, 8n]) });
  await listen(
    { type: "leases", leases: wire([0n, HALF, 9n], [HALF, END, 8n]) },
    { type: "revoked", leases: wire([HALF, END, 8n]), cause: "released" },
    { type: "unheard of" },
  );
  assert.deepEqual(told, [[[[0n, HALF, 5n]], "unknown"], [[[HALF, END, 8n]], "released"]]);
  assert.deepEqual(parts([...o._seen.values()]), [[0n, HALF, 9n]]);
});

test("what is newer than the stream has not ended", async () => {
  const { agent, o, told } = await scripted();
  agent.stream = (function* () {
    o._see([new Lease(wire(ALL)[0])]); // is granted and seen after the line was written
    yield { type: "leases", leases: [] };
    yield { type: "leases", leases: [] }; // too many events: we open another
    assert.fail("it listens on");
  })();
  await o._listen("id1");
  assert.deepEqual(told, []);
});

test("misses are asked about together", async () => {
  const { agent, o } = await scripted();
  agent.calls = [];
  agent.answer = () => ({ leases: [], valid_for_ms: 800 });
  const misses = await Promise.all(Array.from({ length: 20 }, () => o.check("alice")));
  assert.ok(misses.every((l) => l === null));
  assert.equal(await o.check("alice"), null);
  assert.equal(agent.calls.length, 1);
  agent.clock.advance(60);
  await o.check("alice");
  assert.equal(agent.calls.length, 2);
});

test("reports", async () => {
  const { agent, o } = await scripted();
  await o.report(new Map([["alice", 2], [255n, 1.5]]));
  const costs = [{ key: hex(keyOf("alice")), cost: 2 }, { key: "00000000000000ff", cost: 1.5 }];
  assert.deepEqual(agent.calls.at(-1), ["POST", "/v1/owners/id1/report", { costs }]);
  await o.report(Array.from({ length: 1001 }, (_, i) => [BigInt(i), 1]));
  assert.deepEqual(agent.calls.slice(-2).map((c) => c[2].costs.length), [1000, 1]);
});

test("wait", async () => {
  const { agent, o } = await scripted();
  const answers = [{ held: false }, { leases: [], valid_for_ms: 800 }, { held: true }, { leases: wire(ALL), valid_for_ms: 800 }];
  agent.answer = () => {
    agent.clock.advance(100);
    return answers.shift();
  };
  assert.equal((await o.wait("alice")).generation, 5n);
  assert.deepEqual(agent.calls.slice(1).map((c) => c[1].split("/").pop()), ["await", "leases", "await", "leases"]);
});

test("the clock that advances most is believed", (t) => {
  const clock = new Clock();
  const reading = clock.read();
  const ahead = { monotonic: reading.monotonic, wall: reading.wall + 5000 };
  t.mock.method(clock, "read", () => ahead);
  assert.equal(clock.since(reading), 5000);
  assert.equal(clock.since({ monotonic: reading.monotonic - 7000, wall: reading.wall }), 7000);
});

// stranger is another program on the agent's port.
async function stranger(t, listener) {
  const other = http.createServer(listener);
  await new Promise((resolve) => other.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    other.closeAllConnections?.();
    other.close();
  });
  return new Agent(`http://127.0.0.1:${other.address().port}`);
}
const unreachable = { kind: "unreachable" };

test("what is no answer", async (t) => {
  for (const [status, text] of [
    [404, '["x"]'], [200, "null"], [404, "null"], [404, "{}"], [500, '{"error": "x"}'], [200, "\xff"], [200, "{}"],
    [200, '{"id": "x"}'], [200, '{"id": "x", "max_promise_ms": "1"}'],
  ]) {
    const agent = await stranger(t, (_, response) => response.writeHead(status).end(text + "\n"));
    await assert.rejects(agent.join("n", { addr: "a:1" }), unreachable, text);
    if (!text.startsWith("{") || status !== 200) await assert.rejects(agent.lines("/").next(), unreachable, text);
  }
});

test("an agent that says nothing", async (t) => {
  const silent = await stranger(t, () => {});
  await assert.rejects(silent.lines("/", { silence: 20 }).next(), unreachable);
  silent.timeout = 20;
  await assert.rejects(silent.call("GET", "/"), unreachable);
  const begins = await stranger(t, (_, response) => response.writeHead(200).write("{}\n{"));
  const lines = begins.lines("/", { silence: 20 });
  assert.deepEqual((await lines.next()).value, {});
  await assert.rejects(lines.next(), unreachable);
  begins.timeout = 20;
  await assert.rejects(begins.call("GET", "/"), unreachable);
});
