// The page's frame: login, navigation, theme, connection state, and which view is shown.
import { Api, ApiError, isAbort } from './api.js';
import { announce, button, h, replace, setText } from './dom.js';
import { NamespaceList } from './namespace_list.js';
import { Sampler } from './sampler.js';
import { ServerClock, forgetToken, makeCan, storeToken, takeToken } from './session.js';
import * as groups from './views/groups.js';
import * as key from './views/key.js';
import * as namespace from './views/namespace.js';
import * as overview from './views/overview.js';
import * as tape from './views/tape.js';
import * as tryIt from './views/try.js';

// All at once: a view opens without the console, too, and says that it is not there.
const VIEWS = { overview, try: tryIt, namespace, tape, groups, key };
const THEMES = ['system', 'light', 'dark'];

// The last route that matches counts. `tab` marks those of one namespace.
const ROUTES = [
  { pattern: /^\/$/, names: [], view: 'overview', title: () => 'Overview' },
  { pattern: /^\/try$/, names: [], view: 'try', title: () => 'Try it' },
  { pattern: /^\/ns\/([^/]+)$/, names: ['name'], view: 'namespace', tab: 'ns' },
  { pattern: /^\/tape\/([^/]+)$/, names: ['name'], view: 'tape', tab: 'tape' },
  { pattern: /^\/groups\/([^/]+)(?:\/([^/]+))?$/, names: ['name', 'group'], view: 'groups', tab: 'groups' },
  { pattern: /^\/key\/([^/]+)(?:\/([^/]+))?$/, names: ['name', 'key'], view: 'key', tab: 'key' },
];
const TABS = [['ns', 'Namespace'], ['tape', 'Tape'], ['groups', 'Groups'], ['key', 'Key']];

