// The form in which limits are set. It shows what will change before it does, as the gateway says it.

import {call} from './api.js';
import {ask, field, holdsLimits, resource, term, toast} from './act.js';
import {change} from './audit.js';
import {h} from './dom.js';
import {dimension} from './format.js';
import {kinds} from './kinds.js';

const capital = (text) => text[0].toUpperCase() + text.slice(1);
const whole = {kind: 'number', step: 1, min: 1};
const money = {kind: 'number', step: 'any', min: 0};
const fieldsOf = (list) => Object.fromEntries(list.map((each) => [each.setting, each.money ? money : whole]));
const ofOwner = (owner) => kinds.filter((each) => each.owner === owner);
const limitGroups = Object.entries(Object.groupBy(ofOwner('project'), (each) => (each.unit === 'calls' ? 'requests' : each.unit))).map(([unit, list]) => [capital(unit.replaceAll('_', ' ')), fieldsOf(list)]);
const percentage = {kind: 'text', empty: 'such as 20%'};
const configured = (...values) => ({kind: 'choice', values: ['', ...values], configured: true});
const groups = {
  model: [
    ['Quota', fieldsOf(ofOwner('model'))],
    ['Shares and pace', {reserve: percentage, burst: percentage, mode: configured('enforce', 'shadow')}],
  ],
  project: [
    ...limitGroups,
    ['Weights and shares', {
      weight: {...whole, empty: '1'}, priority: {kind: 'number', step: 1, empty: '0'}, min_share: percentage, max_share: percentage, dedicated: {kind: 'check'},
    }],
    ['Calls', {max_wait: {kind: 'number', step: 'any', min: 0, configured: true}, models: {kind: 'list', configured: true}, mode: configured('enforce', 'shadow'),
      fit: configured(true, false), fit_min: {...whole, configured: true}, unknown_usage: configured('reserved', 'seen'), failed_calls: configured('free', 'reserved')}],
  ],
  key: [...limitGroups, ['Calls', {models: {kind: 'list', empty: 'all'}}]],
};
const words = {
  weight: 'Weight', priority: 'Priority', min_share: 'Minimum share', max_share: 'Maximum share', dedicated: 'Dedicated minimum',
  max_wait: 'May wait (seconds)', models: 'Models (with commas)', mode: 'Mode',
  fit: 'Fit calls to what is left', fit_min: 'Fit to no less than (tokens)', unknown_usage: 'Charge for unreported usage', failed_calls: 'Charge for failed calls', reserve: 'Reserve for newcomers', burst: 'Burst of a paced minute',
};
const nested = (kind, name) => kind === 'key' && name !== 'models'; // a key's limits are in a field of their own

// setLimits opens the form for a model, project or key.
export async function setLimits(kind, name) {
  const path = `${resource(kind, name)}?dry_run=true`;
  let before;
  try {
    ({before} = await call('PATCH', path, {}));
  } catch (failure) {
    toast(failure.message);
    return;
  }
  const current = (each) => (nested(kind, each) ? before.limit ?? {} : before)[each];
  const inputs = new Map();
  const preview = h('div', {class: 'preview', 'aria-live': 'polite', tabindex: 0, role: 'group', 'aria-label': 'Preview'});
  const body = groups[kind].map(([title, fields]) => h('fieldset', {}, h('legend', {}, title), h('div', {class: 'fields'},
    Object.entries(fields).map(([each, how]) => {
      const input = makeInput(each, how, current(each));
      inputs.set(each, {input, how});
      return how.kind === 'check' ? h('div', {class: 'field check'}, input, h('label', {for: input.id}, words[each])) : field(words[each] ?? capital(dimension(each).long), input);
    }))));
  const holds = term(holdsLimits);
  const dialog = ask({
    title: `Limits of ${kind} ${name}`,
    body: [...body, kind !== 'key' && h('fieldset', {}, h('legend', {}, 'How long'), holds.element), h('section', {class: 'sticky', 'aria-label': 'What will change'}, h('h3', {}, 'What will change'), preview)],
    verb: 'Apply',
    wide: true,
    run: async () => {
      await call('PATCH', resource(kind, name) + (kind === 'key' ? '' : holds.suffix()), patch());
      toast(`The limits of ${name} are set.`);
      dispatchEvent(new Event('acted'));
    },
  });

  // patch returns the fields that differ from what is set now: null for one that was emptied.
  function patch() {
    const changes = {};
    for (const [each, {input, how}] of inputs) {
      const value = valueOf(input, how);
      if (JSON.stringify(value) === JSON.stringify(normal(current(each)))) continue;
      if (nested(kind, each)) (changes.limit ??= {})[each] = value;
      else changes[each] = value;
    }
    return changes;
  }

  // inPlace returns a value, or what is in place of one that is not set.
  const inPlace = (each, value) => value ?? (inputs.get(each)?.how.configured ? 'as configured' : undefined);

  let asked = 0;
  async function show() {
    const number = ++asked;
    const changes = patch();
    dialog.confirm.disabled = true;
    if (Object.keys(changes).length === 0) {
      preview.replaceChildren(h('p', {class: 'note'}, 'Nothing yet. An empty field is no limit.'));
      return;
    }
    try {
      const {changed, lifted} = await call('PATCH', path, changes);
      if (number !== asked) return;
      preview.replaceChildren(
        ...changed.map((c) => h('p', {}, `${words[c.field] ?? capital(dimension(c.field).long)}: `, change(inPlace(c.field, c.before), inPlace(c.field, c.after)))),
        ...(lifted?.length > 0 ? [h('p', {class: 'fault'}, `▲ This lifts ${lifted.map((each) => dimension(each).long).join(', ')}: no longer limited.`)] : []));
      dialog.confirm.disabled = changed.length === 0;
    } catch (failure) {
      if (number === asked) preview.replaceChildren(h('p', {class: 'fault'}, failure.message));
    }
  }
  let soon = 0;
  for (const {input} of inputs.values()) {
    input.addEventListener('input', () => {
      clearTimeout(soon);
      dialog.confirm.disabled = true;
      soon = setTimeout(show, 150);
    });
  }
  show();
}

const choiceWords = {true: 'yes', false: 'no'};
let made = 0;
function makeInput(name, how, value) {
  const id = `limit-${++made}`;
  if (how.kind === 'check') return h('input', {id, name, type: 'checkbox', checked: value === true});
  if (how.kind === 'choice') return h('select', {id, name}, how.values.map((each) => h('option', {value: String(each), selected: each === (value ?? '')}, each === '' ? 'as configured' : choiceWords[each] ?? each)));
  const text = value === undefined || value === null || value === 0 ? '' : how.kind === 'list' ? value.join(', ') : String(value);
  return h('input', {id, name, type: how.kind === 'number' ? 'number' : 'text', step: how.step, min: how.min, value: text, autocomplete: 'off', placeholder: how.empty ?? (how.configured ? 'as configured' : 'no limit')});
}

// valueOf returns what an input says, as the API takes it; null is nothing.
function valueOf(input, how) {
  if (how.kind === 'check') return input.checked ? true : null;
  const text = input.value.trim();
  if (text === '') return null;
  if (how.kind === 'number') return Number(text);
  if (how.kind === 'choice') return how.values.find((each) => String(each) === text);
  return how.kind === 'list' ? text.split(',').map((each) => each.trim()).filter(Boolean) : text;
}

// normal returns what is set now as valueOf would return it.
function normal(value) {
  if (value === undefined || value === 0 || value === '' || (Array.isArray(value) && value.length === 0)) return null;
  return value;
}
