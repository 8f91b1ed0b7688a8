// Vercel's SDK for Mistral, without the part of it that tries again.
import { createMistral } from "@ai-sdk/mistral";
import { question, serve } from "./asked.mjs";

serve({
  async whole(ask, show) {
    const mistral = createMistral({ baseURL: ask.base, apiKey: ask.key });
    try {
      show(await mistral(ask.model).doGenerate({ prompt: [{ role: "user", content: [{ type: "text", text: question }] }] }));
    } catch (error) {
      throw Object.assign(error, { status: error.statusCode });
    }
  },
});
