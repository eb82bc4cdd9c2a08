// SPDX-License-Identifier: Apache-2.0
"use strict";

// The page keeps what the server has told and shows it. Texts are only ever put into text
// nodes and attributes of our own elements. The token comes behind the # of the address,
// stays in this tab, and goes with each request in a header.
const $ = (id) => document.getElementById(id);
const pages = ["requests", "timeline", "rules", "scopes"];
const maxRows = 500;
const state = { requests: [], grants: { problem: "", list: [] }, scopes: [], rules: [], rows: new Map(), skew: 0, problem: "", opened: new Set(), graphs: new Map(), told: null };

const el = (name, properties = {}, ...children) => {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "class") e.className = value;
    else if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else if (value !== undefined) e.setAttribute(key, value);
  }
  e.append(...children.filter((c) => c !== undefined && c !== ""));
  return e;
};

// The token.
const token = (() => {
  const given = /^#token=([\w-]+)$/.exec(location.hash);
  if (given) {
    sessionStorage.setItem("token", given[1]);
    history.replaceState(null, "", location.pathname);
  }
  return given ? given[1] : sessionStorage.getItem("token") ?? "";
})();

const ask = (path, options = {}) =>
  fetch(path, { ...options, credentials: "omit", redirect: "error", headers: { ...options.headers, Authorization: `Bearer ${token}` } });

