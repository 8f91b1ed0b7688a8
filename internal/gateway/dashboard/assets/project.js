// One project: its limits, who shares them, its history, the tree around it, its keys, and who waits.

import {get, isBoundAway, viewer} from './api.js';
import {resource} from './act.js';
import {h, keyed, setText} from './dom.js';
import {compact, count, dimension, dollars} from './format.js';
import {keyPanel} from './keys.js';
import {header} from './model.js';
import {decisions, every, history, line, panel} from './pieces.js';
import {fillGauges, link} from './row.js';

export function show(body, name) {
  const top = header('project', name, crumbs(name));
  const past = history({project: name});
  const around = tree(name);
  const inside = shares(name);
  const load = async () => {
    try {
      const [up, down] = await Promise.all([
        Promise.all(above(name).filter((path) => !isBoundAway(path)).map((path) => get(resource('project', path)))),
        get('/v1/projects', {below: name, limit: 100}),
      ]);
      inside.fill(up.at(-1));
      around.fill([...up, ...down.projects.filter((p) => p.project !== name)]);
    } catch { /* the bar says that the gateway does not answer */ }
  };
  const uses = models(name);
  const waiting = line({project: name});
  const keys = keyPanel((k) => k.project === name || k.project.startsWith(`${name}/`), 'Keys', name);
  const recent = decisions({project: name});
  body.append(top.element, h('div', {class: 'stack'}, top.gauges, past.element, inside.element, h('div', {class: 'columns'}, around.element, h('div', {class: 'stack'}, uses.element, waiting.element)), keys.element, recent.element));
  const end = every(4000, load);
  return () => [top, past, {end}, uses, waiting, keys, recent].forEach((each) => each.end());
}

// above returns the paths of the projects above one, and its own: "a", "a/b", "a/b/c".
const above = (name) => name.split('/').map((_, i, parts) => parts.slice(0, i + 1).join('/'));

function crumbs(name) {
  const list = above(name).slice(0, -1).filter((path) => !isBoundAway(path));
  return h('p', {class: 'crumbs'}, h('a', {href: '#/'}, 'Projects'), list.map((path) => [' / ', h('a', {href: link('project', path)}, path.split('/').at(-1))]));
}

// tree is the panel with the projects above and below, and what is used of their limits.
function tree(name) {
  const list = h('ul', {class: 'tree'});
  const fill = (all) => keyed(list, all, (p) => p.project, (p) => {
    const item = h('li', {}, p.project === name ? h('span', {class: 'here'}, p.project) : h('a', {href: link('project', p.project)}, p.project), h('div', {class: 'gauges'}));
    item.firstChild.style.setProperty('--depth', p.project.split('/').length - 1);
    return item;
  }, (item, p) => fillGauges(item.lastChild, {name: p.project, dimensions: (p.windows ?? []).map(dimensionOf)}));
  return {element: panel('Above and below', null, list), fill};
}

// shares is the panel with the projects below one, and what each has used of its share of the limits that are divided among them.
function shares(name) {
  const head = h('tr', {});
  const rows = h('tbody', {});
  const more = h('span', {class: 'note'});
  const table = h('div', {class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Who shares its limits'}, h('table', {class: 'shares'}, h('thead', {}, head), rows));
  const element = panel('Who shares its limits', more, table);
  element.hidden = true;
  const fill = (p) => {
    const list = p.shares ?? [];
    const windows = (p.windows ?? []).filter((w) => list[0]?.limits.some((l) => l.limit === w.window));
    element.hidden = windows.length === 0;
    setText(more, p.more_shares ? `There are more than these ${count(list.length)}.` : '');
    keyed(head, ['Project', 'Weight', 'Priority', 'Waiting', ...windows.map(limitOf)], (words) => words, (words) => h('th', {scope: 'col', class: ['Weight', 'Priority', 'Waiting'].includes(words) ? 'number' : ''}, words));
    keyed(rows, list, (s) => `${s.project} ${s.own_calls} ${windows.map((w) => w.window)}`, (s) => shareRow(s, name, windows), (row, s) => fillShares(row, s, windows));
  };
  return {element, fill};
}

// limitOf returns a window in words: "6,000 tokens a minute" or "$20.00 a day".
function limitOf(w) {
  const words = dimension(w.window);
  return words.dollars ? `${dollars(w.limit / 1e9)} ${words.long.replace('dollars ', '')}` : `${compact(w.limit)} ${words.long}`;
}

function shareRow(s, name, windows) {
  return h('tr', {},
    h('td', {}, s.project === name ? 'itself' : h('a', {href: link('project', s.project)}, s.project.slice(name.length + 1)), s.own_calls && s.project !== name && ' itself'),
    [0, 1, 2].map(() => h('td', {class: 'number'})),
    windows.map(() => h('td', {}, document.createElement('rl-gauge'))));
}

function fillShares(row, s, windows) {
  [s.weight, s.priority, s.waiting].forEach((n, i) => setText(row.cells[i + 1], count(n)));
  row.querySelectorAll('rl-gauge').forEach((gauge, i) => {
    const l = s.limits.find((each) => each.limit === windows[i].window);
    const scale = windows[i].unit === 'nanodollars' ? 1e9 : 1;
    const most = l.share + l.lent; // a share is small while its project wants little, and grows back when it wants more
    gauge.show({name: `${l.limit}_share`, limit: most / scale, used: l.used / scale, remaining: Math.max(0, most - l.used) / scale, lent: l.lent / scale, borrowed: l.borrowed / scale}, s.project);
  });
}

// dimensionOf returns a window of a project as a row of the overview has it.
function dimensionOf(w) {
  const scale = w.unit === 'nanodollars' ? 1e9 : 1;
  return {name: w.window, limit: w.limit / scale, remaining: w.remaining / scale, used: (w.limit - w.remaining) / scale};
}

// models is the panel with the models that a project and those below it use.
function models(name) {
  const rows = h('tbody', {});
  const empty = h('p', {class: 'empty'}, 'It has used none in 15 minutes.');
  const table = h('div', {class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Models that it uses'}, h('table', {}, h('thead', {}, h('tr', {},
    ['Model', 'Project', 'Calls/min', 'Tokens/min', 'Dollars', 'Denied'].map((words, i) => h('th', {scope: 'col', class: i > 1 ? 'number' : ''}, words)))), rows));
  const load = async () => {
    if (viewer.project) return; // the table is of all projects
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
  const element = panel('Models that it uses', null, table, empty);
  element.hidden = viewer.project !== '';
  return {element, end: every(4000, load)};
}
