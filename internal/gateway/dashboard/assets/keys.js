// All virtual keys.

import {get} from './api.js';
import {createKey, pauseOrResume, revokeKey, rotateKey} from './act.js';
import {h, keyed} from './dom.js';
import {moment} from './format.js';
import {every, panel} from './pieces.js';
import {ago, badge, until} from './parts.js';
import {link} from './row.js';

// allKeys returns all virtual keys.
export async function allKeys() {
  const all = [];
  for (let after = ''; ;) {
    const page = await get('/v1/keys', {limit: 1000, after});
    all.push(...page.keys);
    after = page.next;
    if (!after) return all;
  }
}

export function show(body) {
  const list = keyPanel(() => true, 'Virtual keys');
  body.append(h('div', {class: 'page-head'}, h('div', {}, h('h1', {}, 'Keys'), h('p', {class: 'subtitle'}, 'Each key belongs to one project. Its secret is shown only once.'))), list.element);
  return list.end;
}

// keyPanel is the panel with those keys that a function wants. New ones are for a project.
export function keyPanel(wanted, title, project = '') {
  const rows = h('tbody', {});
  const empty = h('p', {class: 'empty', hidden: true});
  const search = h('input', {type: 'search', placeholder: 'Search', 'aria-label': 'Search keys', oninput: () => draw()});
  const table = h('div', {class: 'scroll', tabindex: 0, role: 'group', 'aria-label': title}, h('table', {}, h('thead', {}, h('tr', {},
    ['Key', 'Project', 'Created', 'Expires', 'Last used'].map((words) => h('th', {scope: 'col'}, words)), h('th', {scope: 'col'}, h('span', {class: 'unseen'}, 'Actions')))), rows));
  let all = [];
  const draw = () => {
    const text = search.value.trim().toLowerCase();
    const list = all.filter((k) => [k.id, k.project, k.name ?? ''].some((each) => each.toLowerCase().includes(text)));
    keyed(rows, list.slice(0, 500), (k) => JSON.stringify(k), keyRow);
    empty.textContent = text ? 'No key has such a name.' : 'There are none.';
    empty.hidden = list.length > 0;
  };
  const end = every(5000, async () => {
    try {
      all = (await allKeys()).filter(wanted);
      draw();
    } catch (failure) {
      empty.textContent = failure.message;
      empty.hidden = false;
    }
  });
  const create = h('button', {type: 'button', class: 'main acts', onclick: () => createKey(project)}, 'Create a key');
  return {element: panel(title, [search, create], table, empty), end};
}

function keyRow(k) {
  const name = k.name || k.id;
  return h('tr', {},
    h('td', {class: 'wrap'}, h('a', {href: link('key', k.id)}, name), ' ', k.paused && badge('paused', 'bad'), k.name && h('div', {class: 'note code'}, k.id)),
    h('td', {}, h('a', {href: link('project', k.project)}, k.project)),
    h('td', {class: 'nowrap', title: moment(k.created)}, ago(k.created)),
    h('td', {class: 'nowrap'}, k.expires ? until(k.expires) : 'never'),
    h('td', {class: 'nowrap'}, k.last_used ? ago(k.last_used) : '–'),
    h('td', {}, h('div', {class: 'buttons'},
      [[k.paused ? 'Resume' : 'Pause', () => pauseOrResume('key', k.id, k.paused)], ['Rotate', () => rotateKey(k)], ['Revoke', () => revokeKey(k)]]
        .map(([words, act]) => h('button', {type: 'button', class: 'plain', 'aria-label': `${words} ${name}`, onclick: act}, words)))));
}
