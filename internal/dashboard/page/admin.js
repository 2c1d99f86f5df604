// Orders: only for who has logged in, and only after a question that says what will happen.

import { model } from "./model.js";
import { counted, keyText, make, percent, rangeText } from "./format.js";

const login = document.getElementById("login"), dialog = document.getElementById("dialog");
const title = document.getElementById("dialog-title"), body = document.getElementById("dialog-body");
const trouble = document.getElementById("dialog-trouble"), ok = document.getElementById("dialog-ok");
document.getElementById("dialog-cancel").addEventListener("click", () => dialog.close());

// ask opens the dialog. Act is called when it is confirmed; if it fails the dialog says why.
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
      await act();
      dialog.close();
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
  admin = false;
  #csrf = "";
  #changed = () => {};

  async begin(changed) {
    this.#changed = changed;
    login.addEventListener("click", () => this.admin ? this.#logout() : this.#ask());
    this.#take(await this.#send("GET", "session").catch(() => ({ possible: false })));
  }

  #take(session) {
    this.admin = Boolean(session.admin);
    this.#csrf = session.csrf ?? "";
    login.hidden = !session.possible;
    login.textContent = this.admin ? "Log out" : "Log in";
    this.#changed();
  }

  async #send(method, path, content) {
    const response = await fetch(`api/${path}`, {
      method, headers: { "Content-Type": "application/json", "X-Leasehold-Csrf": this.#csrf },
      body: content && JSON.stringify(content),
    });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error);
    return answer;
  }

  #ask() {
    const token = make("input", { type: "password", autocomplete: "current-password", required: true, id: "token" });
    ask("Log in as administrator", [make("label", {}, "Token, as in the file of --admin-token-file", token)], "Log in", false,
      async () => this.#take(await this.#send("POST", "login", { token: token.value })));
    token.focus();
  }

  async #logout() { this.#take(await this.#send("POST", "logout", {})); }

  drainButton(owner) {
    if (!this.admin) return "";
    return make("button", { type: "button", onclick: () => this.#drain(owner, owner.draining) }, owner.draining ? "Cancel drain" : "Drain…");
  }

  moveButton(i) {
    if (!this.admin) return "";
    const start = keyText(model.rows[i].start), limit = model.limitText(i);
    return make("button", { type: "button", onclick: () => this.#move(start, limit) }, "Move…");
  }

  async #drain(owner, cancel) {
    const order = { namespace: model.namespace, owner: owner.name, cancel };
    if (cancel) {
      ask(`Let ${owner.name} take part again?`, [make("p", {}, "It gets keys again, as the policy sees fit. What has moved stays where it is for now.")],
        "Cancel the drain", false, () => this.#send("POST", "drain", order));
      return;
    }
    await this.#confirm(`Drain ${owner.name}?`,
      `All keys of ${owner.name} in ${order.namespace} go to others, and it gets none until the drain is cancelled or its process ends.`, "Drain", "drain", order);
  }

  #move(start, limit) {
    const names = [...new Set([...model.owners.values()].filter(o => o.state === "member").map(o => o.name))].sort();
    const choice = make("select", { id: "target" }, ...names.map(name => make("option", { value: name }, name)));
    ask(`Move ${rangeText(start, limit)}`, [make("label", {}, "To the owner", choice)], "See what that does", false, async () => {
      const order = { namespace: model.namespace, owner: choice.value, start, limit };
      queueMicrotask(() => setTimeout(() => this.#confirm(`Move ${rangeText(start, limit)} to ${order.owner}?`,
        `${order.owner} gets this range of ${order.namespace}. The policy may move it on another time.`, "Move", "move", order)));
    });
  }

  // confirm says what an order would do, as the manager says beforehand, and then gives it.
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
      make("li", {}, `${rangeText(m.start, m.limit)}: ${m.from || "nobody"} to ${m.to || "nobody"}${m.withState ? "" : ", without its state"}`)),
      plan.total > 8 ? make("li", {}, `and ${plan.total - 8} more`) : null));
    ask(heading, content, word, plan.shareLost > 0, () => this.#send("POST", path, { ...order, loseState: plan.shareLost > 0 && lose.checked }));
  }
}

export const administrator = new Administrator();
