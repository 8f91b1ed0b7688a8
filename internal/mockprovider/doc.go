// Package mockprovider imitates the providers of LLMs, for tests and demos: it speaks
// their wire formats, and costs nothing.
//
// A [Server] answers at the paths of OpenAI, Azure, Anthropic, Gemini, Vertex, Groq,
// Mistral, OpenRouter, Ollama, Cohere and Bedrock, at any host. [Config.Script] chooses the
// reply to a call, or else a header that any SDK can send:
//
//	X-Mock: output=200 reasoning=50 cached=30
//	X-Mock: input-audio=4 output-audio=9 tier=flex
//	X-Mock: status=429 retry-after=2s as=groq
//	X-Mock: fault=reset after=5 delay=20ms
//
// Tokens are counted in a simple way, the same for every model: see [Count]. So a
// test can compare the usage that a client has counted with the real one in
// [Server.Totals].
package mockprovider
