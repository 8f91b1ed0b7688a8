// One virtual key: its limits, its history, and its decisions.

import {pauseOrResume, revokeSecret, rotateSecret} from './act.js';
import {h} from './dom.js';
import {dimension, moment} from './format.js';
import {allKeys} from './keys.js';
import {setLimits} from './limits.js';
import {badge} from './parts.js';
import {decisions, every, history, line, panel} from './pieces.js';
import {link} from './row.js';

export function show(body, id) {
  const title = h('h1', {}, id);
  const buttons = h('div', {class: 'buttons'});
  const about = h('dl', {class: 'facts'});
  let shown = '';
  const load = async () => {
    const key = (await allKeys().catch(() => null))?.find((each) => each.id === id);
    if (JSON.stringify(key ?? null) === shown) return;
    shown = JSON.stringify(key ?? null);
    title.textContent = key?.name || id;
    about.replaceChildren(...(key ? facts(key) : [h('dt', {}, 'State'), h('dd', {}, badge('there is no such key', 'bad'))]));
    buttons.replaceChildren(...(key ? actions(key) : []));
  };
  const parts = [history({key: id}), line({key: id}), decisions({key: id})];
  body.append(h('div', {class: 'page-head'}, h('div', {}, h('p', {class: 'crumbs'}, h('a', {href: '#/keys'}, 'Keys')), title), buttons),
    h('div', {class: 'stack'}, panel('About', null, h('div', {class: 'panel-body'}, about)), parts.map((each) => each.element)));
  const end = every(4000, load);
  return () => {
    end();
    parts.forEach((each) => each.end());
  };
}

function actions(key) {
  return [['Set limits', () => setLimits('key', key.id), 'main'], [key.paused ? 'Resume' : 'Pause', () => pauseOrResume('key', key.id, key.paused)], ['Rotate', () => rotateSecret('key', key)], ['Revoke', () => revokeSecret('key', key)]]
    .map(([words, act, kind]) => h('button', {type: 'button', class: kind, onclick: act}, words));
}

function facts(key) {
  const limits = Object.entries(key.limit ?? {}).filter(([name]) => name !== 'resets').map(([name, value]) => `${value} ${dimension(name).long}`);
  const fact = (words, value) => [h('dt', {}, words), h('dd', {}, value)];
  return [
    fact('Id', h('span', {class: 'code'}, key.id)),
    fact('Project', h('a', {href: link('project', key.project)}, key.project)),
    fact('State', key.paused ? badge('paused', 'bad') : badge('valid', 'good')),
    fact('Limits', limits.join(', ') || 'none of its own'),
    fact('Models', (key.models ?? []).join(', ') || 'all'),
    fact('Created', moment(key.created)),
    fact('Expires', key.expires ? moment(key.expires) : 'never'),
  ].flat();
}
