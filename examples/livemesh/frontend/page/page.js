import {Device} from "./device.js";

const $ = (id) => document.getElementById(id);
const query = new URLSearchParams(location.search);
const name = query.get("device");
const mostLines = 200;

function say(text, kind = "") {
  const line = document.createElement("li");
  const time = document.createElement("time");
  const now = new Date();
  time.dateTime = now.toISOString();
  time.textContent = now.toLocaleTimeString([], {hour12: false});
  const words = document.createElement("span");
  words.textContent = text;
  words.className = kind;
  line.append(time, words);
  $("log").prepend(line);
  while ($("log").childElementCount > mostLines) $("log").lastChild.remove();
}

function show(peer, address) {
  let value = document.querySelector(`dd[data-peer="${CSS.escape(peer)}"]`);
  if (!value) {
    const term = document.createElement("dt");
    term.textContent = peer;
    value = document.createElement("dd");
    value.dataset.peer = peer;
    $("peers").append(term, value);
  }
  value.textContent = address || "not known";
  value.dataset.known = address ? "yes" : "no";
  value.classList.remove("fresh");
  void value.offsetWidth; // restarts the animation
  if (address) value.classList.add("fresh");
}

function play() {
  const watch = (query.get("watch") ?? "").split(",").filter((w) => w !== "");
  document.title = `${name} - Live Mesh`;
  $("name").textContent = name;
  $("device").hidden = false;
  // A reloaded window keeps its address.
  const place = `address of ${name}`;
  const address = sessionStorage.getItem(place) ?? query.get("address") ?? `10.0.0.${1 + Math.floor(Math.random() * 250)}`;
  $("address").value = address;
  for (const peer of watch) show(peer, "");
  $("nobody").hidden = watch.length > 0;

  const device = new Device(name, watch, address);
  device.addEventListener("state", ({detail: {state}}) => {
    if ($("state").dataset.state === state) return;
    $("state").dataset.state = state;
    $("state").textContent = state;
    say(state === "online" ? "connected to my queue" : "the connection to my queue has ended");
  });
  device.addEventListener("published", ({detail: {address}}) => {
    $("published").textContent = `${address} is published`;
    $("published").dataset.address = address;
    say(`published ${address}`);
  });
  device.addEventListener("learned", ({detail: {name: peer, address}}) => {
    show(peer, address);
    say(address ? `${peer} is at ${address}` : `${peer} has no address`);
  });
  device.addEventListener("loss", ({detail: {text}}) => say(text, "loss"));
  $("move").addEventListener("submit", (e) => {
    e.preventDefault();
    const moved = $("address").value.trim();
    if (moved === "") return;
    sessionStorage.setItem(place, moved);
    $("published").textContent = `${moved} is being published`;
    device.move(moved);
  });
  device.run();
}

if (name) play();
else $("choose").hidden = false;
