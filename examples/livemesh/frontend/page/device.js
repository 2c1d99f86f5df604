// A device of a user: it publishes its address and knows those of the others. What may have
// been lost it says again, all of it; see package device, which does the same in Go.

const section = "address";
const minBackoff = 100, maxBackoff = 2000; // ms
const refreshing = 10 * 60 * 1000; // ms
const patience = 40 * 1000; // ms: for an answer
const silence = 75 * 1000; // ms: the queue says something every 30 s

// newer compares versions, "12.3" for instance. Their numbers may be larger than those of
// JavaScript.
export function newer(a, b) {
  const [g, n] = a.split("."), [h, m] = (b || "0.0").split(".");
  const generation = BigInt(g), other = BigInt(h);
  return generation > other || generation === other && BigInt(n) > BigInt(m);
}

export class Device extends EventTarget {
  #name; #watch; #address;
  #peers = new Map(); // name -> {version, address}
  #place = null; // {epoch, after} in its queue
  #version = ""; // of the address that was published last
  #again = false; #moved = false; #stale = false;
  #speaking = false;

  constructor(name, watch, address) {
    super();
    this.#name = name;
    this.#watch = watch;
    this.#address = address;
  }

  // run begins, and ends only if no queue can have the device's name.
  async run() {
    setInterval(() => { this.#stale = true; this.#speak(); }, refreshing);
    await this.#repeat("open the queue", async () => {
      const batch = await call("GET", path("queues", this.#name, "messages"));
      const last = batch.messages?.at(-1);
      this.#place = {epoch: batch.epoch, after: last ? last.number : 0};
      for (const m of batch.messages ?? []) this.#take(m);
    });
    if (!this.#place) return; // it was said why
    this.#lost();
    for (;;) {
      await this.#listen();
      this.#tell("state", {state: "offline"});
      await sleep(minBackoff);
    }
  }

  // move gives the device another address.
  move(address) {
    this.#address = address;
    this.#moved = true;
    this.#speak();
  }

  #tell(type, detail) { this.dispatchEvent(new CustomEvent(type, {detail})); }

  // listen takes what the queue pushes, until the connection ends.
  #listen() {
    return new Promise((ended) => {
      const {epoch, after} = this.#place;
      const source = new EventSource(path("queues", this.#name, "events") + `?epoch=${encodeURIComponent(epoch)}&after=${after}`);
      let timer;
      const close = () => { clearTimeout(timer); source.close(); ended(); };
      const alive = () => { clearTimeout(timer); timer = setTimeout(close, silence); };
      alive();
      source.onerror = close; // we come again by ourselves, from where we are
      source.onopen = () => { alive(); this.#tell("state", {state: "online"}); };
      source.addEventListener("alive", alive);
      source.addEventListener("lost", (e) => {
        alive();
        this.#at(e.lastEventId);
        this.#tell("loss", {text: "my queue was lost: I say everything again"});
        this.#lost();
      });
      source.onmessage = (e) => {
        alive();
        this.#take(JSON.parse(e.data));
        this.#at(e.lastEventId);
        this.#acknowledge();
      };
    });
  }

  #at(id) {
    const slash = id.lastIndexOf("/");
    this.#place = {epoch: id.slice(0, slash), after: Number(id.slice(slash + 1))};
  }

  // acknowledge says that we have everything up to here. If that is lost, we get it again.
  #acknowledge() {
    const {epoch, after} = this.#place;
    call("POST", path("queues", this.#name, "ack") + `?epoch=${encodeURIComponent(epoch)}&after=${after}`).catch(() => {});
  }

  // take takes in a message. Anybody may have left it: one that makes no sense is no reason
  // to stop, but may be instead of one that did.
  #take(m) {
    try {
      this.#understand(m);
    } catch {
      this.#lost();
    }
  }

  #understand(m) {
    if (m.missed) {
      this.#tell("loss", {text: "messages were missed: I ask again"});
      this.#lost();
    } else if (m.lost) {
      this.#tell("loss", {text: `${m.lost.service} lost ${m.lost.names.join(", ")}: I say everything again`});
      this.#lost();
    } else if (m.body?.long) {
      this.#lost(); // we read it
    } else if (!this.#watch.includes(m.body?.document)) {
      // Who had the name before has subscribed to it.
    } else if (m.body?.set && section in m.body.set) {
      this.#learn(m.body.document, m.body.version, m.body.set[section]);
    } else if (m.body?.deleted || m.body?.removed?.includes(section)) {
      this.#learn(m.body.document, m.body.version, "");
    }
  }

  #learn(name, version, address) {
    const known = this.#peers.get(name);
    if (typeof address !== "string" || !newer(version, known?.version)) return;
    this.#peers.set(name, {version, address});
    if (address !== known?.address) this.#tell("learned", {name, address});
  }

  #lost() {
    this.#again = true;
    this.#speak();
  }

  // speak says what is to be said, one thing at a time.
  async #speak() {
    if (this.#speaking || !this.#place) return;
    this.#speaking = true;
    while (this.#again || this.#moved || this.#stale) {
      if (this.#again) {
        this.#again = this.#moved = this.#stale = false;
        await this.#repeat("say everything", () => this.#everything());
      } else if (this.#moved) {
        this.#moved = false;
        await this.#repeat("publish", () => this.#publish());
      } else {
        this.#stale = false;
        await this.#repeat("refresh", () => this.#refresh());
      }
    }
    this.#speaking = false;
  }

  // everything comes in this order: what we depend on first, and what we read last.
  async #everything() {
    const interests = [{service: "documents", name: this.#name}];
    for (const name of this.#watch) interests.push({service: "topics", name}, {service: "documents", name});
    await call("PUT", path("queues", this.#name, "interests"), interests);
    for (const name of this.#watch) await call("PUT", path("topics", name, "subscriptions", this.#name) + "?ttl=1h");
    await this.#publish();
    for (const name of this.#watch) await this.#read(name);
  }

  async #publish() {
    const address = this.#address;
    try {
      await this.#write(address);
    } catch (e) {
      if (e.status !== 412) throw e;
      // It was lost, or a request of ours that had no answer has been carried out.
      const document = await unlessGone(call("GET", path("documents", this.#name)));
      this.#version = document?.sections?.[section]?.version ?? "";
      await this.#write(address);
    }
    this.#tell("published", {address});
  }

  // write replaces the version of the address that we know: a request that was given up, and
  // arrives after this one, finds another and changes nothing.
  async #write(address) {
    const document = await call("PATCH", path("documents", this.#name), {if: {[section]: this.#version}, set: {[section]: address}});
    this.#version = document.sections[section].version;
  }

  // read learns another device's address, or that it has none: it will say so when it has.
  async #read(name) {
    const before = this.#peers.get(name)?.version;
    const document = await unlessGone(call("GET", path("documents", name)));
    const found = document?.sections?.[section], known = this.#peers.get(name);
    if (found) {
      this.#learn(name, found.version, found.data);
    } else if (known?.address && known.version === before) {
      this.#peers.set(name, {version: before, address: ""});
      this.#tell("learned", {name, address: ""});
    }
  }

  async #refresh() {
    let gone = await unlessGone(call("POST", path("documents", this.#name, "refresh"))) === undefined;
    for (const name of this.#watch) {
      gone = await unlessGone(call("POST", path("topics", name, "subscriptions", this.#name, "refresh") + "?ttl=1h")) === undefined || gone;
    }
    if (gone) this.#again = true;
  }

  // repeat does something until it succeeds. What is wrong stays wrong, and is said.
  async #repeat(what, action) {
    for (let wait = minBackoff; ; wait = Math.min(2 * wait, maxBackoff)) {
      try {
        return await action();
      } catch (e) {
        if (e.status === 400 || e.status === 413) {
          this.#tell("loss", {text: `cannot ${what}: ${e.message}`});
          return;
        }
        await sleep(wait);
      }
    }
  }
}

class Failure extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// unlessGone is undefined if there is nothing.
async function unlessGone(promise) {
  try {
    return await promise;
  } catch (e) {
    if (e.status === 404 || e.status === 410) return undefined;
    throw e;
  }
}

// call asks a service. An answer without a body is null.
async function call(method, url, body) {
  const answer = await fetch(url, {
    method,
    body: body === undefined ? undefined : JSON.stringify(body),
    headers: body === undefined ? {} : {"Content-Type": "application/json"},
    signal: AbortSignal.timeout(patience),
  });
  const text = await answer.text();
  if (!answer.ok) {
    let message = text;
    try { message = JSON.parse(text).message; } catch { /* it is plain text */ }
    throw new Failure(answer.status, message);
  }
  return text === "" ? null : JSON.parse(text);
}

function path(...segments) { return "/" + segments.map(encodeURIComponent).join("/"); }

function sleep(ms) { return new Promise((done) => { setTimeout(done, ms); }); }
