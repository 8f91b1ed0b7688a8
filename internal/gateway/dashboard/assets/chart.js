// Charts of columns, as SVG.

import {h, svg} from './dom.js';

const frame = {height: 200, left: 52, right: 4, top: 10, bottom: 22};

// columns returns a chart of a width in pixels, with one column for each point: parts that stand on each other. label names a point below
// the chart, title when it is pointed at; number formats the values on the left.
export function columns(points, {width, values, label, title, number, name}) {
  const size = {...frame, width};
  const sums = points.map((point) => values(point).reduce((a, b) => a + b.value, 0));
  const top = niceTop(Math.max(0, ...sums));
  const wide = (size.width - size.left - size.right) / Math.max(1, points.length);
  const y = (value) => size.top + (1 - value / top) * (size.height - size.top - size.bottom);
  const chart = svg('svg', {class: 'chart', viewBox: `0 0 ${size.width} ${size.height}`, role: 'img', 'aria-label': name});
  for (const part of [0, 0.5, 1]) {
    chart.append(svg('line', {class: 'grid', x1: size.left, x2: size.width - size.right, y1: y(top * part), y2: y(top * part)}),
      svg('text', {x: size.left - 7, y: y(top * part) + 4, 'text-anchor': 'end'}, number(top * part)));
  }
  const every = Math.ceil((points.length * 90) / width); // labels are up to 90 pixels wide
  points.forEach((point, i) => {
    const x = size.left + i * wide;
    const group = svg('g', {}, svg('title', {}, title(point)), svg('rect', {class: 'hover', x, y: size.top, width: wide, height: size.height - size.top - size.bottom}));
    let base = 0;
    for (const {value, kind} of values(point)) {
      if (value <= 0) continue;
      group.append(svg('rect', {class: kind, x: x + wide * 0.12, width: Math.max(1, wide * 0.76), y: y(base + value), height: Math.max(0.5, y(base) - y(base + value))}));
      base += value;
    }
    chart.append(group);
    if (i % every === 0) chart.append(svg('text', {x: x + wide / 2, y: size.height - 6, 'text-anchor': 'middle'}, label(point)));
  });
  return chart;
}

// niceTop returns a round number that is not below a value, and whose half is a whole number if the value is 1 or more.
function niceTop(value) {
  if (!(value > 0)) return 2;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 2, 4, 10].find((step) => step * power >= value && (power < 1 || Number.isInteger((step * power) / 2)));
}

// legend says which colour is which.
export const legend = (...kinds) => h('div', {class: 'legend'}, kinds.map(([kind, words]) => h('span', {class: `key-${kind}`}, words)));
