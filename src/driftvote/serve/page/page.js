// The live page: who is logged in, which view is shown, and the connection that keeps it fresh.
// Reading order: page.js, streams.js (all streams), stream.js (one stream), review.js (its questions); charts.js, dom.js.

import { h, sentence, setText } from "./dom.js";
import { streamsView } from "./streams.js";
import { streamView } from "./stream.js";

const main = document.getElementById("main");
const session = { tokens: false, role: null, csrf: null, ready: true };
let view = null; // {node, title, stop}

// Theme: as the system has it until the button is pressed; the choice is kept.
const themeButton = document.getElementById("theme");
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

function storedTheme() {
  try {
    return localStorage.getItem("driftvote-theme");
  } catch {
    return null; // storage may be forbidden
  }
}

function showTheme() {
  const stored = storedTheme();
  if (stored === "light" || stored === "dark") document.documentElement.dataset.theme = stored;
  const dark = (document.documentElement.dataset.theme ?? (systemIsDark.matches ? "dark" : "light")) === "dark";
  setText(themeButton, dark ? "Light" : "Dark");
  themeButton.setAttribute("aria-label", dark ? "Light colours" : "Dark colours");
  themeButton.onclick = () => {
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    try {
      localStorage.setItem("driftvote-theme", dark ? "light" : "dark");
    } catch {
      // The choice then lasts as long as the page.
    }
    showTheme();
  };
}
systemIsDark.addEventListener("change", showTheme);
showTheme();

// Say something to screen readers.
function announce(text) {
  const place = document.getElementById("announce");
  place.textContent = "";
  setTimeout(() => (place.textContent = text), 50); // a text that does not change is not read again
}

// Ask the server. Throws an Error with its sentence; without a valid token the login is shown.
async function api(path, method = "GET", body = undefined) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "GET" && session.csrf) headers["X-CSRF-Token"] = session.csrf;
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new Error("The server cannot be reached. Your last action was not saved.");
  }
  const text = await answer.text();
  let json = {};
  try {
    json = text ? JSON.parse(text) : {};
  } catch {
    if (answer.ok) throw new Error("The server gave an answer that is not JSON.");
  }
  if (!answer.ok) {
    const error = new Error(sentence(json.error?.message ?? `the server answered ${answer.status}`));
    error.status = answer.status;
    if (answer.status === 401 && session.tokens && !path.endsWith("/session")) showLogin("Your session has ended. Log in again.");
    throw error;
  }
  return json;
}

// The connection. It is closed while the page is hidden (browsers allow few at a time) and opened again when it
// breaks, when it is silent for three heartbeats, and when the page is shown again.
const STATES = { live: "Live", connecting: "Connecting…", broken: "Not connected, trying again", off: "" };
const SILENCE = 50_000; // milliseconds; the server sends something every 15 seconds

function showConnection(state) {
  const place = document.getElementById("connection");
  place.dataset.state = state;
  setText(place, STATES[state]);
}

function listen(path, handlers, onOpen) {
  let source = null;
  let retry = null;
  let watchdog = null;
  let failures = 0;
  const alive = () => {
    clearTimeout(watchdog);
    watchdog = setTimeout(broken, SILENCE);
  };
  function close() {
    clearTimeout(retry);
    clearTimeout(watchdog);
    source?.close();
    source = null;
  }
  function broken() {
    close();
    showConnection("broken");
    failures += 1;
    retry = setTimeout(open, Math.min(10_000, 500 * 2 ** failures));
    if (session.tokens) checkSession();
  }
  function open() {
    close();
    source = new EventSource(path);
    source.onopen = () => {
      showConnection("live");
      alive();
      onOpen(failures > 0);
      failures = 0;
    };
    source.onerror = broken;
    source.addEventListener("beat", alive);
    for (const [name, handle] of Object.entries(handlers)) {
      source.addEventListener(name, (event) => {
        alive();
        handle(JSON.parse(event.data));
      });
    }
  }
  function visible() {
    if (document.hidden) close();
    else if (!source) {
      failures = 1; // what happened meanwhile has to be loaded
      open();
    }
  }
  showConnection("connecting");
  document.addEventListener("visibilitychange", visible);
  open();
  return () => {
    document.removeEventListener("visibilitychange", visible);
    close();
    showConnection("off");
  };
}

