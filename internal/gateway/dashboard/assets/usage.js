// What was used, by hour or day, project, model and key, as `ratelimit usage` has it.

import {get, withQuery} from './api.js';
import {field} from './act.js';
import {h, setText} from './dom.js';
import {count, dollars, moment} from './format.js';
import {allKeys} from './keys.js';
import {units} from './kinds.js'; // what calls use beside tokens: each has a column if any was used
import {every, panel} from './pieces.js';
import {link} from './row.js';

const dimensions = ['hour', 'day', 'project', 'model', 'key'];
const spans = [['24h', 'last 24 hours'], ['7d', 'last 7 days'], ['30d', 'last 30 days'], ['90d', 'last 90 days'], ['365d', 'last year']];
const most = 500; // rows that are shown

export function show(body) {
  const chosen = new Set(['project']);
  const since = h('select', {name: 'since', onchange: () => load()}, spans.map(([value, words]) => h('option', {value, selected: value === '30d'}, words)));
  const project = h('input', {type: 'search', name: 'project', placeholder: 'all', autocomplete: 'off', oninput: () => soon()});
  const buttons = new Map(dimensions.map((each) => [each, h('button', {type: 'button', onclick: () => choose(each)}, each[0].toUpperCase() + each.slice(1))]));
  const by = h('div', {class: 'segments', role: 'group', 'aria-label': 'Group by'}, ...buttons.values());
  const file = h('a', {download: 'usage.csv'}, 'Download CSV');
  const note = h('p', {class: 'empty', hidden: true});
  const place = h('div', {class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Usage'});
  let names = new Map(); // of keys, by their ids
  let asked = 0;
  let timer = 0;
  const query = () => ({by: dimensions.filter((each) => chosen.has(each)).join(), since: since.value, project: project.value.trim()});
  const choose = (name) => {
    if (!chosen.delete(name)) chosen.add(name);
    if (chosen.has(name) && name === 'hour') chosen.delete('day');
    if (chosen.has(name) && name === 'day') chosen.delete('hour');
    load();
  };
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(load, 250);
  };
  const load = async () => {
    for (const [each, button] of buttons) button.setAttribute('aria-pressed', String(chosen.has(each)));
    file.href = withQuery('/v1/usage', {...query(), format: 'csv'});
    const number = ++asked;
    try {
      if (chosen.has('key')) names = new Map((await allKeys()).map((k) => [k.id, k.name]));
      const report = await get('/v1/usage', query());
      if (number !== asked) return;
      if (!chosen.has('hour') && !chosen.has('day')) report.rows.sort((a, b) => Number(b.dollars) - Number(a.dollars) || b.requests - a.requests || b.denied - a.denied);
      place.replaceChildren(usageTable(report, names));
      setText(note, report.rows.length === 0 ? 'Nothing was used in this time.' : report.rows.length > most ? `These are the first ${count(most)} of ${count(report.rows.length)} rows. The CSV file has all of them.` : '');
    } catch (failure) {
      if (number !== asked) return;
      place.replaceChildren();
      setText(note, failure.message);
    }
    note.hidden = note.textContent === '';
  };
  body.append(h('div', {class: 'page-head'}, h('div', {}, h('h1', {}, 'Usage'), h('p', {class: 'subtitle'}, 'What the calls of all gateways on this store have used. Hours and days are those of UTC.'))),
    h('div', {class: 'inline-form stack-below'}, field('Time', since), field('Project', project)), panel('Usage', [by, file], place, note));
  const end = every(30_000, load);
  return () => {
    end();
    clearTimeout(timer);
  };
}

// usageTable returns the rows of a report, and their sum below them.
function usageTable(report, names) {
  const columns = [
    ['Requests', (s) => count(s.requests)], ['Input', (s) => count(s.input_tokens)], ['Cached', (s) => count(s.cached_tokens)], ['Output', (s) => count(s.output_tokens)],
    ...units.filter(({name}) => report.total[name] > 0).map(({name, heading}) => [heading[0].toUpperCase() + heading.slice(1), (s) => count(s[name] ?? 0)]),
    ['Dollars', (s) => dollars(Number(s.dollars))], ['Denied', (s) => count(s.denied)], ['Waited', (s) => count(s.waited)],
  ];
  const numbers = (s) => columns.map(([, show]) => h('td', {class: 'number'}, show(s)));
  return h('table', {},
    h('thead', {}, h('tr', {}, report.by.map((each) => h('th', {scope: 'col'}, each[0].toUpperCase() + each.slice(1))), columns.map(([words]) => h('th', {scope: 'col', class: 'number'}, words)))),
    h('tbody', {}, report.rows.slice(0, most).map((row) => h('tr', {}, report.by.map((each) => nameCell(row, each, names)), numbers(row)))),
    report.by.length > 0 && h('tfoot', {}, h('tr', {}, h('th', {scope: 'row', colspan: report.by.length}, 'Total'), numbers(report.total))));
}

function nameCell(row, by, names) {
  if (by === 'hour' || by === 'day') return h('td', {class: 'nowrap', title: moment(row.time)}, row.time.slice(0, by === 'day' ? 10 : 16).replace('T', ' '));
  const name = row[by];
  if (!name || by === 'model') return h('td', {}, name || 'none'); // a model here is the provider's, and not a quota, which has a page
  return h('td', {}, h('a', {href: link(by, name), title: by === 'key' ? name : null}, (by === 'key' && names.get(name)) || name));
}
