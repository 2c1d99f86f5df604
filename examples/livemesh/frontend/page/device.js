// A user's device: it publishes its address and knows those of the others. After a possible
// loss it publishes and reads everything again; package device does the same in Go.

const section = "address";
const minBackoff = 100, maxBackoff = 2000; // ms
const refreshing = 10 * 60 * 1000; // ms
const patience = 40 * 1000; // ms: for a response
const silence = 75 * 1000; // ms: the queue sends something every 30 s

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
    await this.#repeat("open the queue", async () => {
      const batch = await call("GET", path("queues", this.#name, "messages"));
      const last = batch.messages?.at(-1);
      this.#place = {epoch: batch.epoch, after: last ? last.number : 0};
      for (const m of batch.messages ?? []) this.#take(m);
    });
    if (!this.#place) return; // #repeat reported the error
    this.#lost();
    for (;;) {
      await this.#listen();
      this.#tell("state", {state: "offline"});
      await sleep(minBackoff);
    }
  }

  // move changes the device's address.
  move(address) {
    this.#address = address;
    this.#moved = true;
    this.#send();
  }

  #tell(type, detail) { this.dispatchEvent(new CustomEvent(type, {detail})); }

  // listen processes the queue's events until the connection ends.
  #listen() {
    return new Promise((ended) => {
      const {epoch, after} = this.#place;
      const source = new EventSource(path("queues", this.#name, "events") + `?epoch=${encodeURIComponent(epoch)}&after=${after}`);
      let timer;
      const close = () => { clearTimeout(timer); source.close(); ended(); };
      const alive = () => { clearTimeout(timer); timer = setTimeout(close, silence); };
      alive();
      source.onerror = close; // run connects again, from the current place
      source.onopen = () => { alive(); this.#tell("state", {state: "online"}); };
      source.addEventListener("alive", alive);
      source.addEventListener("lost", (e) => {
        alive();
        this.#at(e.lastEventId);
        this.#tell("loss", {text: "my queue was lost: repeating everything"});
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

  // acknowledge confirms all messages up to the current place. If that is lost, they are
  // delivered again.
  #acknowledge() {
    const {epoch, after} = this.#place;
    call("POST", path("queues", this.#name, "ack") + `?epoch=${encodeURIComponent(epoch)}&after=${after}`).catch(() => {});
  }

  // take processes a message. Anyone can send messages: an invalid one is not a reason to
  // stop, but it may have replaced a valid one.
  #take(m) {
    try {
      this.#process(m);
    } catch {
      this.#lost();
    }
  }

  #process(m) {
    if (m.missed) {
      this.#tell("loss", {text: "messages were missed: repeating everything"});
      this.#lost();
    } else if (m.lost) {
      this.#tell("loss", {text: `${m.lost.service} lost ${m.lost.names.join(", ")}: repeating everything`});
      this.#lost();
    } else if (m.body?.long) {
      this.#lost(); // read the whole document instead
    } else if (!this.#watch.includes(m.body?.document)) {
      // Subscribed by a previous device of this name.
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
    this.#send();
  }

  // send carries out pending work, one request after another.
  async #send() {
    if (this.#sending || !this.#place) return;
    this.#sending = true;
    while (this.#again || this.#moved || this.#stale) {
      if (this.#again) {
        this.#again = this.#moved = this.#stale = false;
        await this.#repeat("repeat everything", () => this.#everything());
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

  // read reads another device's address. If it has none, an event follows when it has one.
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
    if (e.status === 404 || e.status === 410) return undefined;
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
