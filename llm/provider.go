package llm

// Provider is the company or server that serves a model: "openai", "anthropic", "gemini", "vertex", "azure", "bedrock",
// "cohere", "groq", "mistral", "ollama", "openrouter", "voyageai", or "compatible" for any other server with OpenAI's API.
type Provider string
