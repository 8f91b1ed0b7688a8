// The frame around all pages: which page is shown, whether the gateway answers, the theme, the session.

import './parts.js';
import './list.js';
import {switchMode} from './act.js';
import {call, get, viewer} from './api.js';
import {h, setAttribute, setText} from './dom.js';
import {live} from './live.js';

const pages = {
  overview: () => import('./overview.js'),
  matrix: () => import('./matrix.js'),
  usage: () => import('./usage.js'),
  decisions: () => import('./decisions.js'),
  explain: () => import('./explain.js'),
  keys: () => import('./keys.js'),
  audit: () => import('./audit.js'),
  model: () => import('./model.js'),
  project: () => import('./project.js'),
  key: () => import('./key.js'),
  signin: () => import('./signin.js'),
};
const forAll = ['overview', 'matrix', 'model', 'audit']; // pages about all projects, which a viewer who is bound to one may not see
const element = (id) => document.getElementById(id);
const content = element('content');
let leave = null; // ends the page that is shown
let shown = 0; // grows with every page, so that one which loads slowly does not replace a later one
let signedIn = true;

// route returns the page that the address names, and the rest of the address.
function route() {
  const [, name, ...rest] = location.hash.split('/');
  const page = name || 'overview';
  if (viewer.project && forAll.includes(page)) return ['project', viewer.project];
  if (Object.hasOwn(pages, page) && page !== 'signin') {
    try {
      return [page, rest.map(decodeURIComponent).join('/')];
    } catch { /* the address is not escaped as it must be */ }
  }
  return ['overview', ''];
}

async function show() {
  const number = ++shown;
  const [name, argument] = signedIn ? route() : ['signin', ''];
  for (const link of document.querySelectorAll('nav a')) {
    if (link.dataset.page === name) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  const page = await pages[name]();
  if (number !== shown) return;
  leave?.();
  const body = h('div', {class: `page ${name}`, 'data-route': location.hash});
  leave = page.show(body, argument, {enter, show});
  content.replaceChildren(body);
  const title = body.querySelector('h1')?.textContent ?? '';
  document.title = title ? `${title} · ratelimit` : 'ratelimit';
  if (number > 1 && !content.contains(document.activeElement)) content.focus({preventScroll: true});
  if (number > 1) scrollTo(0, 0);
}

addEventListener('hashchange', () => {
  if (location.hash !== '#content') show();
});

// enter asks whether the viewer has access, and shows the page or the sign-in.
async function enter() {
  const session = await get('/session').catch(() => null);
  if (session === null) { // the gateway does not answer: the live stream says so, and tries again
    live.start();
    return;
  }
  element('signout').hidden = !session.needs_token || !session.signed_in;
  const changed = signedIn !== session.signed_in || viewer.project !== (session.project ?? '');
  signedIn = session.signed_in;
  viewer.role = session.role ?? '';
  viewer.project = session.project ?? '';
  document.documentElement.dataset.role = viewer.role;
  for (const link of document.querySelectorAll('nav a')) link.hidden = viewer.project !== '' && forAll.includes(link.dataset.page) && link.dataset.page !== 'overview';
  element('connection').hidden = viewer.project !== '' || !signedIn;
  if (signedIn && !viewer.project) live.start();
  else live.stop();
  if (changed || shown === 0) await show();
}

addEventListener('signedout', enter);
element('signout').addEventListener('click', async () => {
  await call('DELETE', '/session').catch(() => null);
  enter();
});

const words = {connecting: 'connecting', live: 'live', lost: 'no connection'};
live.addEventListener('state', () => {
  element('connection').dataset.state = live.state;
  setText(element('connection'), words[live.state]);
  if (live.state === 'lost') enter(); // the session may have ended
  announce();
});
live.addEventListener('change', announce);

// whileLost says what becomes of calls while the store does not answer, by on_store_loss.
const whileLost = {
  deny: 'Calls that have a limit are refused with 503.',
  allow: 'Every call passes, without limits.',
  share: 'Each gateway lets its part of every limit pass.',
};

// announce shows what concerns all pages.
function announce() {
  const overview = live.overview;
  element('mode').hidden = overview?.mode !== 'shadow';
  element('switch').hidden = !overview || !signedIn || viewer.role !== 'admin';
  setText(element('switch'), `Mode: ${overview?.mode}`);
  let text = '';
  if (live.state === 'lost') text = 'The gateway does not answer. What is shown may be old; the page tries to connect again.';
  else if (overview?.store_lost) text = `The store does not answer, so nobody knows what is used. ${whileLost[overview.on_store_loss]} (${overview.store_lost})`;
  else if (overview?.silent?.length > 0) text = `${overview.silent.join(', ')} ${overview.silent.length === 1 ? 'does' : 'do'} not answer: what ${overview.silent.length === 1 ? 'it knows' : 'they know'} is missing here.`;
  setText(element('fleet'), overview?.gateways?.length > 1 ? `${overview.gateways.length} gateways` : '');
  setAttribute(element('fleet'), 'title', overview?.gateways?.join('\n') || null);
  setText(element('banner'), text);
  element('banner').hidden = text === '' || !signedIn;
}

element('switch').addEventListener('click', () => switchMode(live.overview.mode));

const themes = ['system', 'light', 'dark'];
function showTheme() {
  element('theme').textContent = `Theme: ${document.documentElement.dataset.theme ?? 'system'}`;
}
element('theme').addEventListener('click', () => {
  const root = document.documentElement;
  const next = themes[(themes.indexOf(root.dataset.theme ?? 'system') + 1) % themes.length];
  if (next === 'system') delete root.dataset.theme;
  else root.dataset.theme = next;
  document.cookie = `theme=${next}; path=/; max-age=31536000; samesite=strict`; // the gateway writes it into the page
  showTheme();
});
showTheme();
setText(element('zone'), `Times are in ${Intl.DateTimeFormat().resolvedOptions().timeZone}`);

enter();
if (shown === 0) show();
