// What the page knows of its caller and its server: the token of the console, the
// server's clock, and what the caller may do.
import { time } from './format.js';

const TOKEN = 'timecached.token';
const DAY_MS = 86_400_000;

// Takes the token from the address (#token=...), and removes it there: it must not
// stay in the history or in a screenshot. Null: there is none.
export function takeToken() {
  const match = location.hash.match(/^#token=([^&]+)(?:&to=(.*))?$/);
  if (match) {
    storeToken(decodeURIComponent(match[1]));
    const to = match[2] ? decodeURIComponent(match[2]) : '/';
    history.replaceState(null, '', `${location.pathname}#${to}`);
  }
  return sessionStorage.getItem(TOKEN);
}

export function storeToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

export function forgetToken() {
  sessionStorage.removeItem(TOKEN);
}

// The server's clock, which may be virtual: then it stands still between its advances.
// Between two observations it is taken to go on as it did.
export class ServerClock {
  #server = Date.now();
  #local = performance.now();
  #rate = 1;
  #known = false;

  // A time that the server said it is now.
  observe(timestamp) {
    const server = time(timestamp);
    const local = performance.now();
    if (!Number.isFinite(server)) return;
    const passed = local - this.#local;
    if (this.#known && passed < 200 && Math.abs(server - this.now()) < 200) return;
    // One that is a day off, or does not go about as fast as the browser's, is virtual: it
    // stood still, or was advanced.
    const speed = (server - this.#server) / passed;
    if (Math.abs(server - Date.now()) > DAY_MS) this.#rate = 0;
    else if (this.#known && passed > 200) this.#rate = speed > 0.5 && speed < 1.5 ? 1 : 0;
    this.#server = server;
    this.#local = local;
    this.#known = true;
  }

  get known() { return this.#known; }

  get standsStill() { return this.#rate === 0; }

  // Milliseconds since 1970.
  now() {
    return this.#server + this.#rate * (performance.now() - this.#local);
  }
}

function matches(pattern, name) {
  const parts = pattern.split('*');
  if (parts.length === 1) return pattern === name;
  let at = 0;
  for (const [i, part] of parts.entries()) {
    if (i === 0) {
      if (!name.startsWith(part)) return false;
      at = part.length;
    } else if (i === parts.length - 1) {
      return name.length - at >= part.length && name.endsWith(part);
    } else {
      at = name.indexOf(part, at);
      if (at < 0) return false;
      at += part.length;
    }
  }
  return true;
}

// Whether buttons for `verb` (READ, WRITE, WATCH, SETTLE, ADMIN) in the namespace make
// sense: the server decides anew at each call. `name` is '*' for what needs the verb on
// all namespaces, null for what it may do in any one.
export function makeCan(whoAmI, readOnly) {
  return (verb, name) => {
    if (readOnly && verb !== 'READ' && verb !== 'WATCH') return false;
    if (!whoAmI || !whoAmI.accessRules) return true;
    return (whoAmI.permissions ?? []).some((permission) =>
      (permission.verbs ?? []).includes(verb) && (name === null || (name === '*'
        ? permission.pattern === '*' : matches(permission.pattern, name))));
  };
}
