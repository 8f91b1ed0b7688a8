// Calls of the admin API, and its live stream.

// Failure is an error of the API (a problem, RFC 9457), or of the connection: then its status is 0.
export class Failure extends Error {
  constructor(status, detail, problem = {}) {
    super(detail);
    this.status = status;
    this.problem = problem;
  }
}

// viewer is who looks at the pages: the role, and the project to which the session is bound, if it is.
export const viewer = {role: '', project: ''};

// isBoundAway reports whether a project is none that the viewer may see.
export const isBoundAway = (name) => viewer.project !== '' && name !== viewer.project && !name.startsWith(`${viewer.project}/`);

// call calls the API, and returns the answer's value.
export async function call(method, path, body) {
  const options = {method, headers: {}, cache: 'no-store'};
  if (body !== undefined) {
    options.headers['Content-Type'] = 'application/json';
    options.body = JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Failure(0, 'The gateway does not answer.');
  }
  const text = await answer.text();
  let value = null;
  try {
    value = text === '' ? null : JSON.parse(text);
  } catch {
    throw new Failure(answer.status, `The answer (status ${answer.status}) is not JSON.`);
  }
  if (answer.ok) return value;
  const failure = new Failure(answer.status, value?.detail ?? `status ${answer.status}`, value ?? {});
  if (answer.status === 401 && path !== '/session') dispatchEvent(new Event('signedout'));
  throw failure;
}

export const get = (path, parameters = {}) => call('GET', withQuery(path, parameters));

// withQuery adds those parameters to a path that have a value.
export function withQuery(path, parameters) {
  const set = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== '' && value !== null);
  return set.length === 0 ? path : `${path}?${new URLSearchParams(set)}`;
}

// pathOf escapes a name that stands at the end of a path, with its slashes: a project's name may be "../quotas/gpt", which must lead
// nowhere else.
export const pathOf = encodeURIComponent;