async function checkSession() {
  try {
    Object.assign(session, { csrf: null }, await api("/v1/session"));
    if (session.tokens && !session.role && document.getElementById("token") === null) showLogin("Your session has ended. Log in again.");
  } catch {
    // Not reachable: the connection tries again by itself.
  }
}

const app = {
  api,
  listen,
  announce,
  go,
  get tokens() {
    return session.tokens;
  },
  get canReview() {
    return session.role === "review" || session.role === "write";
  },
};

// On its first start the server compiles for a while; until then rows wait.
async function waitUntilReady() {
  const notice = document.getElementById("starting");
  notice.hidden = session.ready !== false;
  if (notice.hidden) return;
  await new Promise((done) => setTimeout(done, 2000));
  await checkSession();
  waitUntilReady();
}

// Views

function show(next, focus = false) {
  view?.stop();
  view = next;
  document.title = view.title ? `${view.title} · driftvote` : "driftvote";
  main.replaceChildren(view.node);
  document.getElementById("logout").hidden = !(session.tokens && session.role);
  if (focus) main.focus({ preventScroll: true });
}

function route(focus = false) {
  const [, place, name] = location.pathname.split("/");
  show(place === "streams" && name ? streamView(decodeURIComponent(name), app) : streamsView(app), focus);
  if (focus) scrollTo(0, 0);
}

function go(path) {
  const before = location.pathname;
  history.pushState(null, "", path);
  if (location.pathname !== before) route(true);
  else view?.moved?.();
}

function showLogin(message = "") {
  const input = h("input", { id: "token", type: "password", autocomplete: "current-password", required: true, spellcheck: "false" });
  const problem = h("p", { class: "problem", role: "alert" }, message);
  const form = h(
    "form",
    { class: "card login" },
    h("h1", {}, "Log in"),
    h("p", { class: "about" }, "Paste the access token that you were given for this server."),
    h("input", { type: "text", autocomplete: "username", value: "driftvote", hidden: true }), // for password managers
    h("label", { for: "token" }, "Token"),
    input,
    problem,
    h("button", { type: "submit", class: "primary" }, "Log in"),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    setText(problem, "");
    try {
      Object.assign(session, { role: null }, await api("/v1/session", "POST", { token: input.value.trim() }));
      if (!session.role) throw new Error("This token may send votes, but not see the page.");
      route(true);
    } catch (error) {
      setText(problem, error.message);
      input.select();
    }
  });
  show({ node: form, title: "Log in", stop() {} });
  showConnection("off");
  input.focus();
}

document.getElementById("logout").onclick = async () => {
  try {
    await api("/v1/session", "DELETE");
  } catch {
    // The cookie may have ended already.
  }
  Object.assign(session, { role: null, csrf: null });
  showLogin("You are logged out.");
};

// Links of the page change the view without loading it again.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const url = new URL(link.href);
  const inside = url.origin === location.origin && (url.pathname === "/" || url.pathname.startsWith("/streams/"));
  if (!inside || link.classList.contains("skip")) return;
  event.preventDefault();
  go(url.pathname + url.hash);
});
addEventListener("popstate", () => (view?.path === location.pathname ? view.moved?.() : route(true)));

try {
  Object.assign(session, await api("/v1/session"));
  if (session.tokens && !session.role) showLogin();
  else route();
  waitUntilReady();
} catch (error) {
  show({ node: h("p", { class: "notice", role: "alert" }, error.message, " Load the page again."), title: "", stop() {} });
}
document.documentElement.dataset.ready = "yes";
