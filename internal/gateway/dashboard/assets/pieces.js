// Panels that several pages have: history, decisions, the line.

import {get} from './api.js';
import {columns, legend} from './chart.js';
import {h, keyed} from './dom.js';
import {clock, clockOrDay, compact, count, day, dollars, duration, minute, moment, percent} from './format.js';
import {ago, badge, outcomeBadge, until} from './parts.js';
import {limitWords, link} from './row.js';

// every runs a function now, every so many milliseconds while the page is seen, and after each action. It returns the function that ends it.
export function every(milliseconds, run) {
  let over = false;
  let timer = 0;
  const again = async () => {
    clearTimeout(timer);
    if (!document.hidden) await run();
    clearTimeout(timer);
    if (!over) timer = setTimeout(again, milliseconds);
  };
  addEventListener('acted', again);
  again();
  return () => {
    over = true;
    clearTimeout(timer);
    removeEventListener('acted', again);
  };
}

// segments is a choice of few words.
export function segments(name, choices, chosen, choose) {
  const group = h('div', {class: 'segments', role: 'group', 'aria-label': name});
  group.append(...choices.map(([value, words]) => h('button', {type: 'button', 'aria-pressed': String(value === chosen), onclick: (event) => {
    for (const each of group.children) each.setAttribute('aria-pressed', String(each === event.currentTarget));
    choose(value);
  }}, words)));
  return group;
}

// panel is a framed part of a page.
export function panel(title, tools, ...content) {
  return h('section', {class: 'panel', 'aria-label': title}, h('div', {class: 'panel-head'}, h('h2', {}, title), tools), content);
}

const metrics = {
  calls: ['Calls', (p) => [{value: p.passed, kind: 'passed'}, {value: p.denied, kind: 'denied'}], compact],
  tokens: ['Tokens', (p) => [{value: p.input_tokens + p.output_tokens, kind: 'passed'}], compact],
  dollars: ['Dollars', (p) => [{value: Number(p.dollars), kind: 'passed'}], dollars],
};

// history is the panel with the chart of what was used by minute, hour or day.
export function history(filter) {
  let by = 'minute';
  let metric = 'calls';
  let points = [];
  const place = h('div', {class: 'panel-body'}, h('div', {class: 'chart'}));
  const keys = legend(['passed', 'passed'], ['denied', 'denied']);
  const draw = () => {
    if (place.clientWidth === 0) return;
    const [words, values, number] = metrics[metric];
    keys.hidden = metric !== 'calls';
    place.replaceChildren(columns(points, {
      values, number, name: `${words} by ${by}`, width: Math.max(240, place.clientWidth - 32),
      label: (p) => (by === 'minute' || by === 'hour' ? minute(p.time) : day(p.time)),
      title: (p) => `${moment(p.time)}\n${count(p.passed)} passed, ${count(p.denied)} denied${p.waited ? `, ${count(p.waited)} waited` : ''}\n${count(p.input_tokens)} tokens in, ${count(p.output_tokens)} out, ${dollars(Number(p.dollars))}`,
    }), keys);
  };
  const load = async () => {
    try {
      points = (await get('/v1/history', {...filter, by})).points;
      draw();
    } catch (failure) {
      place.replaceChildren(h('p', {class: 'note'}, failure.message));
    }
  };
  const tools = [
    segments('What is shown', Object.entries(metrics).map(([value, [words]]) => [value, words]), metric, (value) => { metric = value; draw(); }),
    segments('By', [['minute', 'Minutes'], ['hour', 'Hours'], ['day', 'Days']], by, (value) => { by = value; load(); }),
  ];
  const resized = new ResizeObserver(draw);
  resized.observe(place);
  const end = every(10_000, load);
  return {
    element: panel('History', tools, place),
    end: () => {
      end();
      resized.disconnect();
    },
  };
}

const outcomes = ['passed', 'denied', 'refused', 'throttled', 'failed', 'cut', 'left', 'lost'];

// decisions is the panel with the last decisions, newest first.
export function decisions(filter, {title = 'Recent decisions', outcome = '', limit = 50, more = []} = {}) {
  const chosen = h('select', {'aria-label': 'Outcome', onchange: () => load()}, h('option', {value: ''}, 'all outcomes'),
    outcomes.map((value) => h('option', {value, selected: value === outcome}, value)));
  const body = h('tbody', {});
  const empty = h('p', {class: 'empty', hidden: true}, 'There are none.');
  const table = h('div', {class: 'scroll', tabindex: 0, role: 'group', 'aria-label': title}, h('table', {}, h('thead', {}, h('tr', {},
    ['Ended', 'Outcome', 'Project', 'Model', 'Tokens', 'Waited', 'Took', 'Request'].map((words) => h('th', {scope: 'col', class: ['Tokens', 'Waited', 'Took'].includes(words) ? 'number' : ''}, words)), gatewayHead())), body));
  const load = async () => {
    try {
      const answer = await get('/v1/decisions', {...(typeof filter === 'function' ? filter() : filter), outcome: chosen.value, limit});
      const list = answer.decisions;
      ofFleet(table, answer);
      keyed(body, list.reverse(), (d) => d.id, decisionRow);
      empty.textContent = 'There are none.';
      empty.hidden = list.length > 0;
    } catch (failure) {
      empty.textContent = failure.message;
      empty.hidden = false;
    }
  };
  return {element: panel(title, [more, chosen], table, empty), load, end: every(3000, load)};
}

