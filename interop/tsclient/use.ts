// A program in TypeScript that uses the admin API by the types that openapi-typescript makes of its document.
// Its arguments are the addresses of the admin API and of the gateway, and the token. It prints what it has
// found, as JSON.
import createClient from "openapi-fetch";
import type { components, paths } from "./ratelimit.js";

type Decision = components["schemas"]["Decision"];

declare const process: { argv: string[] };

const [base = "", gateway = "", token = ""] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: base, headers: { Authorization: `Bearer ${token}` } });

async function call(project: string): Promise<number> {
  const answer = await fetch(`${gateway}/openai/v1/chat/completions`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Project-ID": project },
    body: JSON.stringify({ model: "gpt-4o", max_tokens: 5, messages: [{ role: "user", content: "hello" }] }),
  });
  await answer.text();
  return answer.status;
}

// The first decision of a stream of events, which ends because the program has seen enough.
async function watched(): Promise<Decision> {
  const leave = new AbortController();
  const { data } = await client.GET("/v1/events", {
    params: { query: { kind: "decision", project: "acme" } },
    parseAs: "stream",
    signal: leave.signal,
  });
  if (!data) throw new Error("there is no stream");
  let text = "";
  let called = false;
  for await (const piece of data.pipeThrough(new TextDecoderStream())) {
    text += piece;
    if (text.includes("following") && !called) {
      called = true;
      await call("acme/search");
    }
    const found = /^data: (.*)\n\n/m.exec(text);
    if (found) {
      leave.abort();
      return JSON.parse(found[1] ?? "") as Decision;
    }
  }
  throw new Error("the stream has ended");
}

// What an operation has answered, which must not be an error.
function must<T>({ data, error }: { data?: T; error?: unknown }): T {
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
}

const seen = await watched();
const acme = { params: { path: { project: "acme/search" } } };
const limited = must(await client.PATCH("/v1/projects/{project}", { ...acme, body: { requests_per_minute: 1, tokens_per_day: null } }));
const statuses = [await call("acme/search"), await call("acme/search")];
const denied = must(await client.GET("/v1/decisions", { params: { query: { project: "acme/search", outcome: "denied", limit: 1 } } }));
const explained = must(await client.GET("/v1/decisions/{id}", { params: { path: { id: denied.decisions[0]?.id ?? "" } } }));
const question = { body: { model: "gpt-4o", project: "acme/search", tokens: 10 } };
const answer = must(await client.POST("/v1/decide", question));
await client.POST("/v1/reset", { body: { project: "acme/search" } });
const after = must(await client.POST("/v1/decide", question));
const key = must(await client.POST("/v1/keys", { body: { project: "acme/search", name: "from TypeScript" } }));
await client.DELETE("/v1/keys/{id}", { params: { path: { id: key.id } } });
const refused = await client.GET("/v1/state", { headers: { Authorization: "Bearer wrong" } });

console.log(
  JSON.stringify({
    seen: seen.project,
    limit: "limit" in limited ? limited.limit.requests_per_minute : undefined,
    statuses,
    denied: denied.decisions.map((each) => each.outcome),
    limits: explained.limits.filter((each) => !each.enough).map((each) => `${each.scope} ${each.owner} ${each.limit}`),
    advice: explained.advice.length > 0,
    answer: answer.allowed,
    owner: answer.owner,
    after: after.allowed,
    waiting: must(await client.GET("/v1/waiting")).waiting.length,
    project: must(await client.GET("/v1/projects/{project}", acme)).project,
    audit: must(await client.GET("/v1/audit")).entries.map((each) => each.action),
    refused: { status: refused.response.status, detail: refused.error?.detail },
  }),
);