function match(hash) {
  const path = hash.replace(/^#/, '') || '/';
  for (const route of ROUTES) {
    const found = path.match(route.pattern);
    if (!found) continue;
    const params = {};
    for (const [i, name] of route.names.entries()) {
      if (found[i + 1] !== undefined) params[name] = decodeURIComponent(found[i + 1]);
    }
    return { route, params };
  }
  return null;
}

class App {
  constructor() {
    this.clock = new ServerClock();
    this.unmount = null;
    this.live = h('div', { id: 'live', class: 'visually-hidden', 'aria-live': 'polite' });
    this.toasts = h('div', { id: 'toasts' });
    window.addEventListener('hashchange', () => this.hashChanged());
    const token = takeToken();
    if (token) this.start(token);
    else this.showLogin('');
  }

  hashChanged() {
    if (location.hash.startsWith('#token=')) {
      this.stop();
      this.start(takeToken());
    } else if (this.sampler) {
      this.show();
    }
  }

  stop() {
    this.unmount?.();
    this.unmount = null;
    this.running?.abort();
    this.sampler = null;
    this.info = null;
  }

  showLogin(message) {
    this.stop();
    const token = h('input', {
      id: 'token', name: 'token', type: 'password', autocomplete: 'off', required: true,
      'aria-describedby': 'login-help',
    });
    const form = h('form', {
      class: 'login card',
      on: {
        submit: (event) => {
          event.preventDefault();
          // The whole address is taken, too: it is what is printed.
          const text = token.value.trim().replace(/^.*#token=/, '');
          storeToken(text);
          this.start(text);
        },
      },
    },
    h('div', { class: 'brand' }, h('img', { src: 'icon.svg', alt: '', width: 28, height: 28 }),
      h('h1', null, 'timecached console')),
    message && h('p', { class: 'error', role: 'alert' }, message),
    h('label', { for: 'token' }, 'Login token'), token,
    h('p', { class: 'hint', id: 'login-help' },
      'Open the address that ', h('code', null, 'timecachectl console'),
      ' printed when it started, or paste it here. Each start makes a new token.'),
    h('button', { class: 'button primary', type: 'submit' }, 'Log in'));
    replace(document.body, h('main', { class: 'login-page' }, form), this.live);
    token.focus();
  }

  async start(token) {
    this.running = new AbortController();
    const { signal } = this.running;
    this.api = new Api({
      token,
      onUnauthorized: () => {
        if (signal.aborted) return;
        forgetToken();
        this.showLogin('The console does not accept this token.');
      },
      onConnection: (state) => this.showConnection(state),
    });
    this.drawFrame();
    let pause = 500;
    while (!signal.aborted) {
      try {
        this.info = await this.api.console(signal);
        this.info.whoAmI = await this.api.call('ServerService/WhoAmI', {}, { signal })
          .catch((error) => {
            // An older server: it decides at each call.
            if (error.code === 'UNIMPLEMENTED') return null;
            throw error;
          });
        break;
      } catch (error) {
        if (signal.aborted || isAbort(error)) return;
        if (!(error instanceof ApiError)) throw error;
        if (this.info && error.code !== 'UNAVAILABLE') {
          this.showStranger(error);
          return;
        }
        await new Promise((resolve) => { setTimeout(resolve, pause); });
        pause = Math.min(pause * 2, 5_000);
      }
    }
    if (signal.aborted) return;
    this.can = makeCan(this.info.whoAmI, this.info.readOnly);
    this.info.can = this.can;
    this.drawFacts();
    this.sampler = new Sampler(this.api, this.clock);
    this.sampler.start(signal);
    this.list.start(this.sampler, signal);
    this.show();
  }

  // The server does not know the caller, or lets it do nothing.
  showStranger(error) {
    this.drawFacts();
    replace(this.view, h('div', { class: 'card notice' },
      h('h1', null, 'No access'),
      h('p', null, 'The server at ', h('code', null, this.info.address), ' refused the call: ',
        error.message),
      h('p', { class: 'hint' }, 'Start the console with credentials that the server knows ',
        '(--token-file, --cert, or a context).')));
  }

  drawFrame() {
    this.list = new NamespaceList();
    this.menu = button('☰', () => this.toggleMenu(), {
      kind: 'quiet menu-button', name: 'Navigation', 'aria-expanded': 'false', 'aria-controls': 'side',
    });
    this.facts = h('div', { class: 'facts' });
    this.connection = h('div', { class: 'connection', role: 'status', data: { state: 'connecting' } },
      h('span', { class: 'dot', 'aria-hidden': 'true' }), h('span', { class: 'connection-text' }, 'Connecting'));
    this.lost = h('div', { class: 'lost-bar', role: 'alert', hidden: true });
    this.side = h('nav', { id: 'side', class: 'side', 'aria-label': 'Main' },
      h('ul', { class: 'side-links' },
        h('li', null, h('a', { href: '#/', data: { view: 'overview' } }, 'Overview')),
        h('li', null, h('a', { href: '#/try', data: { view: 'try' } }, 'Try it'))),
      this.list.element);
    this.heading = h('div', { class: 'view-heading' });
    this.view = h('div', { class: 'view' }, h('p', { class: 'muted' }, 'Connecting …'));
    this.main = h('main', { id: 'main', tabindex: '-1' }, this.heading, this.view);
    replace(document.body,
      h('a', { class: 'skip', href: '#main', on: { click: (event) => {
        event.preventDefault();
        this.main.focus();
      } } }, 'Skip to content'),
      h('header', { class: 'top' }, this.menu,
        h('a', { class: 'brand', href: '#/' },
          h('img', { src: 'icon.svg', alt: '', width: 22, height: 22 }), h('span', null, 'timecached')),
        this.facts, this.connection, this.themeButton()),
      this.lost, h('div', { class: 'body' }, this.side, this.main), this.toasts, this.live);
  }

  drawFacts() {
    const { address, context, readOnly, whoAmI } = this.info;
    replace(this.facts,
      h('span', { class: 'fact address', title: 'The server\'s address' }, address),
      context && h('span', { class: 'fact', title: 'The context of timecachectl' }, context),
      whoAmI?.accessRules && h('span', { class: 'fact', title: 'Who you are to the server' }, whoAmI.principal),
      readOnly && h('span', { class: 'badge' }, 'read-only'));
  }

  showConnection({ state, message }) {
    if (!this.connection) return;
    this.connection.dataset.state = state;
    setText(this.connection.lastElementChild, state === 'ok' ? 'Connected' : 'Not reachable');
    this.lost.hidden = state === 'ok';
    setText(this.lost, state === 'ok' ? '' : `Not reachable, trying again. ${message}`);
  }

  themeButton() {
    const label = { system: 'Theme: system', light: 'Theme: light', dark: 'Theme: dark' };
    const symbol = { system: '◐', light: '☀', dark: '☾' };
    let now = document.documentElement.dataset.theme ?? 'system';
    const node = button(symbol[now], () => {
      now = THEMES[(THEMES.indexOf(now) + 1) % THEMES.length];
      if (now === 'system') delete document.documentElement.dataset.theme;
      else document.documentElement.dataset.theme = now;
      localStorage.setItem('timecached.theme', now);
      setText(node, symbol[now]);
      node.title = label[now];
      node.setAttribute('aria-label', label[now]);
      // Canvases do not follow CSS by themselves.
      document.dispatchEvent(new Event('themechange'));
    }, { kind: 'quiet theme', name: label[now], title: label[now] });
    return node;
  }

  toggleMenu(open = !this.side.classList.contains('open')) {
    this.side.classList.toggle('open', open);
    this.menu.setAttribute('aria-expanded', String(open));
  }

  drawHeading(route, params) {
    for (const link of this.side.querySelectorAll('.side-links a')) {
      if (link.dataset.view === route.view) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
    this.list.select(params.name ?? null);
    if (!route.tab) {
      replace(this.heading, h('h1', null, route.title(params)));
      document.title = `${route.title(params)} · timecached`;
      return;
    }
    const label = TABS.find(([tab]) => tab === route.tab)[1];
    document.title = `${params.name} · ${label} · timecached`;
    replace(this.heading,
      h('h1', null, params.name),
      h('nav', { class: 'tabs', 'aria-label': 'Views of the namespace' }, TABS.map(([tab, text]) =>
        h('a', {
          href: `#/${tab}/${encodeURIComponent(params.name)}`,
          'aria-current': tab === route.tab ? 'page' : null,
        }, text))));
  }

  show() {
    this.unmount?.();
    this.unmount = null;
    this.toggleMenu(false);
    const found = match(location.hash);
    if (!found) {
      location.replace('#/');
      return;
    }
    const { route, params } = found;
    this.drawHeading(route, params);
    // A new element for each view: what comes late of the last one must not draw over it.
    const root = h('div', { class: ['view', `view-${route.view}`] });
    this.view.replaceWith(root);
    this.view = root;
    announce(document.title);
    this.unmount = VIEWS[route.view].mount(root, {
      params, api: this.api, info: this.info, can: this.can, clock: this.clock,
      sampler: this.sampler,
    });
    window.scrollTo(0, 0);
  }
}

new App();
