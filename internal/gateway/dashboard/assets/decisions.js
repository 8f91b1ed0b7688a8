// The last decisions of all calls, with filters.

import {h} from './dom.js';
import {field} from './act.js';
import {decisions} from './pieces.js';

export function show(body, argument) {
  const [outcome] = argument.split('/');
  let timer = 0;
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(() => list.load(), 250);
  };
  const inputs = Object.fromEntries(['project', 'model', 'key'].map((name) => [name, h('input', {type: 'search', autocomplete: 'off', oninput: soon})]));
  const list = decisions(() => Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, input.value.trim()])), {title: 'Decisions', outcome, limit: 200});
  body.append(h('div', {class: 'page-head'}, h('div', {}, h('h1', {}, 'Decisions'), h('p', {class: 'subtitle'}, 'What became of the last calls, newest first. Follow a request to see why.'))),
    h('div', {class: 'inline-form stack-below'}, field('Project', inputs.project), field('Model', inputs.model), field('Key', inputs.key)), list.element);
  return list.end;
}
