// Who uses what: projects and models, with calls, tokens and dollars.

import {get} from './api.js';
import {h, setText} from './dom.js';
import {compact, dollars, plural} from './format.js';
import {every, panel, segments} from './pieces.js';
import {link} from './row.js';

const metrics = {
  calls: ['Calls a minute', (c) => c.calls_per_minute, compactRate],
  tokens: ['Tokens a minute', (c) => c.tokens_per_minute, compact],
  dollars: ['Dollars', (c) => Number(c.dollars), dollars],
};
const most = 60; // columns and rows that are shown

function compactRate(n) {
  return n > 0 && n < 10 ? n.toFixed(1) : compact(n);
}

export function show(body) {
  let metric = 'calls';
  let cells = [];
  const note = h('p', {class: 'subtitle'}, 'The last 15 minutes.');
  const search = h('input', {type: 'search', placeholder: 'Search', 'aria-label': 'Search projects and models', oninput: () => draw()});
  const place = h('div', {class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Projects and models'});
  const draw = () => place.replaceChildren(matrix(cells, metric, search.value.trim().toLowerCase()));
  const tools = [search, segments('What is shown', Object.entries(metrics).map(([value, [words]]) => [value, words]), metric, (value) => { metric = value; draw(); })];
  body.append(h('div', {class: 'page-head'}, h('div', {}, h('h1', {}, 'Who uses what'), note)), panel('Projects and models', tools, place));
  return every(3000, async () => {
    try {
      const answer = await get('/v1/matrix', {limit: 1000});
      cells = answer.cells;
      const shown = new Set(cells.map((c) => c.project)).size;
      setText(note, `The last ${answer.minutes} minutes: ${plural(shown, 'project')} with ${plural(new Set(cells.map((c) => c.model)).size, 'model')}.`);
      draw();
    } catch { /* the bar says that the gateway does not answer */ }
  });
}

// matrix returns the table: projects down, models across, the largest first.
function matrix(cells, metric, wanted) {
  const [, value, show] = metrics[metric];
  const found = cells.filter((c) => c.project.toLowerCase().includes(wanted) || c.model.toLowerCase().includes(wanted));
  if (found.length === 0) return h('p', {class: 'empty'}, wanted ? 'No match.' : 'No project has called a model.');
  const projects = largest(found, (c) => c.project, value);
  const models = largest(found, (c) => c.model, value);
  const at = new Map(found.map((c) => [`${c.project}\0${c.model}`, c]));
  const top = Math.max(...found.map(value)) || 1;
  return h('table', {class: 'matrix'},
    h('thead', {}, h('tr', {}, h('th', {scope: 'col'}, 'Project'), models.map(([name, sum]) => h('th', {scope: 'col'}, h('a', {href: link('model', name)}, name), h('span', {class: 'sub'}, show(sum)))))),
    h('tbody', {}, projects.map(([project, sum]) => h('tr', {},
      h('th', {scope: 'row', title: project}, h('a', {href: link('project', project)}, project), h('span', {class: 'sub'}, show(sum))),
      models.map(([model]) => cell(at.get(`${project}\0${model}`), value, show, top))))));
}

// largest returns the names with the largest sums, and these.
function largest(cells, name, value) {
  const sums = new Map();
  for (const c of cells) sums.set(name(c), (sums.get(name(c)) ?? 0) + value(c));
  return [...sums].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, most);
}

function cell(c, value, show, top) {
  if (!c) return h('td', {class: 'note'}, '–');
  const troubles = [c.waiting > 0 && `${compact(c.waiting)} waiting`, c.denied > 0 && `✕ ${compact(c.denied)} denied`].filter(Boolean);
  const element = h('td', {class: 'heat'}, show(value(c)), h('span', {class: 'sub'}, troubles.join(', ') || ' '));
  element.style.setProperty('--heat', (value(c) / top).toFixed(3));
  return element;
}
