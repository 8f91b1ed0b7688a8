// Numbers, times and names for people, in the viewer's language and time zone.

import {kinds} from './kinds.js';

const whole = new Intl.NumberFormat(undefined, {maximumFractionDigits: 0});
const short = new Intl.NumberFormat(undefined, {notation: 'compact', maximumSignificantDigits: 3});
const money = new Intl.NumberFormat(undefined, {style: 'currency', currency: 'USD', currencyDisplay: 'narrowSymbol', minimumFractionDigits: 2, maximumFractionDigits: 9});
const percents = new Intl.NumberFormat(undefined, {style: 'percent', maximumFractionDigits: 0});
const clocks = new Intl.DateTimeFormat(undefined, {hour: '2-digit', minute: '2-digit', second: '2-digit'});
const minutes = new Intl.DateTimeFormat(undefined, {hour: '2-digit', minute: '2-digit'});
const days = new Intl.DateTimeFormat(undefined, {month: 'short', day: 'numeric'});
const moments = new Intl.DateTimeFormat(undefined, {dateStyle: 'medium', timeStyle: 'medium'});

export const count = (n) => whole.format(n);
export const compact = (n) => (Math.abs(n) < 10_000 ? whole : short).format(n);
export const percent = (part) => percents.format(part);
export const clock = (time) => clocks.format(new Date(time));
export const minute = (time) => minutes.format(new Date(time));
export const day = (time) => days.format(new Date(time));
// clockOrDay returns a time of today as a clock shows it, and any other with its day.
export const clockOrDay = (time) => (new Date(time).toDateString() === new Date().toDateString() ? clock(time) : moment(time));
export const moment = (time) => moments.format(new Date(time));

// dollars returns dollars as the command line does: rounded down to a cent or, below a dollar, to two digits.
export function dollars(n) {
  const nanos = Math.round(n * 1e9);
  let unit = 1e7;
  while (nanos < 10 * unit && nanos < 1e9 && unit > 1) unit /= 10;
  return money.format(Math.trunc(nanos / unit) * unit / 1e9);
}

// duration returns seconds as "8.2 s", "2 m 05 s", "3 h 20 m" or "4 d 3 h".
export function duration(seconds) {
  if (seconds < 0.001) return '0 s';
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const s = Math.round(seconds);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} m ${String(s % 60).padStart(2, '0')} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${String(Math.floor(s / 60) % 60).padStart(2, '0')} m`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s / 3600) % 24} h`;
}

const named = new Map(kinds.map((kind) => [kind.name, kind]));

// dimension returns what a limit is called, by its name: short for a bar, long for a sentence.
export function dimension(name) {
  const end = name.match(/_(share|pace)$/)?.[1];
  if (end) {
    const of = dimension(name.slice(0, -end.length - 1));
    return {short: `${of.short} ${end}`, long: `${end === 'share' ? 'its share' : end} of ${of.long}`, dollars: of.dollars};
  }
  if (name === 'paused-by-operator') return {short: 'paused', long: 'an operator’s pause', dollars: false};
  const kind = named.get(name);
  if (!kind) return {short: name, long: name.replaceAll('_', ' '), dollars: name.includes('dollar')};
  return {short: kind.label, long: kind.words, dollars: kind.money};
}

// amount returns a number of a dimension: dollars as money, all else as a number.
export const amount = (n, money) => (money ? dollars(n) : compact(n));

// plural returns "1 call" or "3 calls".
export const plural = (n, word) => `${compact(n)} ${word}${n === 1 ? '' : 's'}`;
