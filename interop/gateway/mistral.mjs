// Vercel's SDK for Mistral, without the part of it that tries again.
import { createMistral } from "@ai-sdk/mistral";
import { question, serve } from "./asked.mjs";

const client = (ask) => createMistral({ baseURL: ask.base, apiKey: ask.key });

serve({
  embeddings: async (ask, show) => show(await client(ask).textEmbeddingModel(ask.model).doEmbed({ values: ["one", "two and three"] })),

  async whole(ask, show) {
    try {
      show(await client(ask)(ask.model).doGenerate({ prompt: [{ role: "user", content: [{ type: "text", text: question }] }] }));
    } catch (error) {
      throw Object.assign(error, { status: error.statusCode });
    }
  },
});
