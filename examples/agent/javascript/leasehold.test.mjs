// Tests of the arithmetic: node --test

import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import { after, afterEach, beforeEach, test } from "node:test";
import { Agent, keyOf } from "./leasehold.mjs";

// A clock that stands still, but for what a test adds.
class FakeClock {
  monotonic = 100000;
  wall = 1e12;
  read() {
    return { monotonic: this.monotonic, wall: this.wall };
  }
  since(reading) {
    return Math.max(this.monotonic - reading.monotonic, this.wall - reading.wall);
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
