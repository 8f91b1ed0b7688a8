// A row of the overview: a model or a project.

import {clone, h, keyed, parts, setAttribute, setText} from './dom.js';
import {compact, count, dimension, duration, percent, plural} from './format.js';
import {badge, until} from './parts.js';
import {pauseOrResume} from './act.js';
import {live} from './live.js';

// link returns the address of a page of a model, project or key.
export const link = (kind, name) => `#/${kind}/${name.split('/').map(encodeURIComponent).join('/')}`;

// makeRow returns an empty row of a kind: "model" or "project".
export function makeRow(kind) {
  const row = clone('row-template');
  row.kind = kind;
  row.parts = parts(row);
  row.parts.pause.addEventListener('click', () => pauseOrResume(kind, row.data.name, row.data.paused));
  return row;
}

// fillRow shows a row of the API in an element. null is a row that has not come yet.
export function fillRow(row, data) {
  if (row.data === data && data !== null) return;
  row.data = data;
  row.classList.toggle('coming', data === null);
  const p = row.parts;
  if (data === null) {
    setText(p.name, '…');
    p.name.removeAttribute('href');
    p.gauges.replaceChildren();
    p.badges.replaceChildren();
    for (const part of ['waiting', 'longest', 'denied', 'deniedBy', 'tokens', 'estimate']) setText(p[part], '');
    return;
  }
  setAttribute(row, 'data-level', {blocked: 'full', denied: 'full', waiting: 'near', near: 'near'}[data.harm] ?? 'fine');
  setText(p.name, data.name);
  setAttribute(p.name, 'href', link(row.kind, data.name));
  setAttribute(p.name, 'title', data.name);
  fillBadges(p.badges, data);
  fillGauges(p.gauges, data);
  p.spark.show(data.spark ?? [], data.spark_denied ?? []);
  figure(p.waiting, data.waiting, compact(data.waiting), data.waiting > 0);
  setText(p.longest, data.longest_wait_seconds > 0 ? `up to ${duration(data.longest_wait_seconds)}` : '');
  const denied = sum(data.spark_denied ?? []);
  figure(p.denied, denied, compact(denied), denied > 0);
  setText(p.deniedBy, deniedBy(data));
  setAttribute(p.deniedBy, 'title', (data.denied_by ?? []).map((d) => `${plural(d.count, 'call')} by ${limitWords(d.limit)}`).join('\n') || null);
  figure(p.tokens, data.minute?.tokens ?? 0, `${compact(data.minute?.tokens ?? 0)}/min`, false);
  setText(p.estimate, estimate(data));
  setAttribute(p.estimate, 'title', estimateTitle(data));
  setText(p.pause, data.paused ? 'Resume' : 'Pause');
  setAttribute(p.pause, 'aria-label', `${data.paused ? 'Resume' : 'Pause'} ${data.name}`);
}

const sum = (list) => list.reduce((a, b) => a + b, 0);

function figure(node, value, text, alarm) {
  setText(node, text);
  node.classList.toggle('zero', value === 0);
  node.classList.toggle('alarm', alarm);
}

// limitWords returns a limit's name in words: "tokens a minute" for "max_tpm".
export const limitWords = (limit) => dimension(limit).long;

function deniedBy(data) {
  const [most, ...others] = data.denied_by ?? [];
  return most?.limit ? `${dimension(most.limit).short}${others.length > 0 ? ` +${others.length}` : ''}` : '';
}

function estimate(data) {
  if (!data.estimated_tokens || !data.actual_tokens) return '';
  const off = data.estimated_tokens / data.actual_tokens - 1;
  return Math.abs(off) < 0.005 ? 'estimate exact' : `estimate ${off > 0 ? '+' : '−'}${percent(Math.abs(off))}`;
}

const estimateTitle = (data) => (data.estimated_tokens ? `15 minutes: ${compact(data.estimated_tokens)} tokens estimated, ${compact(data.actual_tokens)} used` : null);

// badgesOf returns what else is to be said of a row.
export function badgesOf(data) {
  const list = [];
  if (data.paused) list.push(['paused', () => badge('paused', 'bad', 'An operator has paused it: calls are denied')]);
  if (data.pause) list.push([`pause ${data.pause.until}`, () => h('span', {class: 'badge warn', title: data.pause.reason ?? ''}, 'provider pauses, ', until(data.pause.until))]);
  if (data.mode === 'shadow') list.push(['shadow', () => badge('shadow', 'warn', 'Limits are counted, but deny nothing')]);
  if (data.weight > 1) list.push([`weight ${data.weight}`, () => badge(`weight ${data.weight}`)]);
  const view = providerView(data);
  if (view) list.push([view, () => h('span', {}, view)]);
  return list;
}

function fillBadges(parent, data) {
  keyed(parent, badgesOf(data), ([key]) => key, ([, make]) => make());
}

// providerView says what the provider reports as used, for the limit where it differs most from the gateway's count.
export function providerView(data) {
  let most = null;
  let worst = -1;
  for (const p of data.provider ?? []) {
    if (!(p.limit > 0) || p.remaining < 0) continue;
    const off = Math.abs(p.limit - p.remaining - p.used_here) / p.limit;
    if (off > worst) [most, worst] = [p, off];
  }
  if (most === null) return '';
  return worst < 0.01 ? 'provider agrees' : `provider reports ${count(most.limit - most.remaining)} of ${count(most.limit)} used`;
}

// whole returns a dimension with what is lent of it: a share is small while its project wants little, and grows back when it wants more.
const whole = (d) => (d.model ? {...d, limit: d.limit + (d.lent ?? 0)} : d);

// fillGauges shows all dimensions of a row: its own limits, those first that are closest to their ends, and then its shares.
export function fillGauges(parent, data) {
  const list = (data.dimensions ?? []).map(whole).filter((d) => d.limit > 0);
  list.sort((a, b) => (a.model ? 1 : 0) - (b.model ? 1 : 0) || b.used / b.limit - a.used / a.limit || (a.name < b.name ? -1 : 1));
  if (list.length === 0) {
    const words = live.overview?.store_lost ? 'not known: the store does not answer' : 'no limits of its own';
    keyed(parent, [words], (each) => each, () => h('span', {class: 'unlimited'}, words));
    return;
  }
  const provider = new Map((data.provider ?? []).filter((p) => p.limit > 0 && p.remaining >= 0).map((p) => [p.dimension, p]));
  keyed(parent, list, (d) => `${d.name} ${d.model}`, () => document.createElement('rl-gauge'), (gauge, d) => {
    gauge.show(d, d.model ? `${data.name} at ${d.model}` : data.name, provider.get(d.name));
  });
}
