// The small elements that rows and pages consist of.

import {h, svg, setText, setAttribute} from './dom.js';
import {amount, compact, count, dimension, duration, moment, percent} from './format.js';
import {live} from './live.js';

// levelOf returns how close to its limit something is.
export function levelOf(pressure) {
  if (pressure >= 0.9995) return 'full';
  if (pressure >= 0.9) return 'near';
  return pressure >= 0.75 ? 'high' : 'fine';
}

// Gauge shows what is used of a limit: a bar, both numbers, and a mark for what the provider counts. The part of the
// bar that is only reserved by calls under way is hatched.
class Gauge extends HTMLElement {
  #label = h('span', {class: 'gauge-label'});
  #extra = h('span', {class: 'gauge-extra'});
  #value = h('span', {class: 'gauge-value'});
  #bar = h('span', {class: 'gauge-bar'});
  #reserved = h('span', {class: 'gauge-reserved'});
  #provider = h('span', {class: 'gauge-provider'});

  connectedCallback() {
    if (this.childElementCount > 0) return;
    this.setAttribute('role', 'meter');
    this.setAttribute('aria-valuemin', '0');
    this.#bar.append(h('span', {class: 'gauge-fill'}), this.#reserved, this.#provider);
    this.append(this.#label, this.#extra, this.#value, this.#bar);
  }

  // show shows a dimension of a row, and what the provider says about it, if that is known.
  show(d, owner, provider) {
    const words = dimension(d.name);
    const share = Boolean(d.model) || d.name.endsWith('_share');
    const used = d.limit > 0 ? d.used / d.limit : 0;
    const text = `${amount(d.used, words.dollars)} of ${amount(d.limit, words.dollars)}`;
    const room = this.closest('.large') !== null;
    setText(this.#label, labelOf(d, words, room));
    this.toggleAttribute('data-share', share);
    setText(this.#extra, extraOf(d, words.dollars, room));
    setText(this.#value, text);
    setAttribute(this, 'data-level', share ? 'fine' : levelOf(used)); // a share that is used up harms nobody by itself
    setAttribute(this, 'aria-label', `${words.long} of ${owner}`);
    setAttribute(this, 'aria-valuenow', Math.max(0, d.used));
    setAttribute(this, 'aria-valuemax', Math.max(d.limit, d.used, 1));
    const reserved = d.reserved > 0 ? `, of which ${amount(d.reserved, words.dollars)} are only reserved` : '';
    setAttribute(this, 'aria-valuetext', `${text}, ${percent(used)}${reserved}`);
    setAttribute(this, 'title', titleOf(d, words, provider));
    this.style.setProperty('--used', Math.min(1, Math.max(0, used)).toFixed(4));
    this.#reserved.hidden = !reserved;
    if (reserved) this.style.setProperty('--reserved', Math.min(1, used, d.reserved / d.limit).toFixed(4));
    this.#provider.hidden = !provider;
    if (provider) this.#provider.style.setProperty('--at', Math.min(1, Math.max(0, 1 - provider.remaining / provider.limit)).toFixed(4));
  }
}

// labelOf names a dimension. A share begins with its model where the end of a name may be cut off.
function labelOf(d, words, room) {
  if (!d.model) return words.short;
  return room ? `${words.short} of ${d.model}` : `${d.model} ${words.short}`;
}

// extraOf says what is lent or borrowed of a dimension: in words, or where there is little room by an arrow.
function extraOf(d, money, room) {
  if (d.borrowed > 0) return room ? `${amount(d.borrowed, money)} borrowed` : `↙ ${amount(d.borrowed, money)}`;
  if (d.lent > 0) return room ? `${amount(d.lent, money)} lent` : `↗ ${amount(d.lent, money)}`;
  return '';
}

function titleOf(d, words, provider) {
  const show = (n) => (words.dollars ? amount(n, true) : count(n));
  const lines = [`${words.long}${d.model ? ` at ${d.model}` : ''}: ${show(d.used)} of ${show(d.limit)} used, ${show(d.remaining)} left`];
  if (d.reserved > 0) lines.push(`▨ ${show(d.reserved)} of what is used are only reserved, by calls under way`);
  if (d.resets_at) lines.push(`resets at ${moment(d.resets_at)}`);
  if (d.lent > 0) lines.push(`↗ ${show(d.lent)} lent to others`);
  if (d.borrowed > 0) lines.push(`↙ ${show(d.borrowed)} borrowed from others`);
  if (provider) lines.push(`the provider reports ${show(provider.limit - provider.remaining)} of ${show(provider.limit)} used; the gateway had counted ${show(provider.used_here)}`);
  return lines.join('\n');
}

// Spark shows the calls of 15 minutes as columns: passed, and on top of them denied.
class Spark extends HTMLElement {
  #passed = svg('path', {class: 'passed'});
  #denied = svg('path', {class: 'denied'});

  connectedCallback() {
    if (this.childElementCount > 0) return;
    this.setAttribute('role', 'img');
    this.append(svg('svg', {viewBox: '0 0 105 28', preserveAspectRatio: 'none', 'aria-hidden': 'true'}, this.#passed, this.#denied));
  }

  show(passed, denied) {
    const top = Math.max(1, ...passed.map((n, i) => n + (denied[i] ?? 0)));
    let [one, two] = ['', ''];
    for (let i = 0; i < 15; i++) {
      const high = Math.max(1, (27 * (passed[i] ?? 0)) / top);
      const above = (27 * (denied[i] ?? 0)) / top;
      one += column(i, 28, high);
      if (above > 0) two += column(i, 28 - high, above);
    }
    setAttribute(this.#passed, 'd', one);
    setAttribute(this.#denied, 'd', two);
    const sum = (list) => list.reduce((a, b) => a + b, 0);
    const text = `Last 15 minutes: ${compact(sum(passed))} calls passed, ${compact(sum(denied))} denied; at most ${compact(top)} in a minute`;
    setAttribute(this, 'aria-label', text);
    setAttribute(this, 'title', text);
  }
}

// column is the path of one column that stands at a height.
const column = (i, base, high) => `M${i * 7} ${base.toFixed(1)}v-${high.toFixed(1)}h5v${high.toFixed(1)}z`;

// Moment shows a time that moves: how long until it comes, or since it was.
class Moment extends HTMLElement {
  #at = 0;
  #until = false;

  connectedCallback() {
    ticking.add(this);
    this.tick();
  }

  disconnectedCallback() {
    ticking.delete(this);
  }

  show(at, until = false) {
    this.#at = Date.parse(at);
    this.#until = until;
    this.title = moment(at);
    this.tick();
    return this;
  }

  tick() {
    const seconds = Math.max(0, (this.#at - live.now()) / 1000 * (this.#until ? 1 : -1));
    setText(this, this.#until ? (seconds < 1 ? 'now' : `in ${duration(Math.round(seconds))}`) : `${duration(Math.round(seconds))} ago`);
  }
}

const ticking = new Set();
setInterval(() => ticking.forEach((each) => each.tick()), 1000);

customElements.define('rl-gauge', Gauge);
customElements.define('rl-spark', Spark);
customElements.define('rl-moment', Moment);

export const until = (at) => document.createElement('rl-moment').show(at, true);
export const ago = (at) => document.createElement('rl-moment').show(at);

// badge is a word in a frame; its kind is a colour and a sign, so that colour is not all that tells it apart.
export const badge = (text, kind = 'plain', title) => h('span', {class: `badge ${kind}`, title}, text);

const outcomes = {passed: 'good', admitted: 'good', denied: 'bad', throttled: 'warn', failed: 'warn', cut: 'warn', refused: 'plain', left: 'plain', lost: 'bad'};
export const outcomeBadge = (outcome) => badge(outcome, outcomes[outcome] ?? 'plain');
