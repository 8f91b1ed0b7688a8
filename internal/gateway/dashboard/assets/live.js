// The overview as it is now: a snapshot, and the deltas that the gateway sends after it.

const retryAfter = [500, 1000, 2000, 4000, 8000]; // milliseconds, after each failure in a row
const silence = 12_000; // milliseconds without an event after which a connection counts as lost
const hiddenFor = 10_000; // milliseconds after which a page that nobody sees stops listening: browsers have six connections for all tabs

class Live extends EventTarget {
  overview = null; // the last snapshot without its rows; null: none has come yet
  models = new Map(); // rows by name
  projects = new Map();
  state = 'connecting'; // or "live" or "lost"
  skew = 0; // milliseconds by which the gateway's clock is ahead of the browser's
  #source = null;
  #failures = 0;
  #timer = 0;

  // start connects, now and whenever the connection is lost.
  start() {
    if (this.#source) return;
    clearTimeout(this.#timer);
    const source = new EventSource('/v1/overview/live?projects=200');
    this.#source = source;
    this.#watch();
    source.addEventListener('snapshot', (e) => this.#snapshot(JSON.parse(e.data)));
    source.addEventListener('delta', (e) => this.#delta(JSON.parse(e.data)));
    source.addEventListener('error', () => this.#lost());
  }

  stop() {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = null;
  }

  #watch() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#lost(), silence);
  }

  #lost() {
    this.stop();
    this.#set('lost');
    const wait = retryAfter[Math.min(this.#failures++, retryAfter.length - 1)];
    this.#timer = setTimeout(() => this.start(), wait);
  }

  #set(state) {
    if (this.state === state) return;
    this.state = state;
    this.dispatchEvent(new Event('state'));
  }

  #snapshot(snapshot) {
    const {models, projects, ...rest} = snapshot;
    this.models = new Map(models.map((row) => [row.name, row]));
    this.projects = new Map(projects.map((row) => [row.name, row]));
    this.#failures = 0;
    this.#arrived(rest);
  }

  #delta(delta) {
    const {models, projects, gone_models: goneModels, gone_projects: goneProjects, ...rest} = delta;
    for (const row of models ?? []) this.models.set(row.name, row);
    for (const row of projects ?? []) this.projects.set(row.name, row);
    for (const name of goneModels ?? []) this.models.delete(name);
    for (const name of goneProjects ?? []) this.projects.delete(name);
    this.#arrived(rest);
  }

  #arrived(rest) {
    this.overview = {...this.overview, ...rest};
    this.skew = Date.parse(rest.time) - Date.now();
    this.#watch();
    this.#set('live');
    this.dispatchEvent(new Event('change'));
  }

  // now returns the time by the gateway's clock, in milliseconds.
  now() {
    return Date.now() + this.skew;
  }
}

export const live = new Live();

let hiding = 0;
document.addEventListener('visibilitychange', () => {
  clearTimeout(hiding);
  if (document.hidden) hiding = setTimeout(() => live.stop(), hiddenFor);
  else if (live.overview) live.start();
});

// A page that was left is kept for the way back, with its connection, unless it gives that up.
addEventListener('pagehide', () => live.stop());
addEventListener('pageshow', (event) => {
  if (event.persisted) live.start();
});
