// The stream from the manager, and what its silence means.

import { model } from "./model.js";
import { dateOf, duration } from "./format.js";
import { others } from "./sections.js";

// The manager speaks every second. So long without a word is out of touch.
const patience = 3500;

export class Link {
  #source = null;
  #begun = 0;      // when the page began to ask
  #heard = 0;      // time of the last frame
  #id = "";        // of the last frame
  #refusal = "";   // why the manager does not let us look, in its words
  #denied;         // called when we may not look, or no longer
  #changed;        // called when something is new

  constructor(denied, changed) {
    this.#denied = denied;
    this.#changed = changed;
    this.#begun = performance.now();
    setInterval(() => this.judge(), 500);
  }

  open(namespace) {
    this.#source?.close();
    if (model.namespace !== namespace) {
      model.clear(namespace);
      this.#id = "";
    }
    const address = `api/stream?${new URLSearchParams({ namespace, last: this.#id })}`;
    const source = this.#source = new EventSource(address);
    const again = () => source === this.#source && this.open(namespace);
    for (const kind of ["snapshot", "news", "live"]) {
      source.addEventListener(kind, event => {
        if (source !== this.#source) return;
        this.#heard = performance.now();
        this.#id = event.lastEventId;
        this.#refusal = "";
        if (model[kind](JSON.parse(event.data)) === false) { // something is missing: everything is asked for again
          source.close();
          this.#id = "";
          setTimeout(again, 500);
          return;
        }
        this.#changed();
        this.judge();
      });
    }
    source.addEventListener("error", async () => {
      if (source !== this.#source || source.readyState !== EventSource.CLOSED) return; // the browser tries again
      const { why, denied } = await refusal(address);
      if (source !== this.#source) return;
      this.#refusal = why;
      if (denied) {
        this.#id = "";
        model.clear(namespace);
        this.#changed();
        this.#denied();
      }
      setTimeout(again, 1500); // the browser gives up, we do not
      this.judge();
    });
  }

  // leave ends the stream of a hidden page.
  leave() {
    this.#source?.close();
    this.#source = null;
  }

  // close ends the stream, and forgets what it has shown.
  close() {
    this.leave();
    this.#heard = 0;
    this.#id = this.#refusal = "";
    model.clear("");
    this.#changed();
    this.judge();
  }

  // judge displays the age of the data.
  judge() {
    const now = performance.now(), silent = now - (this.#heard || this.#begun);
    const closed = this.#source === null;
    const connecting = !closed && this.#heard === 0 && !this.#refusal && silent <= patience;
    const lost = !closed && !connecting && (this.#heard === 0 || silent > patience);
    const since = model.stale ? model.stale.since : model.at;
    let what = "";
    if (lost && this.#refusal) {
      what = `This manager, ${location.host}, shows nothing: ${this.#refusal}.`;
    } else if (lost) {
      what = `This manager, ${location.host}, does not answer. It is asked again and again. Another manager of the group may answer.`;
    } else if (!closed && !connecting && model.stale) {
      what = `This manager is out of touch: ${model.stale.why}.`;
    }
    const age = (model.at - since + silent) / 1000;
    const old = what && since ? ` What is shown is as of ${dateOf(since)}` : "";
    const state = part("connection");
    put(state, closed ? "not logged in" : connecting ? "connecting" : lost ? "unreachable" : model.stale ? "out of touch" : `live, at ${model.status?.manager ?? location.host}`);
    state.dataset.state = closed || connecting ? "connecting" : lost ? "lost" : model.stale ? "stale" : "live";
    part("trouble").hidden = what === "";
    put(part("trouble-what"), what + (old && old + "."));
    put(part("trouble-age"), old && `That is ${duration(age)} ago.`); // it is not read out: it changes every second
    const links = lost ? others() : [];
    if (part("trouble-others").children.length !== links.length) part("trouble-others").replaceChildren(...links.flatMap((link, i) => [i === 0 ? "Look at " : ", ", link]));
    document.body.toggleAttribute("data-stale", what !== "");
  }
}

// refusal asks in another way why there is no stream: EventSource does not tell.
async function refusal(address) {
  const stop = new AbortController();
  try {
    const response = await fetch(address, { signal: stop.signal });
    if (response.ok) return { why: "" }; // it was a passing trouble
    const why = (await response.json().catch(() => null))?.error ?? `the answer has status ${response.status}`;
    return { why, denied: response.status === 401 || response.status === 403 };
  } catch {
    return { why: "" }; // it does not answer at all
  } finally {
    stop.abort();
  }
}

const part = id => document.getElementById(id);
const put = (element, text) => { if (element.textContent !== text) element.textContent = text; };
