// A user's device: it publishes its address and knows those of the others. After a possible
// loss it publishes and reads everything again; package device does the same in Go.

const section = "address";
const minBackoff = 100, maxBackoff = 2000; // ms
const refreshing = 10 * 60 * 1000; // ms
const longPoll = "25s";
const patience = 40 * 1000; // ms: for a response

export class Device extends EventTarget {
  #name; #watch; #address;
  #peers = new Map(); // name -> address
  #changed = new Set(); // names whose documents are to be read
  #place = {epoch: "", after: 0}; // in its queue
  #version = ""; // of the last published address
  #again = false; #moved = false; #stale = false;
  #sending = false;

  constructor(name, watch, address) {
    super();
    this.#name = name;
    this.#watch = watch;
    this.#address = address;
  }

  // run starts the device, and ends only if its name is not valid for a queue.
  async run() {
    setInterval(() => { this.#stale = true; this.#send(); }, refreshing);
    for (;;) {
      const batch = await this.#repeat("receive", () => this.#receive());
      if (!batch) return; // #repeat reported the error
      this.#tell("state", {state: "online"});
      if (batch.lost || this.#place.epoch === "") {
        if (batch.lost) this.#tell("loss", {text: "my queue was lost: repeating everything"});
        this.#place = {epoch: batch.epoch, after: 0};
        this.#lost();
      }
      for (const m of batch.messages ?? []) {
        this.#take(m);
        this.#place.after = m.number;
      }
    }
  }

  // receive acknowledges the messages up to the current place, and waits for later ones.
  #receive() {
    const {epoch, after} = this.#place;
    const wait = epoch === "" ? "0s" : longPoll;
    return call("GET", path("queues", this.#name, "messages") + `?wait=${wait}&epoch=${encodeURIComponent(epoch)}&after=${after}`);
  }

  // move changes the device's address.
  move(address) {
    this.#address = address;
    this.#moved = true;
    this.#send();
  }

  #tell(type, detail) { this.dispatchEvent(new CustomEvent(type, {detail})); }

  // take processes a message. Any client can send one: an invalid one may have replaced a valid
  // one.
  #take(m) {
    if (m.missed) {
      this.#tell("loss", {text: "messages were missed: repeating everything"});
      this.#lost();
    } else if (m.lost) {
      this.#tell("loss", {text: `${m.lost.service} lost ${m.lost.names.join(", ")}: repeating everything`});
      this.#lost();
    } else if (!m.body?.document) {
      this.#lost();
    } else if (this.#watch.includes(m.body.document)) { // or a previous device of this name has subscribed
      this.#changed.add(m.body.document);
      this.#send();
    }
  }

  #lost() {
    this.#again = true;
    this.#send();
  }

  // send carries out pending work, one request after another.
  async #send() {
    if (this.#sending || this.#place.epoch === "") return;
    this.#sending = true;
    while (this.#again || this.#moved || this.#stale || this.#changed.size > 0) {
      if (this.#again) {
        this.#again = this.#moved = this.#stale = false;
        await this.#repeat("repeat everything", () => this.#everything());
      } else if (this.#changed.size > 0) {
        const names = [...this.#changed];
        this.#changed.clear();
        await this.#repeat("read addresses", () => this.#read(names));
      } else if (this.#moved) {
        this.#moved = false;
        await this.#repeat("publish", () => this.#publish());
      } else {
        this.#stale = false;
        await this.#repeat("refresh", () => this.#refresh());
      }
    }
    this.#sending = false;
  }

  // everything subscribes before it publishes, and reads last.
  async #everything() {
    const interests = [{service: "documents", name: this.#name}];
    for (const name of this.#watch) interests.push({service: "topics", name}, {service: "documents", name});
    await call("PUT", path("queues", this.#name, "interests"), interests);
    for (const name of this.#watch) await call("PUT", path("topics", name, "subscriptions", this.#name));
    await this.#publish();
    await this.#read(this.#watch);
  }

  async #publish() {
    const address = this.#address;
    try {
      await this.#write(address);
    } catch (e) {
      if (e.status !== 412) throw e;
      // The document was lost, or a previous request without response was carried out.
      const document = await unlessGone(call("GET", path("documents", this.#name)));
      this.#version = document?.sections?.[section]?.version ?? "";
      await this.#write(address);
    }
    this.#tell("published", {address});
  }

  // write replaces the known version of the address. An abandoned request that arrives after
  // this one fails, because the version has changed.
  async #write(address) {
    const document = await call("PATCH", path("documents", this.#name), {if: {[section]: this.#version}, set: {[section]: address}});
    this.#version = document.sections[section].version;
  }

  // read reads the addresses of other devices. If one has none, a message follows when it has one.
  async #read(names) {
    for (const name of names) {
      const document = await unlessGone(call("GET", path("documents", name)));
      const found = document?.sections?.[section]?.data;
      const address = typeof found === "string" ? found : "";
      if (address === (this.#peers.get(name) ?? "")) continue;
      this.#peers.set(name, address);
      this.#tell("learned", {name, address});
    }
  }

  async #refresh() {
    let gone = await unlessGone(call("POST", path("documents", this.#name, "refresh"))) === undefined;
    for (const name of this.#watch) {
      gone = await unlessGone(call("POST", path("topics", name, "subscriptions", this.#name, "refresh"))) === undefined || gone;
    }
    if (gone) this.#again = true;
  }

  // repeat repeats an action until it succeeds. Invalid requests are reported, not repeated.
  async #repeat(what, action) {
    for (let wait = minBackoff; ; wait = Math.min(2 * wait, maxBackoff)) {
      try {
        return await action();
      } catch (e) {
        if (e.status === 400 || e.status === 413) {
          this.#tell("loss", {text: `cannot ${what}: ${e.message}`});
          return;
        }
        if (what === "receive") this.#tell("state", {state: "offline"});
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

// unlessGone resolves with undefined if the object does not exist.
async function unlessGone(promise) {
  try {
    return await promise;
  } catch (e) {
    if (e.status === 404) return undefined;
    throw e;
  }
}

// call sends a request to a service, and resolves with the body, null if it is empty.
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
