// All virtual keys, and for administrators the tokens of the admin API.

import {get, viewer} from './api.js';
import {createKey, createToken, pauseOrResume, revokeSecret, rotateSecret} from './act.js';
import {h, keyed} from './dom.js';
import {moment} from './format.js';
import {every, panel} from './pieces.js';
import {ago, badge, until} from './parts.js';
import {link} from './row.js';

// all returns all keys, or all tokens.
async function all(kind) {
  const list = [];
  for (let after = ''; ;) {
    const page = await get(`/v1/${kind}s`, {limit: 1000, after});
    list.push(...page[`${kind}s`]);
    after = page.next;
    if (!after) return list;
  }
}

export const allKeys = () => all('key');

export function show(body) {
  const lists = [keyPanel(() => true, 'Virtual keys')];
  const admin = viewer.role === 'admin' && viewer.project === '';
  if (admin) lists.push(secrets('token', 'Admin tokens', ['Token', 'Role', 'Project', 'Created', 'Expires'], tokenRow, () => true, createToken));
  body.append(h('div', {class: 'page-head'}, h('div', {}, h('h1', {}, 'Keys'), h('p', {class: 'subtitle'}, `Each key belongs to one project. ${admin ? 'Tokens are for this dashboard, the admin API and the command line. A' : 'Its'} secret is shown only once.`))),
    h('div', {class: 'stack'}, lists.map((each) => each.element)));
  return () => lists.forEach((each) => each.end());
}

// keyPanel is the panel with those keys that a function wants. New ones are for a project.
export const keyPanel = (wanted, title, project = '') => secrets('key', title, ['Key', 'Project', 'Last used', 'Created', 'Expires'], keyRow, wanted, () => createKey(project));

// secrets is a panel of keys or tokens: those that a function wants.
function secrets(kind, title, columns, row, wanted, create) {
  const rows = h('tbody', {});
  const empty = h('p', {class: 'empty', hidden: true});
  const search = h('input', {type: 'search', placeholder: 'Search', 'aria-label': `Search ${kind}s`, oninput: () => draw()});
  const table = h('div', {class: 'scroll', tabindex: 0, role: 'group', 'aria-label': title}, h('table', {}, h('thead', {}, h('tr', {},
    columns.map((words) => h('th', {scope: 'col'}, words)), h('th', {scope: 'col'}, h('span', {class: 'unseen'}, 'Actions')))), rows));
  let known = [];
  const draw = () => {
    const text = search.value.trim().toLowerCase();
    const list = known.filter((k) => [k.id, k.project ?? '', k.name ?? '', k.role ?? ''].some((each) => each.toLowerCase().includes(text)));
    keyed(rows, list.slice(0, 500), (k) => JSON.stringify(k), row);
    empty.textContent = text ? `No matching ${kind}s.` : 'There are none.';
    empty.hidden = list.length > 0;
  };
  const end = every(5000, async () => {
    try {
      known = (await all(kind)).filter(wanted);
      draw();
    } catch (failure) {
      empty.textContent = failure.message;
      empty.hidden = false;
    }
  });
  return {element: panel(title, [search, h('button', {type: 'button', class: 'main acts', onclick: create}, `Create a ${kind}`)], table, empty), end};
}

function keyRow(k) {
  const name = k.name || k.id;
  return h('tr', {},
    h('td', {class: 'wrap'}, h('a', {href: link('key', k.id)}, name), ' ', k.paused && badge('paused', 'bad'), k.name && h('div', {class: 'note code'}, k.id)),
    h('td', {}, h('a', {href: link('project', k.project)}, k.project)),
    h('td', {class: 'nowrap'}, k.last_used ? ago(k.last_used) : 'never'),
    ages(k),
    buttons(name, [[k.paused ? 'Resume' : 'Pause', () => pauseOrResume('key', k.id, k.paused)], ...changes('key', k)]));
}

function tokenRow(k) {
  return h('tr', {},
    h('td', {class: 'wrap'}, k.name, h('div', {class: 'note code'}, k.id)),
    h('td', {}, k.role),
    h('td', {}, k.project ? h('a', {href: link('project', k.project)}, k.project) : 'all'),
    ages(k),
    buttons(k.name, changes('token', k)));
}

const ages = (k) => [h('td', {class: 'nowrap', title: moment(k.created)}, ago(k.created)), h('td', {class: 'nowrap'}, k.expires ? until(k.expires) : 'never')];
const changes = (kind, k) => [['Rotate', () => rotateSecret(kind, k)], ['Revoke', () => revokeSecret(kind, k)]];
const buttons = (name, list) => h('td', {}, h('div', {class: 'buttons'}, list.map(([words, act]) => h('button', {type: 'button', class: 'plain', 'aria-label': `${words} ${name}`, onclick: act}, words))));
