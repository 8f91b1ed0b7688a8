/** How requests are made. */
export interface Options {
  /** The address of the admin API, such as http://127.0.0.1:8081. */
  base: string;
  /** The admin token, if the API has one. */
  token?: string;
  /** In place of the global fetch. */
  fetch?: typeof globalThis.fetch;
}

/** An error that the API has answered with. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    /** What was wrong and what is allowed; undefined if the answer did not come from the API. */
    readonly problem: Problem | undefined,
  ) {
    super(problem?.detail ?? `the admin API has answered with ${status}`);
    this.name = "ApiError";
  }
}

/** One of the events of a stream. */
export interface ServerSentEvent<T> {
  event: string;
  data: T;
}

type Value = string | number | boolean | undefined;

interface Call {
  method: string;
  path: string;
  query?: object;
  body?: unknown;
  signal?: AbortSignal | undefined;
}

/** Sends the requests of a Client. */
class Sender {
  constructor(private readonly options: Options) {}

  async send(call: Call): Promise<Response> {
    const url = new URL(this.options.base.replace(/\/+$/, "") + call.path);
    for (const [name, value] of Object.entries(call.query ?? {}) as [string, Value][]) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    const headers = new Headers();
    if (this.options.token !== undefined) headers.set("Authorization", `Bearer ${this.options.token}`);
    if (call.body !== undefined) headers.set("Content-Type", "application/json");
    const answer = await (this.options.fetch ?? globalThis.fetch)(url, {
      method: call.method,
      headers,
      ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
      ...(call.signal === undefined ? {} : { signal: call.signal }),
    });
    if (!answer.ok) throw new ApiError(answer.status, await problemOf(answer));
    return answer;
  }

  async json<T>(call: Call): Promise<T> {
    return (await (await this.send(call)).json()) as T;
  }

  async text(call: Call): Promise<string> {
    return await (await this.send(call)).text();
  }

  async nothing(call: Call): Promise<void> {
    await (await this.send(call)).body?.cancel();
  }

  /** Yields the events of a stream until it ends, or until the caller stops asking. */
  async *events<T>(call: Call): AsyncGenerator<ServerSentEvent<T>, void, undefined> {
    const body = (await this.send(call)).body;
    if (body === null) return;
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    try {
      let unread = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        const blocks = (unread + value).split("\n\n");
        unread = blocks.pop() ?? "";
        for (const block of blocks) {
          const event = readEvent<T>(block);
          if (event !== undefined) yield event;
        }
      }
    } finally {
      await reader.cancel();
    }
  }
}

async function problemOf(answer: Response): Promise<Problem | undefined> {
  if (!(answer.headers.get("Content-Type") ?? "").startsWith("application/problem+json")) {
    await answer.body?.cancel();
    return undefined;
  }
  return (await answer.json()) as Problem;
}

/** Returns an event; undefined for a comment. */
function readEvent<T>(block: string): ServerSentEvent<T> | undefined {
  let event = "message";
  const data: string[] = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) event = line.slice("event: ".length);
    if (line.startsWith("data: ")) data.push(line.slice("data: ".length));
  }
  return data.length === 0 ? undefined : { event, data: JSON.parse(data.join("\n")) as T };
}
