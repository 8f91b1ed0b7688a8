// The overview: what needs attention, all models, and all projects, those first whose calls are harmed most.

import {get} from './api.js';
import {clone, h, keyed, parts, setText} from './dom.js';
import {compact, dimension, duration, percent, plural} from './format.js';
import {live} from './live.js';
import {fillRow, limitWords, link, makeRow} from './row.js';

const pageSize = 100;
const orderEvery = 3000; // milliseconds: rows must not jump while somebody reads them
const refreshEvery = 3000; // milliseconds between requests for rows that the live stream does not have

const sorts = {
  harm: ['most harmed', byHarm],
  pressure: ['closest to limit', byPressure],
  name: ['name', (a, b) => (a.name < b.name ? -1 : 1)],
  waiting: ['waiting', (a, b) => b.waiting - a.waiting],
  denied: ['denied', (a, b) => total(b.denied_by) - total(a.denied_by)],
  calls: ['calls', (a, b) => (b.minute?.passed ?? 0) - (a.minute?.passed ?? 0)],
};
const total = (list) => (list ?? []).reduce((n, d) => n + d.count, 0);

export function show(body) {
  const models = table('model', 'Models');
  const projects = table('project', 'Projects');
  const summary = makeSummary();
  body.append(h('h1', {class: 'unseen'}, 'Overview'), summary.element, h('div', {class: 'lists'}, models.element, projects.element));
  const changed = () => {
    summary.update();
    models.update();
    projects.update();
  };
  live.addEventListener('change', changed);
  changed();
  return () => {
    live.removeEventListener('change', changed);
    models.end();
    projects.end();
  };
}

function makeSummary() {
  const figures = {};
  const one = (name, words, note) => {
    figures[name] = h('dd', {}, '–');
    figures[`${name}Note`] = h('dd', {class: 'note'}, note);
    return h('div', {}, h('dt', {}, words), figures[name], figures[`${name}Note`]);
  };
  const list = h('ul', {});
  const element = h('div', {class: 'summary'},
    h('dl', {class: 'panel figures'}, one('passed', 'Passed', 'in 60 seconds'), one('denied', 'Denied', 'in 60 seconds'), one('waiting', 'Waiting', 'now')),
    h('section', {class: 'panel attention', 'aria-label': 'Needs attention'}, h('h2', {}, 'Needs attention'), list));
  return {
    element,
    update() {
      const totals = live.overview?.totals;
      if (!totals) return;
      for (const name of ['passed', 'denied', 'waiting']) setText(figures[name], compact(totals[name]));
      const found = attention([...live.models.values()], [...live.projects.values()]);
      keyed(list, found, (each) => each.key, () => h('li', {}, h('span', {class: 'sign', 'aria-hidden': 'true'}), h('span', {})), (item, each) => {
        item.firstChild.className = `sign ${each.kind}`;
        setText(item.firstChild, {bad: '■', warn: '▲', good: '✓'}[each.kind]);
        fillSentence(item.lastChild, each);
      });
    },
  };
}

function fillSentence(node, {kind, what, name, text}) {
  node.className = kind === 'good' ? 'calm' : '';
  if (node.textContent === (name ?? '') + text) return;
  node.replaceChildren(...(name ? [h('a', {href: link(what, name)}, name)] : []), text);
}

