// A program in TypeScript that uses the client of the admin API. Its arguments are the addresses of the
// admin API and of the gateway, and the token. It prints what it has found, as JSON.
import { ApiError, Client, type Answer, type Decision } from "./ratelimit.js";

declare const process: { argv: string[] };

const [base = "", gateway = "", token = ""] = process.argv.slice(2);
const client = new Client({ base, token });

async function call(project: string): Promise<number> {
  const answer = await fetch(`${gateway}/openai/v1/chat/completions`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Project-ID": project },
    body: JSON.stringify({ model: "gpt-4o", max_tokens: 5, messages: [{ role: "user", content: "hello" }] }),
  });
  await answer.text();
  return answer.status;
}

// The events of two calls, by a stream that ends because the program has seen enough.
async function watched(): Promise<Decision[]> {
  const seen: Decision[] = [];
  const leave = new AbortController();
  const events = client.events({ kind: "decision", project: "acme" }, leave.signal);
  const first = events.next(); // the stream begins with this
  for (let tries = 0; ; tries++) {
    await call("acme/search");
    const one = await Promise.race([first, new Promise<undefined>((then) => setTimeout(() => then(undefined), 50))]);
    if (one?.done === false) {
      seen.push(one.value.data as Decision);
      break;
    }
  }
  leave.abort();
  return seen;
}

async function refused(): Promise<{ status: number; detail: string | undefined }> {
  try {
    await new Client({ base, token: "wrong" }).state();
  } catch (fault) {
    if (fault instanceof ApiError) return { status: fault.status, detail: fault.problem?.detail };
    throw fault;
  }
  throw new Error("a wrong token is let in");
}

const seen = await watched();
const limited = await client.changeProject("acme/search", { requests_per_minute: 1, tokens_per_day: null });
const statuses = [await call("acme/search"), await call("acme/search")];
const denied = await client.decisions({ project: "acme/search", outcome: "denied", limit: 1 });
const id = denied.decisions[0]?.id ?? "";
const explained = await client.explain(id);
const answer: Answer = await client.decide({ model: "gpt-4o", project: "acme/search", tokens: 10 });
await client.reset({ project: "acme/search" });
const after: Answer = await client.decide({ model: "gpt-4o", project: "acme/search", tokens: 10 });
const key = await client.createKey({ project: "acme/search", name: "from TypeScript" });
await client.revokeKey(key.id);

console.log(
  JSON.stringify({
    seen: seen.map((each) => each.project),
    limit: "limit" in limited ? limited.limit.requests_per_minute : undefined,
    statuses,
    denied: denied.decisions.map((each) => each.outcome),
    limits: explained.limits.filter((each) => !each.enough).map((each) => `${each.scope} ${each.owner} ${each.limit}`),
    advice: explained.advice.length > 0,
    answer: answer.allowed,
    owner: answer.owner,
    after: after.allowed,
    waiting: (await client.waiting()).waiting.length,
    project: (await client.project("acme/search")).project,
    metrics: (await client.metrics()).includes("ratelimit_gateway_requests_total"),
    audit: (await client.audit()).entries.map((each) => each.action),
    refused: await refused(),
  }),
);
