import OpenAI, { AzureOpenAI, toFile } from "openai";
import { brief, each, question, serve, some, wantsTool, weather } from "./asked.mjs";

const options = (ask) => ({ apiKey: ask.key || undefined, maxRetries: ask.retries, defaultHeaders: { "X-Mock": ask.mock } });
const client = (ask) => new OpenAI({ baseURL: ask.base || undefined, ...options(ask) });
const azure = (ask) => new AzureOpenAI({ endpoint: ask.base, apiVersion: "2025-04-01-preview", ...options(ask) });

const chat = (ask) => ({
  model: ask.model,
  messages: [{ role: "system", content: brief }, { role: "user", content: question }],
  max_completion_tokens: 60,
});
const chatTools = (ask) => ({
  ...chat(ask),
  tools: [{ type: "function", function: { name: weather.name, description: weather.description, parameters: weather.schema } }],
});
const response = (ask) => ({ model: ask.model, instructions: brief, input: question, max_output_tokens: 60 });
const responseTools = (ask) => ({
  ...response(ask),
  tools: [{ type: "function", name: weather.name, description: weather.description, parameters: weather.schema, strict: true }],
});

let leave;

serve({
  whole: async (ask, show) => show(await client(ask).chat.completions.create(chat(ask))),
  stream: (ask, show) => each(client(ask).chat.completions.create({ ...chat(ask), stream: true }), show),
  "stream-usage": (ask, show) =>
    each(client(ask).chat.completions.create({ ...chat(ask), stream: true, stream_options: { include_usage: true } }), show),
  async tools(ask, show) {
    const body = chatTools(ask);
    const first = await client(ask).chat.completions.create(body, { headers: wantsTool });
    show(first);
    const [choice] = first.choices;
    const results = choice.message.tool_calls.map((call) => ({ role: "tool", tool_call_id: call.id, content: "21 degrees" }));
    show(await client(ask).chat.completions.create({ ...body, messages: [...body.messages, choice.message, ...results] }));
  },
  async "tools-stream"(ask, show) {
    show(await client(ask).chat.completions.stream(chatTools(ask), { headers: wantsTool }).finalChatCompletion());
  },

  responses: async (ask, show) => show(await client(ask).responses.create(response(ask))),
  "responses-stream": (ask, show) => each(client(ask).responses.create({ ...response(ask), stream: true }), show),
  async "responses-tools"(ask, show) {
    const body = responseTools(ask);
    const first = await client(ask).responses.create(body, { headers: wantsTool });
    show(first);
    const results = first.output.map((call) => ({ type: "function_call_output", call_id: call.call_id, output: "21 degrees" }));
    show(await client(ask).responses.create({ ...body, input: [{ role: "user", content: question }, ...first.output, ...results] }));
  },

  embeddings: async (ask, show) => show(await client(ask).embeddings.create({ model: ask.model, input: ["a few words", "more"] })),
  models: async (ask, show) => show((await client(ask).models.list()).data),
  async upload(ask, show) {
    show(await client(ask).files.create({ file: await toFile(Buffer.alloc(100_000, "x"), "batch.jsonl"), purpose: "batch" }));
  },
  azure: async (ask, show) => show(await azure(ask).chat.completions.create(chat(ask))),
  "azure-embeddings": async (ask, show) => show(await azure(ask).embeddings.create({ model: ask.model, input: ["one", "two and three"] })),
  "azure-images": async (ask, show) => show(await azure(ask).images.generate({ model: ask.model, prompt: "a cat", quality: "hd" })),

  async open(ask, show) {
    const stream = await client(ask).chat.completions.create({ ...chat(ask), max_completion_tokens: 5000, stream: true });
    leave = () => stream.controller.abort();
    await some(ask.pieces, stream, show);
  },
  leave: () => leave(),
});