// Times.
const now = () => Date.now() + state.skew;
const span = (ms) => {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 172800) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} days`;
};
const clock = (ms) => new Date(ms).toLocaleTimeString(undefined, { hour12: false });
const day = (ms) => new Date(ms).toLocaleString(undefined, { hour12: false });

// A time that goes on is an element that says from when it counts.
const ticking = (ms, what) => el("span", { "data-since": ms, "data-what": what }, tick(ms, what));
const tick = (ms, what) => (what === "left" ? `${span(ms - now())} left` : `${what} ${span(now() - ms)} ago`);
setInterval(() => {
  for (const e of document.querySelectorAll("[data-since]")) {
    const text = tick(Number(e.dataset.since), e.dataset.what);
    if (e.textContent !== text) e.textContent = text;
  }
}, 1000);

const coded = new Set(["wants to", "below", "image", "by way of", "argv", "who", "what", "clause", "policy", "id", "in"]);
const fieldList = (fields) =>
  el("dl", {}, ...fields.flatMap((f) => [el("dt", {}, f.key), el("dd", { class: f.key === "warning" ? "bad" : coded.has(f.key) ? "code" : "" }, f.text)]));

// Requests.
const requestHead = (r) =>
  el("div", { class: "card-head" }, el("span", { class: "id" }, r.id), el("span", {}, r.scope),
    el("span", { class: "right" }, r.open ? ticking(r.opened, "asked") : `${r.state} · asked ${day(r.opened)}`));

const waiting = (r) =>
  r.deciding ? el("p", { class: "refused" }, "The approvers are asked; an answer given here comes before theirs.") :
  r.held ? el("p", { class: "held" }, "The process is stopped for the answer: ", ticking(r.until, "left"))
    : el("p", { class: "refused" }, "It was refused, and succeeds when it is tried again after an approval.");

const requestCard = (r) => {
  const card = el("article", { class: r.open ? "card waits" : "card", tabindex: "0", "data-key": r.id, "data-request": r.id, "aria-label": `Request ${r.id}: ${r.operation}` },
    requestHead(r), el("p", { class: "operation" }, r.operation));
  if (r.open) card.append(waiting(r));
  card.append(fieldList(r.fields.filter((f) => f.key !== "wants to")));
  const button = (what, kind, text, key) =>
    el("button", { type: "button", class: kind, "data-what": what, onclick: () => openSheet(r.id, what) }, text, el("kbd", { "aria-hidden": "true" }, key));
  if (r.open) {
    card.append(el("p", { class: "actions" }, button("once", "primary", "Approve once", "a"), button("ten-minutes", "", "Approve 10 minutes", "A"), button("deny", "danger", "Deny", "d")));
  } else if (r.holds) {
    card.append(el("p", { class: "actions" }, button("revoke", "", "Take the answer back", "r"), r.state === "granted" ? button("deny", "danger", "Deny from now on", "d") : ""));
  }
  return card;
};

// An answer that holds is its request's card, with what is left of it.
const grantCard = (g) => {
  const card = requestCard(g);
  const uses = g.uses ? `${g.uses} ${g.uses === 1 ? "use" : "uses"} left` : "";
  card.querySelector(".operation").after(el("p", { class: `left ${g.state === "denied" ? "bad" : "good"}` },
    `Is ${g.state}: `, uses, uses && g.ends ? ", " : "", g.ends ? ticking(g.ends, "left") : uses ? "" : "as long as the container lives"));
  return card;
};

// sync makes a list's elements those of the items, and leaves alone those that stay the
// same, so that focus and what is open stay too.
const drawn = new WeakMap(); // what an element shows
const sync = (parent, items, keyOf, build) => {
  const old = new Map([...parent.children].map((e) => [e.dataset.key, e]));
  const focused = document.activeElement;
  let lostFocus = null;
  let before = null;
  for (const item of items) {
    const key = keyOf(item);
    let e = old.get(key);
    old.delete(key);
    const same = e && (drawn.get(e) === item || JSON.stringify(drawn.get(e)) === JSON.stringify(item));
    if (same) drawn.set(e, item);
    else {
      const fresh = build(item);
      fresh.dataset.key = key;
      drawn.set(fresh, item);
      if (e) {
        if (e.contains(focused)) lostFocus = { fresh, what: focused.dataset.what };
        e.replaceWith(fresh);
      }
      e = fresh;
    }
    const place = before ? before.nextSibling : parent.firstChild;
    if (place !== e) parent.insertBefore(e, place);
    before = e;
  }
  for (const e of old.values()) e.remove();
  if (lostFocus) (lostFocus.fresh.querySelector(lostFocus.what ? `[data-what="${lostFocus.what}"]` : "button.row") ?? lostFocus.fresh).focus({ preventScroll: true });
};

const empty = (text) => el("p", { class: "empty" }, text);

const showRequests = () => {
  const focused = $("page-requests").contains(document.activeElement);
  const holds = new Set(state.grants.list.map((g) => g.id));
  const open = state.requests.filter((r) => r.open), answered = state.requests.filter((r) => !r.open && !holds.has(r.id));
  if (open.length) {
    for (const e of $("open").querySelectorAll(".empty")) e.remove();
    sync($("open"), open, (r) => r.id, requestCard);
  } else {
    $("open").replaceChildren(empty("Nothing waits for an answer."));
  }
  sync($("grants"), state.grants.list, (g) => g.id, grantCard);
  $("title-grants").hidden = state.grants.list.length === 0 && !state.grants.problem;
  $("grants-problem").hidden = !state.grants.problem;
  $("grants-problem").textContent = state.grants.problem;
  sync($("answered"), answered, (r) => r.id, requestCard);
  $("title-answered").hidden = answered.length === 0;
  $("waiting").hidden = open.length === 0;
  $("waiting").textContent = open.length;
  document.title = open.length ? `(${open.length}) ActPlane` : "ActPlane";
  const ids = new Set(open.map((r) => r.id));
  if (state.told) {
    const fresh = open.filter((r) => !state.told.has(r.id));
    if (fresh.length) $("announce").textContent = `${fresh.length === 1 ? "A request" : `${fresh.length} requests`} came: ${fresh.map((r) => `${r.id}, ${r.operation}`).join("; ")}`;
  }
  state.told = ids;
  // Who was on what is gone is on what waits next.
  if (focused && document.activeElement === document.body) ($("open").querySelector("[data-request]") ?? $("title-requests")).focus();
  checkSheet();
};

// Timeline.
const rowElement = (row) => {
  const key = String(row.id), open = state.opened.has(key);
  const times = row.count > 1 ? el("span", { class: "times" }, `${row.count}×`) : "";
  const li = el("li", {},
    el("button", { type: "button", class: "row", "aria-expanded": String(open), onclick: () => toggle(key) },
      el("time", { datetime: new Date(row.time).toISOString() }, clock(row.time)), el("span", { class: "scope" }, row.scope),
      el("span", { class: "what" }, el("span", { class: `happened ${row.kind}` }, row.happened), " ", el("span", { class: "operation" }, row.operation), " ", times,
        row.rule ? el("span", { class: "rule" }, ` ${row.rule}`) : "")));
  if (open) {
    const when = row.count > 1 ? `${row.count} times, first ${day(row.first)}, last ${day(row.time)}` : day(row.time);
    const details = el("div", { class: "open" }, fieldList([{ key: "when", text: when }, ...row.fields.filter((f) => f.key !== "when")]));
    const graph = state.graphs.get(key);
    if (graph) details.append(drawGraph(graph, row.kind));
    li.append(details);
  }
  return li;
};

const toggle = async (key) => {
  if (!state.opened.delete(key)) state.opened.add(key);
  showRows(key);
  if (!state.opened.has(key) || state.graphs.has(key)) return;
  try {
    const answer = await ask(`/api/graph?row=${key}`);
    if (!answer.ok) return;
    state.graphs.set(key, await answer.json());
    showRows(key);
  } catch { /* the stream tells that the server has gone */ }
};

const showRows = (changed) => {
  const word = $("filter").value.toLowerCase();
  const rows = [...state.rows.values()].sort((a, b) => b.time - a.time || b.sequence - a.sequence || b.id - a.id);
  for (const row of rows.slice(maxRows)) state.rows.delete(row.id);
  const shown = rows.slice(0, maxRows).filter((r) => !word || [r.scope, r.happened, r.operation, ...r.fields.map((f) => f.text)].some((t) => t.toLowerCase().includes(word)));
  if (changed) for (const e of $("rows").children) if (e.dataset.key === changed) drawn.delete(e);
  sync($("rows"), shown, (r) => String(r.id), rowElement);
  $("no-rows").hidden = shown.length > 0;
  $("no-rows").textContent = word ? `Nothing contains “${$("filter").value}”.` : "Nothing was denied or noticed.";
};

// Rules.
const bar = (rule, most) => {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "bar");
  svg.setAttribute("viewBox", "0 0 100 5");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  let x = 0;
  for (const [kind, n] of [["bad", rule.denied], ["ask", rule.asked], ["note", rule.noticed]]) {
    const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    const width = (100 * n) / most;
    for (const [key, value] of Object.entries({ class: kind, x, y: 0, width, height: 5 })) rect.setAttribute(key, value);
    svg.append(rect);
    x += width;
  }
  return svg;
};

const showRules = () => {
  const scopes = [...new Set(state.rules.map((r) => r.scope))];
  if (!scopes.length) return $("rules").replaceChildren(empty("No rule has decided anything."));
  const most = Math.max(...state.rules.map((r) => r.denied + r.asked + r.noticed), 1);
  const cell = (n) => el("td", { class: n ? "" : "zero" }, n.toLocaleString());
  sync($("rules"), scopes.map((scope) => ({ scope, most, rules: state.rules.filter((r) => r.scope === scope) })), (t) => t.scope, (t) =>
    el("table", {}, el("caption", {}, t.scope),
      el("thead", {}, el("tr", {}, ...["Rule", "Denied", "Asked", "Noticed"].map((h) => el("th", { scope: "col" }, h)), el("th", { scope: "col", class: "wide" }, "Last"))),
      el("tbody", {}, ...t.rules.map((r) => el("tr", {}, el("th", { scope: "row" }, r.rule, bar(r, t.most)), cell(r.denied), cell(r.asked), cell(r.noticed),
        el("td", { class: "wide" }, ticking(r.last, "")))))));
};

// Scopes.
const showScopes = () => {
  if (!state.scopes.length) return $("scopes").replaceChildren(empty("Nothing is under policy."));
  for (const e of $("scopes").querySelectorAll(".empty")) e.remove();
  const number = (n, what) => el("li", {}, el("b", {}, n.toLocaleString()), ` ${what}`);
  sync($("scopes"), state.scopes, (s) => s.id, (s) =>
    el("article", { class: "card", tabindex: "0", "data-scope": s.id, "aria-label": `Scope ${s.name}` }, scopeHead(s),
      el("ul", { class: "numbers" }, number(s.processes, "processes"), number(s.denied, "denied"), number(s.noticed, "noticed"), s.lost ? number(s.lost, "lost") : ""),
      fieldList(s.fields),
      el("p", { class: "actions" }, s.locked ? lockButton(s, "unlock", "", "Unlock", "U") : lockButton(s, "lock", "danger", "Lock", "L"))));
};

const scopeHead = (s) =>
  el("div", { class: "card-head" }, el("span", { class: "id" }, s.name), el("span", { class: s.good ? "good" : s.state === "closed" ? "" : "bad" }, s.state),
    s.started ? el("span", { class: "right" }, ticking(s.started, "started")) : "");
const lockButton = (s, what, kind, text, key) =>
  el("button", { type: "button", class: kind, "data-what": what, onclick: () => openSheet(s.id, what) }, text, el("kbd", { "aria-hidden": "true" }, key));

// The sheet shows one request or scope, as it was when it was opened, and sends one answer.
let sheet = null;
const locks = new Set(["lock", "unlock"]); // are about scopes
const reasoned = new Set(["deny", "lock"]); // let nothing through, and have a reason; Enter sends them
const titles = { once: (id) => `Approve ${id} once?`, "ten-minutes": (id) => `Approve ${id} for 10 minutes?`, deny: (id) => `Deny ${id} for the container’s life?`,
  revoke: (id) => `Take the answer to ${id} back?`, lock: (name) => `Lock ${name}?`, unlock: (name) => `Unlock ${name}?` };
const verbs = { once: "Approve", "ten-minutes": "Approve", deny: "Deny", revoke: "Take back", lock: "Lock", unlock: "Unlock" };
const lockTexts = { lock: "Everything that its programs do is refused from then on, but to exit, over restarts of the engine and of the container, until somebody unlocks it.",
  unlock: "Its programs go on under their policy from where they were." };

// subject is what a sheet is about, as it is now.
const subject = (id, what) =>
  locks.has(what) ? state.scopes.find((s) => s.id === id) : state.requests.find((r) => r.id === id) ?? state.grants.list.find((g) => g.id === id);

const openSheet = (id, what) => {
  const r = subject(id, what);
  if (!r || $("sheet").open || (what === "revoke" && !r.holds) || (locks.has(what) && r.locked !== (what === "unlock"))) return;
  if (state.problem) return void ($("announce").textContent = "Nothing can be answered while the engine is away.");
  const name = r.name ?? id;
  sheet = { id, name, seen: r.seen, what, since: Date.now(), back: document.activeElement };
  $("sheet-title").textContent = titles[what](name);
  if (locks.has(what)) $("sheet-body").replaceChildren(el("p", {}, lockTexts[what]), scopeHead(r), fieldList(r.fields));
  else $("sheet-body").replaceChildren(requestHead(r), fieldList(r.fields));
  $("sheet-reason").hidden = !reasoned.has(what);
  $("because").value = "";
  $("sheet-send").className = reasoned.has(what) ? "danger" : "primary";
  $("sheet-send").replaceChildren(`${verbs[what]} ${name}`, el("kbd", { "aria-hidden": "true" }, reasoned.has(what) ? "Enter" : "y"));
  $("sheet-note").textContent = "";
  $("sheet").showModal();
  (reasoned.has(what) ? $("because") : $("sheet-title")).focus();
  checkSheet();
};

// What is answered has been seen: the sheet's end is on the screen, and it is there for
// longer than the second half of a double click.
const atEnd = () => $("sheet").scrollTop + $("sheet").clientHeight >= $("sheet").scrollHeight - 4;
const checkSheet = () => {
  if (!sheet) return;
  const current = subject(sheet.id, sheet.what);
  sheet.stale = !sheet.sent && (!current || current.seen !== sheet.seen);
  if (sheet.stale) $("sheet-note").textContent = `${sheet.name} has changed meanwhile: nothing was sent.`;
  else if (state.problem && !sheet.sent) $("sheet-note").textContent = "The engine is away: nothing can be answered.";
  $("sheet-send").disabled = Boolean(sheet.stale || sheet.sent || state.problem);
};

const send = async () => {
  checkSheet();
  if (!sheet || $("sheet-send").disabled || Date.now() - sheet.since < 350) return;
  if (!reasoned.has(sheet.what) && !atEnd()) {
    $("sheet-note").textContent = "Read on to the end first.";
    return;
  }
  sheet.sent = true;
  checkSheet();
  const mine = sheet;
  const body = JSON.stringify({ id: mine.id, seen: mine.seen, what: mine.what, because: reasoned.has(mine.what) ? $("because").value.trim() : "" });
  try {
    const answer = await ask(locks.has(mine.what) ? "/api/lock" : "/api/answer", { method: "POST", body, headers: { "Content-Type": "application/json" } });
    const result = await answer.json();
    if (answer.ok) {
      $("announce").textContent = result.done;
      if (sheet === mine) closeSheet();
      return;
    }
    mine.failed = result.error;
  } catch {
    mine.failed = "The page’s server did not answer: look on the host whether the answer arrived.";
  }
  if (sheet === mine) $("sheet-note").textContent = mine.failed;
};

$("sheet-send").addEventListener("click", send);
const closeSheet = () => {
  if (!sheet) return;
  const { back, id } = sheet;
  sheet = null;
  if ($("sheet").open) $("sheet").close();
  // Where it was drawn anew, or what waits next.
  const card = [...$("scopes").children].find((e) => e.dataset.scope === id) ?? document.querySelector("#open [data-request]");
  (back?.isConnected ? back : card ?? $("title-requests")).focus();
};
$("sheet-cancel").addEventListener("click", closeSheet);
$("sheet").addEventListener("close", closeSheet); // by the browser's own ways

// Pages.
const show = (page, focus) => {
  for (const p of pages) {
    $(`page-${p}`).hidden = p !== page;
    const link = document.querySelector(`nav a[data-page="${p}"]`);
    if (p === page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (focus) $(`title-${page}`).focus();
};
const pageOf = () => (pages.includes(location.hash.slice(1)) ? location.hash.slice(1) : "requests");
const go = (page) => {
  history.pushState(null, "", `#${page}`);
  show(page, true);
};
addEventListener("popstate", () => show(pageOf()));
addEventListener("hashchange", () => show(pageOf(), true));
$("filter").addEventListener("input", () => showRows());

