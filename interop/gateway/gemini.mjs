import { GoogleGenAI } from "@google/genai";
import { brief, each, question, serve, some, wantsTool, weather } from "./asked.mjs";

// retryOptions are those of who wants to try again; the SDK does not by itself.
const retryOptions = (ask) => (ask.retries ? { attempts: 1 + ask.retries, initialDelay: 0.05, expBase: 2, jitter: 0 } : undefined);

const models = (ask, headers = { "X-Mock": ask.mock }) =>
  new GoogleGenAI({ apiKey: ask.key || undefined, vertexai: false, httpOptions: { baseUrl: ask.base || undefined, headers, retryOptions: retryOptions(ask) } }).models;

const content = (ask, config) => ({ model: ask.model, contents: question, config: { systemInstruction: brief, maxOutputTokens: 60, ...config } });
const tools = [{ functionDeclarations: [{ name: weather.name, description: weather.description, parametersJsonSchema: weather.schema }] }];

let leave;

serve({
  whole: async (ask, show) => show(await models(ask).generateContent(content(ask))),
  stream: (ask, show) => each(models(ask).generateContentStream(content(ask)), show),
  async tools(ask, show) {
    const body = content(ask, { tools });
    const first = await models(ask, wantsTool).generateContent(body);
    show(first);
    const turn = first.candidates[0].content;
    const results = turn.parts.map(({ functionCall }) => ({
      functionResponse: { id: functionCall.id, name: functionCall.name, response: { output: "21 degrees" } },
    }));
    const contents = [{ role: "user", parts: [{ text: question }] }, turn, { role: "user", parts: results }];
    show(await models(ask).generateContent({ ...body, contents }));
  },
  "tools-stream": (ask, show) => each(models(ask, wantsTool).generateContentStream(content(ask, { tools })), show),

  count: async (ask, show) => show(await models(ask).countTokens({ model: ask.model, contents: question })),

  async open(ask, show) {
    const controller = new AbortController();
    leave = () => controller.abort();
    const config = { maxOutputTokens: 5000, abortSignal: controller.signal };
    await some(ask.pieces, models(ask).generateContentStream(content(ask, config)), show);
  },
  leave: () => leave(),
});
