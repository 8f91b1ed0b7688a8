// A client of the gateway in Node.js, without any package: a call, a stream, and what to do with a denial.
//
//   ratelimit mock &
//   ratelimit serve &            # with base_url: http://127.0.0.1:8090 for openai
//   node examples/clients/client.mjs http://127.0.0.1:8080/openai/v1
//
// With OpenAI's package it is new OpenAI({ baseURL }), which waits and tries again by itself.

const base = process.argv[2] ?? "http://127.0.0.1:8080/openai/v1";
const mostSeconds = 90; // the longest wait for a limit

// ask makes a call, and waits as long as the gateway says when a limit denies it.
async function ask(body) {
  for (;;) {
    const response = await fetch(`${base}/chat/completions`, {
      method: "POST",
      headers: {
        Authorization: `Bearer ${process.env.OPENAI_API_KEY ?? "none"}`,
        "Content-Type": "application/json",
        "X-Project-ID": "search",
      },
      body: JSON.stringify(body),
    });
    if (response.ok) return response;
    const { error } = await response.json();
    const wait = Number(response.headers.get("Retry-After") ?? 0);
    const never = response.status !== 429 || response.headers.get("X-Should-Retry") === "false";
    if (never || wait > mostSeconds) throw new Error(`${response.status}: ${error.message}`);
    console.log(`denied: ${error.message}`);
    await new Promise((resolve) => setTimeout(resolve, wait * 1000));
  }
}

const body = { model: "gpt-4o", max_tokens: 50, messages: [{ role: "user", content: "hello" }] };
const answer = await (await ask(body)).json();
console.log("answer:", answer.choices[0].message.content);
console.log("tokens:", answer.usage.total_tokens);

let words = "";
let rest = "";
for await (const part of (await ask({ ...body, stream: true })).body.pipeThrough(new TextDecoderStream())) {
  const lines = (rest + part).split("\n");
  rest = lines.pop();
  for (const line of lines) {
    if (line.startsWith("data: {")) {
      for (const choice of JSON.parse(line.slice("data: ".length)).choices) words += choice.delta.content ?? "";
    }
  }
}
console.log("stream:", words);