// Keys.
const stops = () => [...document.querySelectorAll("main section:not([hidden]) :is(article[tabindex], button.row)")];
const move = (by) => {
  const all = stops();
  const at = all.findIndex((e) => e.contains(document.activeElement));
  all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.max(0, Math.min(all.length - 1, at + by))]?.focus();
};
const chosen = () => (document.activeElement.closest?.("[data-request]") ?? document.querySelector("#open [data-request]"))?.dataset.request;
const chosenScope = () => document.activeElement.closest?.("[data-scope]")?.dataset.scope;

addEventListener("keydown", (event) => {
  const typing = event.target.matches?.("input, textarea");
  if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
  if (sheet) {
    if (event.key === "Escape") closeSheet();
    if (event.key === "y" && !typing && !reasoned.has(sheet.what) && !event.repeat) send();
    if (event.key === "Enter" && typing && !event.shiftKey) {
      event.preventDefault();
      send();
    }
    return;
  }
  if (typing) {
    if (event.key === "Escape") {
      $("filter").value = "";
      $("filter").blur();
      showRows();
    }
    return;
  }
  const answers = { a: "once", A: "ten-minutes", d: "deny", r: "revoke" }, scopeKeys = { L: "lock", U: "unlock" };
  if (/^[1-4]$/.test(event.key)) go(pages[event.key - 1]);
  else if (event.key === "j" || event.key === "ArrowDown") move(1);
  else if (event.key === "k" || event.key === "ArrowUp") move(-1);
  else if (event.key in answers && pageOf() === "requests" && chosen() && !event.repeat) openSheet(chosen(), answers[event.key]);
  else if (event.key in scopeKeys && pageOf() === "scopes" && chosenScope() && !event.repeat) openSheet(chosenScope(), scopeKeys[event.key]);
  else if (event.key === "/") {
    go("timeline");
    $("filter").focus();
  } else return;
  event.preventDefault();
});