function decisionRow(d) {
  const project = d.user ? `${d.project}/${d.user}` : d.project;
  return h('tr', {},
    h('td', {class: 'nowrap', title: `began ${moment(d.time)}`}, clock(Date.parse(d.time) + 1000 * d.took_seconds)),
    h('td', {class: 'nowrap'}, outcomeBadge(d.outcome), d.limit && h('span', {class: 'note'}, ` by ${limitWords(d.limit)}`), d.shadow_limit && h('span', {class: 'note'}, ` shadow: denied by ${limitWords(d.shadow_limit)}`), !d.limit && d.error && h('span', {class: 'note', title: d.error}, ` ${d.status}`)),
    h('td', {}, project && h('a', {href: link('project', project)}, project)),
    h('td', {}, d.quota ? h('a', {href: link('model', d.quota)}, d.model || d.quota) : d.model ?? ''),
    h('td', {class: 'number', title: `${count(d.input_tokens ?? 0)} in, ${count(d.output_tokens ?? 0)} out`}, compact((d.input_tokens ?? 0) + (d.output_tokens ?? 0))),
    h('td', {class: 'number'}, d.waited_seconds >= 0.001 ? duration(d.waited_seconds) : '–'),
    h('td', {class: 'number'}, duration(d.took_seconds)),
    h('td', {class: 'nowrap'}, h('a', {class: 'code', href: link('explain', d.id)}, d.id)),
    gatewayCell(d));
}

// gatewayHead and gatewayCell are the column of the gateway that a row comes from, which ofFleet shows where there are several.
const gatewayHead = () => h('th', {scope: 'col', class: 'gateway'}, 'Gateway');
const gatewayCell = (row) => h('td', {class: 'gateway nowrap'}, row.gateway ?? '');
const ofFleet = (table, answer) => table.classList.toggle('fleet', (answer.gateways ?? []).length > 1);

// line is the panel with the calls that wait, in the order in which they pass.
export function line(filter) {
  const body = h('tbody', {});
  const empty = h('p', {class: 'empty'}, 'No call waits.');
  const more = h('span', {class: 'note'});
  const table = h('div', {class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Queue'}, h('table', {}, h('thead', {}, h('tr', {},
    ['', 'Project', ...(filter.model ? [] : ['Model']), 'Waits for', 'Since', 'Expected', 'Tokens'].map((words) => h('th', {scope: 'col', class: words === 'Tokens' ? 'number' : ''}, words || h('span', {class: 'unseen'}, 'Position'))), gatewayHead())), body));
  const load = async () => {
    try {
      const answer = await get('/v1/waiting', filter);
      const {waiting} = answer;
      ofFleet(table, answer);
      const list = waiting.slice(0, 12);
      more.textContent = waiting.length > list.length ? `${count(waiting.length - list.length)} more wait behind these.` : '';
      keyed(body, list, (w) => `${w.id} ${w.position} ${w.limit} ${w.passes_at}`, (w) => waitingRow(w, filter.model));
      empty.hidden = list.length > 0;
      table.hidden = list.length === 0;
    } catch { /* the bar says that the gateway does not answer */ }
  };
  return {element: panel('Queue', more, table, empty), end: every(1500, load)};
}

function waitingRow(w, model) {
  return h('tr', {},
    h('td', {class: 'number'}, count(w.position)),
    h('td', {}, w.project && h('a', {href: link('project', w.project)}, w.project)),
    !model && h('td', {}, h('a', {href: link('model', w.model)}, w.model)),
    h('td', {class: 'reason'}, w.limit && w.owner ? `${limitWords(w.limit)} of ${w.owner}` : 'earlier calls'),
    h('td', {class: 'nowrap'}, ago(w.since)),
    h('td', {class: 'nowrap'}, w.passes_at ? until(w.passes_at) : 'unknown'),
    h('td', {class: 'number'}, compact(w.tokens)),
    gatewayCell(w));
}

// askedLimits is the table of the limits that a call was held to.
export function askedLimits(limits) {
  return h('div', {class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Limits'}, h('table', {}, h('thead', {}, h('tr', {},
    ['Limit', 'Owner', 'Enough', 'Needed', 'Left before', 'Of', 'Share', 'Resets'].map((words) => h('th', {scope: 'col', class: ['Needed', 'Left before', 'Of'].includes(words) ? 'number' : ''}, words)))),
  h('tbody', {}, limits.map((l) => {
    const show = (n) => (l.unit === 'nanodollars' ? dollars(n / 1e9) : count(n));
    return h('tr', {},
      h('td', {}, limitWords(l.setting || l.limit)),
      h('td', {}, `${l.scope} `, ['model', 'project', 'key'].includes(l.scope) ? h('a', {href: link(l.scope, l.owner)}, l.owner) : l.owner),
      h('td', {}, l.enough ? badge('yes', 'good') : badge(l.never ? 'never' : 'no', 'bad')),
      h('td', {class: 'number'}, show(l.needed)),
      h('td', {class: 'number'}, l.unknown ? 'unknown' : show(l.remaining_before), l.reserved_before ? `, ${show(l.reserved_before)} reserved` : ''),
      h('td', {class: 'number'}, show(l.max)),
      h('td', {class: 'nowrap'}, l.share ? `${show(l.share.used)} of ${show(l.share.max)} (${percent(l.share.max / l.max)}, among ${l.share.projects})` : '–'),
      h('td', {class: 'nowrap'}, l.retry_after_seconds ? `enough in ${duration(l.retry_after_seconds)}` : l.resets_at ? `at ${clockOrDay(l.resets_at)}` : '–'));
  }))));
}