// attention returns sentences about what an operator should know first: as many as there is room for.
function attention(models, projects) {
  const found = [];
  const add = (weight, kind, what, name, text) => found.push({key: `${what} ${name} ${kind}`, weight, kind, what, name, text});
  for (const [what, rows] of [['model', models], ['project', projects]]) {
    for (const row of rows.filter((each) => !rows.some((inside) => inside.name.startsWith(`${each.name}/`) && causes(inside, each)))) {
      if (row.pause) add(4, 'bad', what, row.name, ` is paused by its provider${row.pause.reason ? `: ${row.pause.reason}` : ''}`);
      if (row.paused) add(1.5, 'warn', what, row.name, ' is paused by an operator');
      const stopped = (row.minute?.denied ?? 0) + (row.minute?.refused ?? 0);
      const denied = stopped > 0 && (row.denied_by?.[0] ?? {});
      const elsewhere = what === 'model' && denied && !isOwn(row, denied.limit); // the projects whose limits deny have sentences of their own
      if (row.harm === 'blocked' && !elsewhere) {
        add(5 + stopped / 1e6, 'bad', what, row.name, `: all calls are denied, ${stopped} in the last minute${because(row, denied)}`);
      } else if (row.waiting > 0 && (row.harm !== 'denied' || elsewhere)) {
        add(3 + row.waiting / 1e6, 'bad', what, row.name, `: ${plural(row.waiting, 'call')} ${row.waiting === 1 ? 'waits' : 'wait'}${row.longest_wait_seconds > 0 ? `, up to ${duration(row.longest_wait_seconds)}` : ''}${why(row)}`);
      } else if (denied && !elsewhere) {
        add(4 + stopped / 1e6, 'bad', what, row.name, `: ${plural(stopped, 'call')} denied in the last minute${because(row, denied)}`);
      } else if (row.harm === 'near') {
        add(2 + row.pressure / 10, 'warn', what, row.name, nearness(row).replace(/^;/, ' is'));
      }
    }
  }
  found.sort((a, b) => b.weight - a.weight);
  if (found.length > 5) found.splice(4, found.length - 4, {key: 'more', kind: found[4].kind, text: `and ${found.length - 4} more below`});
  return found.length > 0 ? found : [{key: 'none', kind: 'good', text: 'Nothing: no call waits, and nothing is near its limit.'}];
}

// isOwn reports whether a limit is one of a row, and not of a project that calls a model.
const isOwn = (row, limit) => limit === 'paused' || (row.dimensions ?? []).some((d) => limit === d.name || limit === `${d.name}_pace`);

// because says by what calls of a row are denied, since when, and what to do.
function because(row, denied) {
  const spark = row.spark_denied ?? [];
  const minutes = spark.length - 1 - spark.findLastIndex((n, i) => n === 0 && i < spark.length - 1);
  const since = minutes > 1 ? `, for ${minutes >= spark.length ? `${spark.length} minutes or more` : `${minutes} minutes`}` : '';
  if (row.minute.refused > row.minute.denied) return `, refused by the gateway${since}; its decisions say why`;
  return denied.limit ? `, mostly by ${limitWords(denied.limit)}${since}; raise that limit, or see its decisions` : since;
}

// causes reports whether most of the trouble of a project is that of one below it.
const causes = (inside, row) => (row.waiting > 0 ? 2 * inside.waiting >= row.waiting : row.minute.denied > 0 && 2 * inside.minute.denied >= row.minute.denied);

// why returns what calls of a row wait for: a limit of its own, or a model that is near one.
function why(row) {
  const model = (row.dimensions ?? []).map((d) => live.models.get(d.model)).find((m) => m?.pressure >= 0.9);
  return nearness(row) || (model ? ` for ${model.name}${nearness(model).replace(';', ', which is')}` : '');
}

const nearness = (row) => (row.closest && row.pressure >= 0.75 ? `; at ${percent(row.pressure)} of ${dimension(row.closest).long}` : '');

// byHarm orders rows as the gateway does: by what happens to their calls, and how many of them there are.
function byHarm(a, b) {
  const rank = (row) => ['near', 'waiting', 'denied', 'blocked'].indexOf(row.harm);
  const stopped = (row) => (row.minute?.denied ?? 0) + (row.minute?.refused ?? 0);
  return rank(b) - rank(a) || stopped(b) - stopped(a) || b.waiting - a.waiting || byPressure(a, b);
}

// byPressure orders rows as the gateway does: by what is closest to its limit, and then by calls.
function byPressure(a, b) {
  const calls = (row) => [...(row.spark ?? []), ...(row.spark_denied ?? [])].reduce((n, each) => n + each, 0);
  return b.pressure - a.pressure || calls(b) - calls(a) || (a.name < b.name ? -1 : 1);
}

