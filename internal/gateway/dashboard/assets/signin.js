// The sign-in, where the admin API has a token.

import {call, get} from './api.js';
import {h} from './dom.js';
import {field} from './act.js';

export function show(body, _, app) {
  const token = h('input', {type: 'password', name: 'token', required: true, autocomplete: 'current-password'});
  const fault = h('p', {class: 'fault', role: 'alert'});
  const button = h('button', {type: 'submit', class: 'main'}, 'Sign in');
  const form = h('form', {onsubmit: async (event) => {
    event.preventDefault();
    button.disabled = true;
    fault.textContent = '';
    try {
      await call('POST', '/session', {token: token.value});
      await app.enter();
    } catch (failure) {
      fault.textContent = failure.message;
      token.select();
    }
    button.disabled = false;
  }}, h('h1', {}, 'Sign in'), h('p', {class: 'subtitle'}, 'Use a token of the admin API: admin.token from the gateway’s configuration, or one made with `ratelimit token create`.'), field('Token', token), fault, button);
  get('/session').then((session) => { // users of an identity provider need no token
    if (session.oidc) form.append(h('p', {}, h('a', {href: '/login'}, 'Sign in with your identity provider')));
  }).catch(() => {});
  body.append(h('section', {class: 'panel sign-in', 'aria-label': 'Sign in'}, form));
  setTimeout(() => token.focus());
  return () => {};
}
