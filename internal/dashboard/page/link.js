// The stream from the manager, and what its silence means.

import { model } from "./model.js";
import { timeOf, duration } from "./format.js";

// The manager speaks every second. So long without a word is out of touch.
const patience = 3500;

export class Link {
  #source = null;
  #heard = 0;      // when the last frame came
  #id = "";        // of the last frame
  #changed;        // called with what is new: "snapshot", "news" or "live"

  constructor(changed) {
    this.#changed = changed;
    setInterval(() => this.judge(), 500);
  }

  open(namespace) {
    this.#source?.close();
    if (model.namespace !== namespace) {
      model.clear(namespace);
      this.#id = "";
    }
    const query = new URLSearchParams({ namespace, last: this.#id });
    const source = this.#source = new EventSource(`api/stream?${query}`);
    for (const kind of ["snapshot", "news", "live"]) {
      source.addEventListener(kind, event => {
        this.#heard = performance.now();
        this.#id = event.lastEventId;
        const fits = model[kind](JSON.parse(event.data));
        if (fits === false) { // something is missing: everything is asked for again
          this.#id = "";
          this.open(namespace);
          return;
        }
        this.#changed(kind);
        this.judge();
      });
    }
    source.addEventListener("error", () => {
      if (source === this.#source && source.readyState === EventSource.CLOSED) {
        setTimeout(() => source === this.#source && this.open(namespace), 1500); // it was refused: the browser gives up, we do not
      }
      this.judge();
    });
  }

  // judge shows how fresh what is shown is.
  judge() {
    const silent = performance.now() - this.#heard;
    const lost = this.#heard === 0 || silent > patience;
    const state = document.getElementById("connection"), trouble = document.getElementById("trouble");
    const asOf = (at, seconds) => at ? `What is shown is as of ${timeOf(at)}, ${duration(seconds)} ago. ` : "";
    let text = "";
    if (lost && this.#heard !== 0) {
      text = `This manager, ${location.host}, does not answer. ${asOf(model.stale?.since ?? model.at, silent / 1000 + staleFor())}It is asked again and again; another manager of the group may answer.`;
    } else if (!lost && model.stale) {
      text = `This manager is out of touch: ${model.stale.why}. ${asOf(model.stale.since, staleFor() + silent / 1000)}`;
    }
    put(state, this.#heard === 0 ? "connecting" : lost ? "unreachable" : model.stale ? "out of touch" : `live, at ${model.status?.manager ?? location.host}`);
    state.dataset.state = this.#heard === 0 ? "connecting" : lost ? "lost" : model.stale ? "stale" : "live";
    put(trouble, text);
    trouble.hidden = text === "";
    document.body.toggleAttribute("data-stale", text !== "");
  }
}

const staleFor = () => model.stale?.since ? (model.at - model.stale.since) / 1000 : 0;
const put = (element, text) => { if (element.textContent !== text) element.textContent = text; };
