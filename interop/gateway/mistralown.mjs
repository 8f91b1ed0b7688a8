// Mistral's own SDK.
import { Mistral } from "@mistralai/mistralai";
import { serve } from "./asked.mjs";

serve({
  ocr: async (ask, show) => {
    const client = new Mistral({ serverURL: ask.base, apiKey: ask.key, retryConfig: { strategy: "none" } });
    show(await client.ocr.process({ model: ask.model, document: { type: "document_url", documentUrl: "https://example.com/a.pdf" } }));
  },
});
