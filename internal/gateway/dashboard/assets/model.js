// One model: its quota, its history, who competes for it, and who waits.

import {get} from './api.js';
import {pauseOrResume, reset, resource} from './act.js';
import {h, keyed, setText} from './dom.js';
import {compact, count, dimension, dollars, percent, plural} from './format.js';
import {live} from './live.js';
import {setLimits} from './limits.js';
import {decisions, every, history, line, panel} from './pieces.js';
import {badgesOf, fillGauges, limitWords, link} from './row.js';

export function show(body, name) {
  const top = header('model', name);
  const past = history({model: name});
  const rivals = competitors(name);
  const waiting = line({model: name});
  const recent = decisions({model: name});
  body.append(top.element, h('div', {class: 'stack'}, top.gauges, past.element, h('div', {class: 'columns'}, rivals.element, waiting.element), recent.element));
  return () => [top, past, rivals, waiting, recent].forEach((each) => each.end());
}

// header is the head of the page of a model or project: its name, what can be done, and its gauges, live.
export function header(kind, name, crumbs) {
  let row = null;
  const badges = h('span', {class: 'badges'});
  const facts = h('p', {class: 'subtitle'});
  const pause = h('button', {type: 'button', onclick: () => pauseOrResume(kind, name, row?.paused ?? false)}, 'Pause');
  const gauges = h('div', {class: 'gauges large'});
  const provider = h('p', {class: 'note'});
  const element = h('div', {class: 'page-head'},
    h('div', {}, crumbs ?? h('p', {class: 'crumbs'}, h('a', {href: '#/'}, 'Models')), h('h1', {}, name), facts, badges),
    h('div', {class: 'buttons'},
      h('button', {type: 'button', class: 'main', onclick: () => setLimits(kind, name)}, 'Set limits'), pause,
      h('button', {type: 'button', onclick: () => reset(kind, name)}, 'Reset')));
  const draw = () => {
    row = live[`${kind}s`].get(name) ?? row;
    if (!row) return;
    keyed(badges, badgesOf(row), ([key]) => key, ([, make]) => make());
    setText(pause, row.paused ? 'Resume' : 'Pause');
    const m = row.minute;
    setText(facts, `Last minute: ${plural(m.passed, 'call')} passed, ${compact(m.denied)} denied, ${compact(m.tokens)} tokens, ${dollars(Number(m.dollars))}. ${row.waiting > 0 ? `${plural(row.waiting, 'call')} waiting.` : 'No call waits.'}`);
    fillGauges(gauges, row);
    setText(provider, providerText(row));
    provider.hidden = provider.textContent === '';
  };
  const load = async () => { // a project may not be among those that the live stream has
    if (kind !== 'project' || live.projects.has(name)) return;
    const found = await get('/v1/overview/projects', {search: name, sort: 'name', limit: 200}).catch(() => null);
    row = found?.projects.find((each) => each.name === name) ?? row;
    draw();
  };
  live.addEventListener('change', draw);
  draw();
  const end = every(3000, load);
  return {
    element,
    gauges: panel('Used of limit', null, h('div', {class: 'panel-body stack'}, gauges, provider)),
    end: () => {
      live.removeEventListener('change', draw);
      end();
    },
  };
}

// providerText says what the provider counts, beside what the gateway counts.
function providerText(row) {
  return (row.provider ?? []).filter((p) => p.limit > 0 && p.remaining >= 0)
    .map((p) => `The provider reports ${count(p.limit - p.remaining)} of ${count(p.limit)} ${limitWords(p.dimension)} used; the gateway had counted ${count(p.used_here)}.`).join(' ');
}

// competitors are the projects that use a model, with their shares of it.
function competitors(model) {
  const rows = h('tbody', {});
  const empty = h('p', {class: 'empty'}, 'No project has used it in 15 minutes.');
  const table = h('div', {class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Who competes'}, h('table', {}, h('thead', {}, h('tr', {},
    ['Project', 'Waiting', 'Denied', 'Share used', 'Calls/min', 'Tokens/min'].map((words, i) => h('th', {scope: 'col', class: i > 0 ? 'number' : ''}, words)))), rows));
  const load = async () => {
    try {
      const [matrix, quota] = await Promise.all([get('/v1/matrix', {limit: 1000}), get(resource('model', model)).catch(() => null)]);
      const shares = new Map((quota?.shares ?? []).map((s) => [s.project, s]));
      const cells = matrix.cells.filter((c) => c.model === model);
      keyed(rows, cells, (c) => JSON.stringify([c, shares.get(c.project)]), (c) => competitor(c, shares.get(c.project)));
      empty.hidden = cells.length > 0;
      table.hidden = cells.length === 0;
    } catch { /* the bar says that the gateway does not answer */ }
  };
  return {element: panel('Who competes', null, table, empty), end: every(3000, load)};
}

function competitor(c, share) {
  const tightest = (share?.limits ?? []).filter((s) => s.share > 0).sort((a, b) => b.used / b.share - a.used / a.share)[0];
  const text = tightest ? `${percent(tightest.used / tightest.share)} of ${compact(tightest.share)} ${dimension(tightest.limit).short}` : '–';
  const lent = tightest?.lent > 0 ? `${compact(tightest.lent)} lent` : tightest?.borrowed > 0 ? `${compact(tightest.borrowed)} borrowed` : '';
  return h('tr', {},
    h('td', {}, h('a', {href: link('project', c.project)}, c.project)),
    h('td', {class: 'number'}, compact(c.waiting)),
    h('td', {class: 'number'}, compact(c.denied)),
    h('td', {class: 'number share'}, text, lent && h('div', {class: 'note'}, lent)),
    h('td', {class: 'number'}, c.calls_per_minute.toFixed(1)),
    h('td', {class: 'number'}, compact(c.tokens_per_minute)));
}

