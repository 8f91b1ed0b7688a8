// The audit log: who has changed what.

import {get} from './api.js';
import {h, keyed} from './dom.js';
import {moment} from './format.js';
import {every, panel} from './pieces.js';
import {badge} from './parts.js';

export function show(body) {
  const rows = h('tbody', {});
  const empty = h('p', {class: 'empty', hidden: true});
  const search = h('input', {type: 'search', placeholder: 'Search', 'aria-label': 'Search the audit log', oninput: () => draw()});
  const table = h('div', {class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Changes'}, h('table', {},
    h('thead', {}, h('tr', {}, ['Time', 'Action', 'Subject', 'What has changed', 'Result', 'Who'].map((words) => h('th', {scope: 'col'}, words)))), rows));
  let entries = [];
  const draw = () => {
    const wanted = search.value.trim().toLowerCase();
    const list = entries.filter((e) => JSON.stringify(e).toLowerCase().includes(wanted));
    keyed(rows, list, (e) => `${e.seq} ${e.result}`, auditRow);
    empty.textContent = wanted ? 'No matching entries.' : 'Nothing has been changed yet.';
    empty.hidden = list.length > 0;
  };
  body.append(h('div', {class: 'page-head'}, h('div', {}, h('h1', {}, 'Audit log'), h('p', {class: 'subtitle'}, 'Every change, newest first. The gateway records each before it makes it.'))),
    panel('Changes', search, table, empty));
  return every(5000, async () => {
    try {
      entries = finished((await get('/v1/audit', {limit: 1000})).entries).reverse();
      draw();
    } catch (failure) {
      empty.textContent = failure.message;
      empty.hidden = false;
    }
  });
}

// finished leaves out the entries of intentions whose results follow.
function finished(entries) {
  return entries.filter((e, i) => e.result !== 'intended' || !entries.slice(i + 1, i + 50).some((later) => later.result !== 'intended' && same(e, later)));
}

const same = (a, b) => a.action === b.action && a.subject === b.subject && a.who === b.who;
const results = {done: 'good', failed: 'bad', intended: 'warn'};

function auditRow(e) {
  return h('tr', {},
    h('td', {class: 'moment'}, moment(e.time)),
    h('td', {class: 'nowrap'}, e.action),
    h('td', {class: 'subject'}, e.subject ?? ''),
    h('td', {class: 'wrap'}, e.error ? h('p', {}, e.error) : differences(e.before, e.after),
      e.until && h('p', {class: 'note'}, `until ${moment(e.until)}`), e.reason && h('p', {class: 'note'}, `because: ${e.reason}`)),
    h('td', {}, badge(e.result, results[e.result] ?? 'plain', e.error)),
    h('td', {class: 'nowrap'}, e.who, e.gateway && h('span', {class: 'note'}, ` at ${e.gateway}`)));
}

// differences lists the fields that a change has changed.
export function differences(before, after) {
  const flat = (value) => (value && typeof value === 'object' && !Array.isArray(value) ? value : {});
  const [one, two] = [flat(before), flat(after)];
  const names = [...new Set([...Object.keys(one), ...Object.keys(two)])].filter((name) => JSON.stringify(one[name]) !== JSON.stringify(two[name]));
  return h('ul', {}, names.map((name) => h('li', {}, `${name}: `, before ? change(one[name], two[name]) : h('ins', {}, words(two[name])))));
}

// change shows a value before and after it has changed.
export const change = (before, after) => h('span', {}, h('del', {}, words(before)), ' → ', h('ins', {}, words(after)));

const words = (value) => (value === undefined || value === null ? 'none' : typeof value === 'object' ? JSON.stringify(value) : String(value));
