import Anthropic from "@anthropic-ai/sdk";
import { brief, each, question, serve, some, wantsTool, weather } from "./asked.mjs";

const options = (ask) => ({ baseURL: ask.base || undefined, maxRetries: ask.retries, defaultHeaders: { "X-Mock": ask.mock } });
const client = (ask) => new Anthropic({ apiKey: ask.key || undefined, authToken: null, ...options(ask) });

const message = (ask) => ({ model: ask.model, max_tokens: 60, system: brief, messages: [{ role: "user", content: question }] });
const messageTools = (ask) => ({
  ...message(ask),
  tools: [{ name: weather.name, description: weather.description, input_schema: weather.schema }],
});

let leave;

serve({
  whole: async (ask, show) => show(await client(ask).messages.create(message(ask))),
  stream: (ask, show) => each(client(ask).messages.create({ ...message(ask), stream: true }), show),
  async tools(ask, show) {
    const body = messageTools(ask);
    const first = await client(ask).messages.create(body, { headers: wantsTool });
    show(first);
    const results = first.content.map((use) => ({ type: "tool_result", tool_use_id: use.id, content: "21 degrees" }));
    const turns = [{ role: "assistant", content: first.content }, { role: "user", content: results }];
    show(await client(ask).messages.create({ ...body, messages: [...body.messages, ...turns] }));
  },
  async "tools-stream"(ask, show) {
    show(await client(ask).messages.stream(messageTools(ask), { headers: wantsTool }).finalMessage());
  },

  async count(ask, show) {
    const { model, system, messages } = message(ask);
    show(await client(ask).messages.countTokens({ model, system, messages }));
  },
  async bearer(ask, show) {
    const bearer = new Anthropic({ apiKey: null, authToken: ask.key, ...options(ask) });
    show(await bearer.messages.create(message(ask)));
  },

  async open(ask, show) {
    const stream = await client(ask).messages.create({ ...message(ask), max_tokens: 5000, stream: true });
    leave = () => stream.controller.abort();
    await some(ask.pieces, stream, show);
  },
  leave: () => leave(),
});
