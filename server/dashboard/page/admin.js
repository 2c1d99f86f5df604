// Orders: after a login, and after a confirmation of the plan.

import { ask as call } from "./ask.js";
import { model, stateOf } from "./model.js";
import { counted, make, percent, rangeText } from "./format.js";

const login = document.getElementById("login"), who = document.getElementById("who"), dialog = document.getElementById("dialog");
const title = document.getElementById("dialog-title"), body = document.getElementById("dialog-body");
const trouble = document.getElementById("dialog-trouble"), ok = document.getElementById("dialog-ok");
document.getElementById("dialog-cancel").addEventListener("click", () => dialog.close());

// ask opens the dialog. Act is called when it is confirmed; if it fails the dialog says why, and
// if it returns true there is another question. Without act there is nothing to confirm.
function ask(heading, content, confirm, danger, act) {
  title.textContent = heading;
  body.replaceChildren(...content);
  ok.textContent = confirm;
  ok.className = danger ? "danger" : "";
  ok.hidden = !act;
  complain("");
  dialog.querySelector("form").onsubmit = async event => {
    event.preventDefault();
    ok.disabled = true;
    try {
      if (await act?.() !== true) dialog.close();
    } catch (error) {
      complain(error.message);
    } finally {
      ok.disabled = false;
    }
  };
  if (!dialog.open) dialog.showModal();
}

function complain(text) {
  trouble.textContent = text;
  trouble.hidden = text === "";
}

class Administrator {
  admin = false;    // orders may be given, in the namespace that is shown
  looks = true;     // it is known who looks, or need not be
  #required = false; // it must be known who looks
  #loggedIn = false;
  #csrf = "";
  #asked = 0;       // how often it was asked who we are
  #changed = () => {};

  async begin(changed) {
    this.#changed = changed;
    login.addEventListener("click", () => this.#loggedIn ? this.#logout() : this.#ask());
    await this.refresh();
  }

  // refresh asks who we are, and what we may do in the namespace that is shown.
  async refresh() {
    const asked = ++this.#asked, about = new URLSearchParams({ namespace: model.namespace });
    const session = await call(`session?${about}`).catch(error => ({ possible: error.status === 401, required: error.status === 401 }));
    if (asked === this.#asked) this.#take(session);
  }

  #take(session) {
    this.#asked++;
    this.admin = Boolean(session.admin);
    this.#required = Boolean(session.required);
    this.looks = !this.#required || Boolean(session.csrf);
    this.#loggedIn = Boolean(session.loggedIn);
    this.#csrf = session.csrf ?? "";
    login.hidden = !session.possible;
    login.textContent = this.#loggedIn ? "Log out" : "Log in";
    who.textContent = session.who ? `${session.who}${this.admin ? "" : ", who may look"}` : "";
    who.hidden = !session.who;
    this.#changed();
  }

  async #send(method, path, content) {
    try {
      return await call(path, {
        method, headers: { "Content-Type": "application/json", "X-Leasehold-Csrf": this.#csrf },
        body: content && JSON.stringify(content),
      });
    } catch (error) {
      if ((error.status === 401 || error.status === 403) && this.admin) await this.refresh(); // the session may be over
      throw error;
    }
  }

  // wanted prompts for a login if viewers must authenticate.
  wanted() { if (!dialog.open) this.#ask(); }

  #ask() {
    const token = make("input", { type: "password", autocomplete: "current-password", required: true, id: "token" });
    const [heading, label] = this.#required ? ["Log in", "Token, as leasehold token made it"] : ["Log in as administrator", "Token, as in the file of --admin-token-file"];
    ask(heading, [make("label", {}, label, token)], "Log in", false, async () => {
      this.#take(await this.#send("POST", "login", { token: token.value }));
      await this.refresh();
    });
    token.focus();
  }

  async #logout() {
    try {
      this.#take(await this.#send("POST", "logout", {}));
    } catch (error) {
      ask("Still logged in", [make("p", { class: "bad" }, error.message)], "", false, null);
    }
  }

  drainButton(owner) {
    if (!this.admin) return "";
    return make("button", { type: "button", onclick: () => this.#drain(owner, owner.draining) }, owner.draining ? "Cancel drain" : "Drain…");
  }

  moveButton(i) {
    if (!this.admin) return "";
    const range = model.interval(i);
    return make("button", { type: "button", onclick: () => this.#move(range) }, "Move…");
  }

  async #drain(owner, cancel) {
    const order = { namespace: model.namespace, owner: owner.owner, cancel };
    if (cancel) {
      ask(`Let ${owner.owner} take part again?`, [make("p", {}, "It gets keys again, as the policy sees fit. What has moved stays where it is for now.")],
        "Cancel the drain", false, () => this.#send("POST", "drain", order));
      return;
    }
    await this.#confirm(`Drain ${owner.owner}?`,
      `All keys of ${owner.owner} in ${order.namespace} go to others, and it gets none until the drain is cancelled or its process ends.`, "Drain", "drain", order);
  }

  #move(range) {
    const names = [...new Set([...model.owners.values()].filter(o => stateOf(o) === "member").map(o => o.owner))].sort();
    const choice = make("select", { id: "target" }, ...names.map(name => make("option", { value: name }, name)));
    ask(`Move ${rangeText(range)}`, [make("label", {}, "To the owner", choice)], "See what that does", false, async () => {
      const order = { namespace: model.namespace, owner: choice.value, ...range };
      await this.#confirm(`Move ${rangeText(range)} to ${order.owner}?`,
        `${order.owner} gets this range of ${order.namespace}. The policy may move it on another time.`, "Move", "move", order);
      return true;
    });
  }

  // confirm shows the manager's plan of an order, and then sends the order.
  async #confirm(heading, text, word, path, order) {
    let plan;
    try {
      plan = await this.#send("POST", path, { ...order, dryRun: true });
    } catch (error) {
      ask(heading, [make("p", { class: "bad" }, error.message)], "", false, null);
      return;
    }
    const lose = make("input", { type: "checkbox", required: true, id: "lose" });
    const content = [make("p", {}, text), make("p", { id: "plan" }, plan.total === 0 ? "Nothing has to move."
      : `${counted(plan.total, "range")}, ${percent(plan.share)} of the keys, would move${plan.shareLost > 0 ? "" : " with their state"}.`)];
    if (plan.shareLost > 0) {
      content.push(make("p", { class: "bad" }, `The state of ${percent(plan.shareLost)} of the keys would be LOST, because not everyone concerned can move state.`),
        make("label", {}, lose, " I mean it: this state may be lost"));
    }
    content.push(make("ul", { class: "plan" }, ...plan.moves.slice(0, 8).map(m =>
      make("li", {}, `${rangeText(m)}: ${m.from || "none"} to ${m.to || "none"}${m.withState ? "" : ", without its state"}`)),
      plan.total > 8 ? make("li", {}, `and ${plan.total - 8} more`) : null));
    ask(heading, content, word, plan.shareLost > 0, () => this.#send("POST", path, { ...order, loseState: plan.shareLost > 0 && lose.checked }));
  }
}

export const administrator = new Administrator();
