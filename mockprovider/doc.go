// Package mockprovider stands in for the providers of LLMs: it speaks their wire
// formats, and costs nothing. It is for tests and demos.
//
// A [Server] answers at the paths of OpenAI, Azure, Anthropic, Gemini, Vertex, Groq,
// Mistral, OpenRouter, Ollama, Cohere and Bedrock, at any host. What a call gets is chosen by
// [Config.Script], or by a header that any SDK can be told to send:
//
//	X-Mock: output=200 reasoning=50 cached=30
//	X-Mock: status=429 retry-after=2s as=groq
//	X-Mock: fault=reset after=5 delay=20ms
//
// Tokens are counted in a simple way, the same for every model: see [Count]. So a
// test can compare what a client thinks it has used with what [Server.Totals] knows
// it has.
package mockprovider
