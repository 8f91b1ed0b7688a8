// Numbers, times and names for people, in the viewer's language and time zone.

const whole = new Intl.NumberFormat(undefined, {maximumFractionDigits: 0});
const short = new Intl.NumberFormat(undefined, {notation: 'compact', maximumSignificantDigits: 3});
const cents = new Intl.NumberFormat(undefined, {style: 'currency', currency: 'USD', currencyDisplay: 'narrowSymbol'});
const fine = new Intl.NumberFormat(undefined, {style: 'currency', currency: 'USD', currencyDisplay: 'narrowSymbol', maximumSignificantDigits: 3});
const percents = new Intl.NumberFormat(undefined, {style: 'percent', maximumFractionDigits: 0});
const clocks = new Intl.DateTimeFormat(undefined, {hour: '2-digit', minute: '2-digit', second: '2-digit'});
const minutes = new Intl.DateTimeFormat(undefined, {hour: '2-digit', minute: '2-digit'});
const days = new Intl.DateTimeFormat(undefined, {month: 'short', day: 'numeric'});
const moments = new Intl.DateTimeFormat(undefined, {dateStyle: 'medium', timeStyle: 'medium'});

export const count = (n) => whole.format(n);
export const compact = (n) => (Math.abs(n) < 10_000 ? whole : short).format(n);
export const percent = (part) => percents.format(part);
export const dollars = (n) => (n !== 0 && Math.abs(n) < 0.01 ? fine : cents).format(n);
export const clock = (time) => clocks.format(new Date(time));
export const minute = (time) => minutes.format(new Date(time));
export const day = (time) => days.format(new Date(time));
export const moment = (time) => moments.format(new Date(time));

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

const periods = {minute: 'min', hour: 'h', day: 'day', week: 'wk', month: 'mo'};
const known = {
  rpm: 'requests-minute', tpm: 'tokens-minute', rpd: 'requests-day', tpd: 'tokens-day', input_tpm: 'input-minute', output_tpm: 'output-minute',
  minute: 'requests-minute', hour: 'requests-hour', day: 'requests-day',
};
const unitWords = {requests: ['req', 'requests'], tokens: ['tok', 'tokens'], dollars: ['$', 'dollars'], input: ['in tok', 'input tokens'], output: ['out tok', 'output tokens']};

// dimension returns what a limit is called: short for a bar, long for a sentence. Names are those of limits ("tpm", "minute", "tokens-day",
// "tpm_share") or of the settings that set them ("max_tpm", "requests_per_minute").
export function dimension(name) {
  const plain = name.replace(/^max_/, '');
  const kind = plain.match(/_(share|pace)$/)?.[1];
  if (kind) {
    const of = dimension(plain.slice(0, -kind.length - 1));
    return {short: `${of.short.replace('/min', '')} ${kind}`, long: `${kind === 'share' ? 'its share' : kind} of ${of.long}`, dollars: of.dollars};
  }
  if (plain === 'paused-by-operator') return {short: 'paused', long: 'an operator’s pause', dollars: false};
  if (plain.startsWith('concurrent')) return {short: 'at once', long: 'calls at a time', dollars: false};
  if (plain === 'dollars' || plain === 'dollars-total') return {short: '$ total', long: 'dollars in total', dollars: true};
  const [unit, period] = (known[plain] ?? plain.replace('_per_', '-')).split('-');
  if (!(unit in unitWords) || !(period in periods)) return {short: name, long: name.replaceAll('_', ' '), dollars: name.includes('dollar')};
  const [short, long] = unitWords[unit];
  return {short: `${short}/${periods[period]}`, long: `${long} a${period === 'hour' ? 'n' : ''} ${period}`, dollars: unit === 'dollars'};
}

// amount returns a number of a dimension: dollars as money, all else as a number.
export const amount = (n, money) => (money ? dollars(n) : compact(n));

// plural returns "1 call" or "3 calls".
export const plural = (n, word) => `${compact(n)} ${word}${n === 1 ? '' : 's'}`;