// table returns a list of rows with its search and its order.
function table(kind, title) {
  const panel = clone('table-template');
  const {list, empty, kind: head} = parts(panel);
  panel.setAttribute('aria-label', title);
  head.textContent = kind === 'model' ? 'Model' : 'Project';
  const note = h('span', {class: 'note'});
  const search = h('input', {type: 'search', placeholder: `Search ${title.toLowerCase()}`, 'aria-label': `Search ${title.toLowerCase()}`, oninput: () => reorder()});
  const sort = h('select', {'aria-label': `Order of ${title.toLowerCase()}`, onchange: () => reorder()},
    Object.entries(sorts).map(([value, [words]]) => h('option', {value}, words)));
  const element = h('div', {class: 'list'}, h('div', {class: 'list-head'}, h('h2', {}, title), note, search, sort), panel);
  const rows = () => live[`${kind}s`];
  list.use(() => makeRow(kind), fillRow);
  const remote = remoteRows(list, () => ({search: search.value.trim(), sort: sort.value}));
  list.addEventListener('range', () => remote.want());
  list.addEventListener('loaded', () => draw());

  let order = []; // names, as they are shown
  let ordered = 0; // when they were put in order
  let local = null; // whether the live stream had all rows then
  const all = () => kind === 'model' || rows().size >= (live.overview?.project_count ?? 0);

  function reorder() {
    ordered = Date.now();
    local = all();
    if (!local) {
      remote.reset();
      draw();
      return;
    }
    const wanted = search.value.trim().toLowerCase();
    order = [...rows().values()]
      .filter((row) => row.name.toLowerCase().includes(wanted))
      .sort((a, b) => sorts[sort.value][1](a, b) || byHarm(a, b))
      .map((row) => row.name);
    draw();
  }

  function draw() {
    const count = all() ? order.length : remote.count();
    list.show(all() ? {count, at: (i) => rows().get(order[i]) ?? null} : {count, at: (i) => remote.at(i)});
    panel.setAttribute('aria-rowcount', count + 1);
    const known = live.overview?.[`${kind}_count`] ?? rows().size;
    setText(note, search.value.trim() === '' ? compact(known) : `${compact(count)} of ${compact(known)}`);
    empty.hidden = count > 0 || !live.overview;
    setText(empty, search.value ? 'No match.' : kind === 'model' ? 'No model has a quota or has been called.' : 'No projects yet.');
  }

  // update shows what has changed. Rows move at most every few seconds, and not under a pointer or the focus.
  function update() {
    const held = list.matches(':hover') || list.contains(document.activeElement);
    const others = local !== all() || (local && search.value === '' && rows().size !== order.length);
    if (others || (local && !held && Date.now() - ordered >= orderEvery)) reorder();
    else draw();
  }

  return {element, update, end: () => remote.end()};
}

// remoteRows are rows of which there are too many for the live stream. They come in pages, those that are in view.
function remoteRows(list, query) {
  let pages = new Map(); // rows by the number of the page
  let asked = new Map(); // when a page was last asked for
  let total = null;
  let version = 0;

  async function load(page) {
    asked.set(page, Date.now());
    const at = version;
    try {
      const answer = await get('/v1/overview/projects', {...query(), offset: page * pageSize, limit: pageSize});
      if (at !== version) return;
      pages.set(page, answer.projects);
      total = answer.total;
      list.dispatchEvent(new CustomEvent('loaded'));
    } catch { /* the bar says that the gateway does not answer; the page is asked for again */ }
  }

  function want() {
    if (total === null && asked.size === 0) return;
    const [first, last] = list.range();
    for (let page = Math.floor(first / pageSize); page <= Math.floor(Math.max(first, last - 1) / pageSize); page++) {
      if (Date.now() - (asked.get(page) ?? 0) >= refreshEvery) load(page);
    }
  }

  return {
    want,
    count: () => total ?? live.overview?.project_count ?? 0,
    at(index) {
      const row = pages.get(Math.floor(index / pageSize))?.[index % pageSize];
      return row ? live.projects.get(row.name) ?? row : null;
    },
    reset() {
      version++;
      asked = new Map();
      total = null;
      if (query().search !== '' || pages.size === 0) pages = new Map();
      load(0);
    },
    end() {
      version++;
    },
  };
}
