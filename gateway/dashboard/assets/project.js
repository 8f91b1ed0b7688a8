// One project: its limits, its history, the tree around it, its keys, and who waits.

import {get} from './api.js';
import {resource} from './act.js';
import {h, keyed} from './dom.js';
import {compact, dollars} from './format.js';
import {keyPanel} from './keys.js';
import {header} from './model.js';
import {decisions, every, history, line, panel} from './pieces.js';
import {fillGauges, link} from './row.js';

export function show(body, name) {
  const top = header('project', name, crumbs(name));
  const past = history({project: name});
  const around = tree(name);
  const uses = models(name);
  const waiting = line({project: name});
  const keys = keyPanel((k) => k.project === name || k.project.startsWith(`${name}/`), 'Keys', name);
  const recent = decisions({project: name});
  body.append(top.element, h('div', {class: 'stack'}, top.gauges, past.element, h('div', {class: 'columns'}, around.element, h('div', {class: 'stack'}, uses.element, waiting.element)), keys.element, recent.element));
  return () => [top, past, around, uses, waiting, keys, recent].forEach((each) => each.end());
}

// above returns the paths of the projects above one, and its own: "a", "a/b", "a/b/c".
const above = (name) => name.split('/').map((_, i, parts) => parts.slice(0, i + 1).join('/'));

function crumbs(name) {
  const list = above(name).slice(0, -1);
  return h('p', {class: 'crumbs'}, h('a', {href: '#/'}, 'Projects'), list.map((path) => [' / ', h('a', {href: link('project', path)}, path.split('/').at(-1))]));
}

// tree is the panel with the projects above and below, and what is used of their limits.
function tree(name) {
  const list = h('ul', {class: 'tree'});
  const load = async () => {
    try {
      const [up, down] = await Promise.all([
        Promise.all(above(name).map((path) => get(resource('project', path)))),
        get('/v1/projects', {below: name, limit: 100}),
      ]);
      const all = [...up, ...down.projects.filter((p) => p.project !== name)];
      keyed(list, all, (p) => p.project, (p) => {
        const item = h('li', {}, p.project === name ? h('span', {class: 'here'}, p.project) : h('a', {href: link('project', p.project)}, p.project), h('div', {class: 'gauges'}));
        item.firstChild.style.setProperty('--depth', p.project.split('/').length - 1);
        return item;
      }, (item, p) => fillGauges(item.lastChild, {name: p.project, dimensions: (p.windows ?? []).map(dimensionOf)}));
    } catch { /* the bar says that the gateway does not answer */ }
  };
  return {element: panel('Above and below', null, list), end: every(4000, load)};
}

// dimensionOf returns a window of a project as a row of the overview has it.
function dimensionOf(w) {
  const scale = w.unit === 'nanodollars' ? 1e9 : 1;
  return {name: w.window, limit: w.limit / scale, remaining: w.remaining / scale, used: (w.limit - w.remaining) / scale};
}

// models is the panel with the models that a project and those inside of it use.
function models(name) {
  const rows = h('tbody', {});
  const empty = h('p', {class: 'empty'}, 'It has used none in 15 minutes.');
  const table = h('div', {class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Models that it uses'}, h('table', {}, h('thead', {}, h('tr', {},
    ['Model', 'Project', 'Calls/min', 'Tokens/min', 'Dollars', 'Denied'].map((words, i) => h('th', {scope: 'col', class: i > 1 ? 'number' : ''}, words)))), rows));
  const load = async () => {
    try {
      const cells = (await get('/v1/matrix', {limit: 1000})).cells.filter((c) => c.project === name || c.project.startsWith(`${name}/`)).slice(0, 50);
      keyed(rows, cells, (c) => JSON.stringify(c), (c) => h('tr', {},
        h('td', {}, h('a', {href: link('model', c.model)}, c.model)),
        h('td', {}, c.project === name ? 'itself' : h('a', {href: link('project', c.project)}, c.project.slice(name.length + 1))),
        h('td', {class: 'number'}, c.calls_per_minute.toFixed(1)),
        h('td', {class: 'number'}, compact(c.tokens_per_minute)),
        h('td', {class: 'number'}, dollars(Number(c.dollars))),
        h('td', {class: 'number'}, compact(c.denied))));
      empty.hidden = cells.length > 0;
      table.hidden = cells.length === 0;
    } catch { /* the bar says that the gateway does not answer */ }
  };
  return {element: panel('Models that it uses', null, table, empty), end: every(4000, load)};
}
