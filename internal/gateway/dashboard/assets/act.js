// What an operator does. Each action says what it will do, asks once, and is in the audit log.

import {call, get, pathOf} from './api.js';
import {clone, h, parts} from './dom.js';

let made = 0; // ids of elements

// toast says briefly that something was done.
export function toast(text) {
  const message = h('div', {class: 'toast'}, text);
  document.getElementById('toasts').append(message);
  setTimeout(() => message.remove(), 5000);
}

// ask shows a dialog. When the viewer confirms, it runs the action, and closes if that succeeds; it shows what went wrong otherwise.
export function ask({title, body, verb, danger = false, wide = false, run}) {
  const dialog = clone('dialog-template');
  const p = parts(dialog);
  p.title.textContent = title;
  p.body.append(...[body].flat());
  p.confirm.textContent = verb;
  p.confirm.classList.toggle('danger', danger);
  dialog.classList.toggle('wide', wide);
  p.title.id = `dialog-${++made}`;
  dialog.setAttribute('aria-labelledby', p.title.id);
  p.cancel.addEventListener('click', () => dialog.close());
  dialog.addEventListener('close', () => dialog.remove());
  dialog.querySelector('form').addEventListener('submit', async (event) => {
    event.preventDefault();
    p.confirm.disabled = true;
    p.fault.textContent = '';
    try {
      await run();
      dialog.close();
    } catch (failure) {
      p.fault.textContent = failure.message;
      p.confirm.disabled = false;
    }
  });
  document.body.append(dialog);
  dialog.showModal();
  return {dialog, confirm: p.confirm, fault: p.fault};
}

// resource returns the path in the API of a model, project or key.
export const resource = (kind, name) => `/v1/${{model: 'quotas', project: 'projects', key: 'keys'}[kind]}/${pathOf(name)}`;

// done says that an action was done, and tells the page, so that it shows the change at once.
function done(text) {
  toast(text);
  dispatchEvent(new Event('acted'));
}

// term is the fields that say for how long a change holds, and why it is made. suffix returns them as the end of an address.
export function term(choices) {
  const until = h('select', {name: 'until', 'aria-label': 'Holds'}, choices.map(([value, words]) => h('option', {value}, words)));
  const reason = h('input', {name: 'reason', autocomplete: 'off', maxlength: 200, placeholder: 'for the audit log'});
  return {
    element: h('div', {class: 'fields'}, field('Holds', until), field('Reason', reason)),
    suffix: () => {
      const given = Object.entries({until: until.value, reason: reason.value.trim()}).filter(([, value]) => value !== '');
      return given.length > 0 ? `?${new URLSearchParams(given)}` : '';
    },
  };
}

const times = [['30m', 'for 30 minutes'], ['2h', 'for 2 hours'], ['8h', 'for 8 hours'], ['1d', 'for a day'], ['7d', 'for 7 days']];
export const holdsLimits = [['', 'until the configuration is next read'], ...times, ['forever', 'whatever the configuration says']];
const holdsPauses = [['', 'until somebody resumes it'], ...times];

// pauseOrResume pauses a model, project or key, or resumes it. A project that is paused by one above it is resumed there.
export async function pauseOrResume(kind, name, paused) {
  if (kind === 'project' && paused) name = (await get(resource(kind, name)).catch(() => null))?.paused_by || name;
  const holds = term(holdsPauses);
  ask({
    title: `${paused ? 'Resume' : 'Pause'} ${kind} ${name}?`,
    body: h('div', {}, h('p', {}, paused
      ? 'Calls pass again, as far as its limits allow.'
      : `Every new call of this ${kind}${kind === 'project' ? ', and of those below it,' : ''} gets a 429 until somebody resumes it, and so do calls that wait. Calls that are under way go on.`), !paused && holds.element),
    verb: paused ? 'Resume' : 'Pause',
    danger: !paused,
    run: async () => {
      await call('PATCH', resource(kind, name) + (paused ? '' : holds.suffix()), {paused: !paused});
      done(`${name} is ${paused ? 'resumed' : 'paused'}.`);
    },
  });
}

// switchMode puts the whole gateway into shadow mode, or has it enforce limits again.
export function switchMode(mode) {
  const next = mode === 'shadow' ? 'enforce' : 'shadow';
  ask({
    title: next === 'shadow' ? 'Put the gateway into shadow mode?' : 'Enforce limits again?',
    body: h('p', {}, next === 'shadow'
      ? 'Limits of all projects and models are counted, but deny and delay nothing. Decisions say what they would have done.'
      : 'Limits deny and delay calls again, from now on.'),
    verb: next === 'shadow' ? 'Shadow' : 'Enforce',
    danger: next === 'shadow',
    run: async () => {
      await call('PATCH', '/v1/gateway', {mode: next});
      done(`The gateway’s mode is ${next}.`);
    },
  });
}

