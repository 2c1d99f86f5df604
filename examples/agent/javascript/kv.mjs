// An in-memory hashtable, partitioned over servers, in JavaScript.
//
//   node kv.mjs serve HOST:PORT       one server
//   node kv.mjs put KEY VALUE         stores an entry, wherever that is
//   node kv.mjs get KEY
//   node kv.mjs losses                prints what is lost, as it happens
//
// AGENT is the address of the agent, http://127.0.0.1:7404 unless set, and NAMESPACE that
// of the servers, "kv" unless set. Every key has one server at a time. Entries die with
// their server: its keys go to others, without them.

import http from "node:http";
import { Agent, LeaseholdError, keyOf } from "./leasehold.mjs";

let agent; // set by main
const namespace = process.env.NAMESPACE ?? "kv";
const notOwner = 421;
const maxValue = 1 << 20;

// A Table is one server's part of the hashtable.
class Table {
  entries = new Map(); // name -> { generation, value }
  work = new Map(); // unreported requests by name

  // do runs an operation on the value of a name. It resolves with the generation of the
  // lease and the value, or null if this server does not own the key, or lost it meanwhile.
  // There is no await from (1) to (4), so no other request can run in between.
  async do(name, operation) {
    await this.owner.check(name); // may send a request to the agent
    const lease = this.owner.checkNow(name); // (1) is this the right server?
    if (lease === null) return null;
    const entry = this.entries.get(name);
    const old = entry?.generation === lease.generation ? entry.value : ""; // (2) is the entry from this lease?
    const value = operation(old); // (3) operate, and stamp the result
    this.entries.set(name, { generation: lease.generation, value });
    if (!this.owner.heldNow(lease)) return null; // (4) was the lease held throughout?
    this.work.set(name, (this.work.get(name) ?? 0) + 1);
    return { generation: lease.generation, value }; // (5) only now is the result visible
  }

  // report reports the load of keys, by which the manager balances them. After an error the
  // next report follows.
  report() {
    const work = this.work;
    this.work = new Map();
    this.owner.report(work).catch(() => {});
  }

  // forget removes the entries of ended leases.
  forget(ended) {
    for (const [name, { generation }] of this.entries) {
      const key = keyOf(name);
      if (ended.some((l) => l.covers(key) && generation <= l.generation)) this.entries.delete(name);
    }
  }
}

// body resolves with the body of a request, or null if it is too long.
async function body(request) {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) {
    text += chunk;
    if (text.length > maxValue) return null;
  }
  return text;
}

async function serve(addr) {
  const table = new Table();
  const server = http.createServer({ requestTimeout: 10000 }, async (request, response) => {
    try {
      const value = await body(request);
      if (value === null) return response.writeHead(413).end();
      const name = decodeURIComponent(request.url.slice(1));
      const done = await table.do(name, (old) => (request.method === "PUT" ? value : old));
      response.writeHead(done ? 200 : notOwner, { Generation: String(done?.generation ?? 0) });
      response.end(done ? done.value : "not the owner");
    } catch {
      response.writeHead(400).end();
    }
  });
  const [host, port] = addr.split(/:(?=\d+$)/);
  if (!host || !port) throw new LeaseholdError("invalid", `"${addr}": want HOST:PORT, where callers reach this server`);
  await new Promise((resolve, reject) => server.on("error", reject).listen(Number(port), host, resolve)); // before joining: an owner must be able to serve
  table.owner = await agent.join(namespace, { addr, ttl: 3000, load: "reported", onRevoke: (ended) => table.forget(ended) });
  const reporting = setInterval(() => table.report(), 1000);
  console.log("serving", addr);
  let stopping = false;
  const stop = async () => {
    if (stopping) return;
    stopping = true;
    clearInterval(reporting);
    try {
      await table.owner.close(); // before the server stops, so that callers find the next owner
    } catch (e) {
      console.error(`kv: the leases run out by themselves: ${e.message}`);
    } finally {
      server.close();
      server.closeAllConnections?.();
    }
  };
  process.on("SIGTERM", stop).on("SIGINT", stop);
}

// call sends a request to the server that owns the key.
async function call(method, name, value) {
  const { addr, text } = await agent.lookup(namespace).do(name, async (addr) => {
    let answer;
    try {
      answer = await fetch(`http://${addr}/${encodeURIComponent(name)}`, { method, body: value, signal: AbortSignal.timeout(5000) });
      const text = await answer.text();
      return answer.status === notOwner ? undefined : { addr, text };
    } catch {
      return undefined; // not reachable: find the owner again
    }
  });
  console.log(`${name} = ${text} (at ${addr})`);
}

// connect checks that there is an agent, and fails without one. Later the agent may be
// restarted.
async function connect() {
  agent = new Agent(process.env.AGENT ?? "http://127.0.0.1:7404");
  await agent.call("GET", "/v1/status");
}

async function main(command, ...args) {
  if (command === "serve" && args.length === 1) {
    await connect();
    await serve(args[0]);
  } else if (command === "put" && args.length === 2) {
    await connect();
    await call("PUT", args[0], args[1]);
  } else if (command === "get" && args.length === 1) {
    await connect();
    await call("GET", args[0]);
  } else if (command === "losses" && args.length === 0) {
    await connect();
    for await (const loss of agent.lookup(namespace).losses()) {
      console.log("lost", loss.start, loss.limit, loss.owner, loss.cause);
    }
  } else {
    console.error("usage: node kv.mjs serve HOST:PORT | put KEY VALUE | get KEY | losses");
    process.exitCode = 2;
  }
}

try {
  await main(...process.argv.slice(2));
} catch (e) {
  if (!(e instanceof LeaseholdError) && e.code === undefined) throw e; // a bug
  console.error(`kv: ${e.message}`);
  process.exit(1);
}