// The stream.
const take = (update) => {
  state.skew = update.now - Date.now();
  if (update.status) {
    state.problem = update.status.problem;
    $("engine").textContent = update.status.engine;
    problem(state.problem, !state.problem);
  }
  if (update.scopes) { state.scopes = update.scopes; showScopes(); checkSheet(); }
  if (update.rules) { state.rules = update.rules; showRules(); }
  if (update.rows) {
    for (const row of update.rows) state.rows.set(row.id, row);
    showRows();
  }
  if (update.requests) state.requests = update.requests;
  if (update.grants) state.grants = update.grants;
  if (update.requests || update.grants) showRequests();
  if (update.status) checkSheet();
};

const problem = (text, live) => {
  state.problem = text;
  $("problem").hidden = !text;
  $("problem").textContent = text;
  $("status").className = live ? "live" : "";
  $("status").textContent = live ? "live" : "not up to date";
};

const follow = async () => {
  const answer = await ask("/api/stream");
  if (answer.status === 401) {
    problem((await answer.json()).error, false);
    return false;
  }
  if (!answer.ok) throw new Error(String(answer.status));
  for (const kept of [state.rows, state.graphs, state.opened]) kept.clear(); // another run counts anew
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { value, done } = await reader.read();
    if (done) return true;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) if (event.startsWith("data: ")) take(JSON.parse(event.slice(6)));
  }
};

(async () => {
  show(pageOf());
  for (let again = true; again;) {
    try {
      again = await follow();
    } catch { /* it is tried again below */ }
    if (again) {
      problem("The page’s server has gone; it is tried again.", false);
      checkSheet();
      await new Promise((done) => setTimeout(done, 1000));
    }
  }
})();