// reset forgets what a model or project has used.
export function reset(kind, name) {
  ask({
    title: `Reset ${kind} ${name}?`,
    body: h('p', {}, kind === 'model'
      ? 'What was used of its quota is forgotten here. The provider goes on counting: calls may be throttled by it.'
      : 'What was used of its limits and budgets is forgotten. The usage by hour and day stays.'),
    verb: 'Reset',
    danger: true,
    run: async () => {
      await call('POST', '/v1/reset', {[kind]: name});
      done(`The usage of ${name} is reset.`);
    },
  });
}

// createKey asks for a project and a name, makes a key, and shows its secret once.
export function createKey(project = '') {
  const of = h('input', {name: 'project', required: true, value: project, autocomplete: 'off', maxlength: 128});
  const name = h('input', {name: 'name', autocomplete: 'off', maxlength: 128});
  const ttl = h('input', {name: 'ttl', placeholder: 'never', autocomplete: 'off'});
  ask({
    title: 'Create a key',
    body: h('div', {class: 'fields'}, field('Project', of), field('What it is for', name), field('Valid for (such as 30d)', ttl)),
    verb: 'Create',
    run: async () => {
      const body = {project: of.value.trim(), name: name.value.trim()};
      if (ttl.value.trim() !== '') body.ttl = ttl.value.trim();
      showSecret('key', await call('POST', '/v1/keys', body), 'The new key');
    },
  });
}

const roles = [['viewer', 'viewer: sees everything'], ['operator', 'operator: changes limits, pauses and keys, too'], ['admin', 'admin: may do everything'], ['metrics', 'metrics: for Prometheus']];

// createToken asks for a name and a role, makes a token of the admin API, and shows it once.
export function createToken() {
  const name = h('input', {name: 'name', required: true, autocomplete: 'off', maxlength: 128});
  const role = h('select', {name: 'role'}, roles.map(([value, words]) => h('option', {value}, words)));
  const of = h('input', {name: 'project', placeholder: 'all projects', autocomplete: 'off', maxlength: 128});
  const ttl = h('input', {name: 'ttl', placeholder: 'forever', autocomplete: 'off'});
  ask({
    title: 'Create a token',
    body: h('div', {class: 'fields'}, field('Name', name, 'The audit log shows it.'), field('Role', role), field('Only for project', of, 'And for the projects below it.'), field('Valid for (such as 30d)', ttl)),
    verb: 'Create',
    run: async () => {
      const body = {name: name.value.trim(), role: role.value, project: of.value.trim()};
      if (ttl.value.trim() !== '') body.ttl = ttl.value.trim();
      showSecret('token', await call('POST', '/v1/tokens', body), 'The new token');
    },
  });
}

// rotateSecret replaces the secret of a key or a token, and shows the new one once.
export function rotateSecret(kind, key) {
  const grace = h('input', {name: 'grace', value: '1h', autocomplete: 'off'});
  ask({
    title: `Rotate ${kind} ${key.name || key.id}?`,
    body: [h('p', {}, 'Whoever uses it needs the new secret. The old secret works for the grace period; leave it empty to end it now.'), field('Grace period (such as 24h)', grace)],
    verb: 'Rotate',
    run: async () => {
      const body = grace.value.trim() === '' ? {} : {grace: grace.value.trim()};
      showSecret(kind, await call('POST', `/v1/${kind}s/${key.id}/rotate`, body), `The new secret of ${key.name || key.id}`);
    },
  });
}

// revokeSecret ends a key or a token.
export function revokeSecret(kind, key) {
  ask({
    title: `Revoke ${kind} ${key.name || key.id}?`,
    body: h('p', {}, `${kind === 'key' ? `Clients of ${key.project} that use it` : 'Programs and browsers that use it'} get a 401 from now on. This cannot be undone.`),
    verb: 'Revoke',
    danger: true,
    run: async () => {
      await call('DELETE', `/v1/${kind}s/${key.id}`);
      done(`${capital(kind)} ${key.name || key.id} is revoked.`);
    },
  });
}

const capital = (text) => text[0].toUpperCase() + text.slice(1);

function showSecret(kind, issued, title) {
  const secret = h('code', {tabindex: 0}, issued.secret);
  const copy = h('button', {type: 'button', onclick: async () => {
    try {
      await navigator.clipboard.writeText(issued.secret);
      copy.textContent = 'Copied';
    } catch {
      getSelection().selectAllChildren(secret);
    }
  }}, 'Copy');
  const {dialog} = ask({
    title,
    body: [h('p', {}, `${kind === 'key' ? '' : `With the role ${issued.role}. `}${issued.project ? `For project ${issued.project}. ` : ''}It is shown only here, and only once: the gateway keeps a hash of it.`), h('div', {class: 'secret'}, secret, copy)],
    verb: 'I have it',
    run: () => done(`${capital(kind)} ${issued.name || issued.id} is ready.`),
  });
  dialog.querySelector('[data-part=cancel]').hidden = true;
}

// field puts a label above an input.
export function field(words, input, note) {
  input.id ||= `field-${++made}`;
  return h('div', {class: 'field'}, h('label', {for: input.id}, words), input, note && h('span', {class: 'note'}, note));
}
