// Why a call has passed or was denied, and whether another would pass now.

import {call, get} from './api.js';
import {field} from './act.js';
import {h} from './dom.js';
import {count, duration, moment} from './format.js';
import {badge, outcomeBadge} from './parts.js';
import {askedLimits, decisions, panel} from './pieces.js';
import {limitWords, link} from './row.js';

export function show(body, id) {
  const request = h('input', {name: 'id', required: true, autocomplete: 'off', value: id, spellcheck: 'false'});
  const result = h('div', {class: 'stack', 'aria-live': 'polite'});
  const form = h('form', {class: 'panel-body inline-form', onsubmit: (event) => {
    event.preventDefault();
    location.hash = link('explain', request.value.trim());
  }}, h('div', {class: 'grow'}, field('Request id', request)), h('button', {type: 'submit', class: 'main'}, 'Explain'),
    h('p', {class: 'note whole'}, 'It is in a header of every answer, in the access log, and in the lists of decisions.'));
  const recent = decisions({}, {title: 'Pick a call', outcome: 'denied', limit: 20});
  body.append(h('div', {class: 'page-head'}, h('div', {}, h('h1', {}, 'Explain'), h('p', {class: 'subtitle'}, 'Every limit that was checked for a call, what was left, and what would have to change.'))),
    h('div', {class: 'stack'}, h('section', {class: 'panel', 'aria-label': 'Request'}, form), result, question(), recent.element));
  if (id) explain(id, result);
  return recent.end;
}

async function explain(id, result) {
  try {
    const e = await get(`/v1/decisions/${encodeURIComponent(id)}`);
    result.replaceChildren(explanation(e));
  } catch (failure) {
    result.replaceChildren(h('section', {class: 'panel panel-body', 'aria-label': 'Explanation'}, h('p', {class: 'fault'}, failure.message)));
  }
}

function explanation(e) {
  const d = e.decision;
  const fact = (words, value) => (value ? [h('dt', {}, words), h('dd', {}, value)] : []);
  return panel('Explanation', outcomeBadge(d.outcome),
    h('div', {class: 'panel-body stack'},
      h('p', {class: 'sentence'}, e.sentence),
      e.advice?.length > 0 && h('div', {}, h('h3', {}, 'What would have to change'), h('ul', {class: 'advice'}, e.advice.map((each) => h('li', {}, each)))),
      h('dl', {class: 'facts'},
        fact('Request', h('span', {class: 'code'}, e.id)),
        fact('Time', moment(d.time)),
        fact('Project', d.project && h('a', {href: link('project', d.project)}, d.project)),
        fact('Key', d.key && h('a', {href: link('key', d.key)}, d.key)),
        fact('Model', d.quota ? h('a', {href: link('model', d.quota)}, d.quota) : d.model),
        fact('Denied by', d.limit && limitWords(d.limit)),
        fact('Without shadow mode', d.shadow_limit && `denied by ${limitWords(d.shadow_limit)}`),
        fact('Waited', d.waited_seconds >= 0.001 && duration(d.waited_seconds)),
        fact('Tokens', `${count(d.input_tokens ?? 0)} in, ${count(d.output_tokens ?? 0)} out`),
        fact('Error', d.error))),
    e.limits.length > 0 ? askedLimits(e.limits) : h('p', {class: 'empty'}, 'No limit was asked.'));
}

// question is the form that asks whether a call would pass now.
function question() {
  const input = (name, more) => h('input', {name, autocomplete: 'off', ...more});
  const inputs = {model: input('model', {required: true}), tokens: input('tokens', {type: 'number', min: 0, value: 1000}), project: input('project'), key: input('key')};
  const result = h('div', {'aria-live': 'polite'});
  const form = h('form', {class: 'panel-body inline-form', onsubmit: async (event) => {
    event.preventDefault();
    const body = {model: inputs.model.value.trim(), tokens: Number(inputs.tokens.value)};
    for (const name of ['project', 'key']) if (inputs[name].value.trim() !== '') body[name] = inputs[name].value.trim();
    try {
      const a = await call('POST', '/v1/decide', body);
      const later = a.never ? ' It never will.' : a.retry_after_seconds ? ` It would in ${duration(a.retry_after_seconds)}.` : '';
      result.replaceChildren(h('div', {class: 'panel-body'}, h('p', {class: 'sentence'}, a.allowed ? badge('passes', 'good') : badge('denied', 'bad'), ` ${a.reason}${later}`)), a.limits.length > 0 ? askedLimits(a.limits) : '');
    } catch (failure) {
      result.replaceChildren(h('p', {class: 'panel-body fault'}, failure.message));
    }
  }}, field('Model', inputs.model), field('Tokens', inputs.tokens), field('Project', inputs.project), field('Key id', inputs.key), h('button', {type: 'submit'}, 'Would it pass?'));
  return panel('Would a call pass now?', null, form, result);
}
