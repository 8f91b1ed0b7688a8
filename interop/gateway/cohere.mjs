import { CohereClientV2 } from "cohere-ai";
import { question, serve } from "./asked.mjs";

serve({
  rerank: async (ask, show) => show(await new CohereClientV2({ environment: ask.base, token: ask.key }).rerank({ model: ask.model, query: "two", documents: ["one", "two"] })),

  async whole(ask, show) {
    const cohere = new CohereClientV2({ environment: ask.base, token: ask.key });
    try {
      show(await cohere.chat({ model: ask.model, messages: [{ role: "user", content: question }] }, { maxRetries: ask.retries }));
    } catch (error) {
      throw Object.assign(error, { status: error.statusCode });
    }
  },
});
