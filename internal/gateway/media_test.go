package gateway

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
)

// sound returns a WAV file of so many seconds.
func sound(seconds int) string {
	const rate = 1000 // samples of a byte
	b := []byte("RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00")
	b = binary.LittleEndian.AppendUint32(b, rate)
	b = binary.LittleEndian.AppendUint32(b, rate)
	b = append(b, "\x01\x00\x08\x00data"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(seconds*rate))
	return string(append(b, make([]byte, seconds*rate)...))
}

// form returns a multipart form and its Content-Type. A field whose name begins with @ is a file.
func form(fields ...string) (body, contentType string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b) // a buffer takes everything
	for i := 0; i < len(fields); i += 2 {
		if name, ok := strings.CutPrefix(fields[i], "@"); ok {
			f, _ := w.CreateFormFile(name, "file")
			f.Write([]byte(fields[i+1]))
		} else {
			w.WriteField(fields[i], fields[i+1])
		}
	}
	w.Close()
	return b.String(), w.FormDataContentType()
}

const mediaRig = `
providers: {openai: {base_url: MOCK}, anthropic: {base_url: MOCK}, gemini: {base_url: MOCK}, vertex: {kind: vertex, base_url: MOCK}, cohere: {kind: cohere, base_url: MOCK}, mistral: {kind: mistral, base_url: MOCK}, voyageai: {kind: voyageai, base_url: MOCK}, groq: {kind: groq, base_url: MOCK}, jina: {kind: compatible, base_url: MOCK}, together: {kind: compatible, base_url: MOCK}, fireworks: {kind: compatible, base_url: MOCK}, azure: {kind: azure, base_url: MOCK}, ollama: {kind: ollama, base_url: MOCK}, vllm: {kind: compatible, base_url: MOCK}, bedrock: {kind: bedrock, base_url: MOCK}}
prices: {gpt-image-t: {input: 5, image_input: 10, output: 40, max_output: 7000}, gpt-4o-transcribe: {max_output: 2000}, gpt-tts-t: {input: 0.60, output: 12, max_output: 1000}, gemini-2.5-flash-image: {max_output: 32768}, text-embedding-005: {input: 0.025}, rerank-2.5: {input: 0.05}, voyage-multimodal-3: {input: 0.12}, jina-t: {input: 0.05}, flux-t: {image: 0.04}, tts-t: {characters: 65}, whisper-t: {audio_minute: 0.0015}, rank-t: {input: 0.10}, embed-t: {input: 0.008},
  "amazon.nova-canvas-v1:0": {image: 0.06}, "amazon.titan-image-generator-v2:0": {image: 0.01}, "stability.sd3-5-large-v1:0": {image: 0.08}, "cohere.rerank-v3-5:0": {search_units: 2}, "amazon.rerank-v1:0": {search_units: 1}}
projects: {acme: {dollars: 1000}}
`

// endpointCall is a call of an endpoint.
type endpointCall struct {
	endpoint, model string
	body, kind      string // kind is the Content-Type
	counted         string // what it is counted in, for the table
	bill            func(t mockprovider.Totals) int64
	provider        string // empty: openai
	mock            string // the header X-Mock, which says how the mock answers
	file            string // a file that is uploaded before: FILE in the body is its id, and clients ask for the answer until it has ended
}

// perUnit returns the bill of a model by one unit, in nanodollars.
func perUnit(unit int, nanodollars int64) func(mockprovider.Totals) int64 {
	return func(t mockprovider.Totals) int64 { return t.Units[unit] * nanodollars }
}

// perToken returns the bill of a model in nanodollars for a token of the prompt and of the answer.
func perToken(input, output int64) func(mockprovider.Totals) int64 {
	return func(t mockprovider.Totals) int64 { return int64(t.Input)*input + int64(t.Output)*output }
}

// of returns the calls as those of a provider.
func of(provider string, calls ...endpointCall) []endpointCall {
	for i := range calls {
		calls[i].provider = provider
	}
	return calls
}

// plus returns the bill of a model by its tokens, and by one unit beside them.
func plus(tokens func(mockprovider.Totals) int64, unit int, nanodollars int64) func(mockprovider.Totals) int64 {
	return func(t mockprovider.Totals) int64 { return tokens(t) + t.Units[unit]*nanodollars }
}

// otherCalls returns calls of the endpoints of other providers than OpenAI that cost something beside text.
func otherCalls() []endpointCall {
	const gemini = "POST /v1beta/models/"
	const vertex = "POST /v1/projects/p/locations/l/publishers/google/models/"
	const ask = `"contents":[{"role":"user","parts":[{"text":"what is new?"}]}],"generationConfig":{"maxOutputTokens":50}`
	const claude = `{"model":"claude-opus-4-5","max_tokens":50,"messages":[{"role":"user","content":"what is new?"}]`
	search := `{` + ask + `,"tools":[{"googleSearch":{}}]}`
	picture := `{"contents":[{"parts":[{"text":"a cat"}]}],"generationConfig":{"responseModalities":["IMAGE"],"maxOutputTokens":2000}}`
	imagen := `{"instances":[{"prompt":"a cat"}],"parameters":{"sampleCount":2}}`
	veo := `{"instances":[{"prompt":"a cat"}],"parameters":{"durationSeconds":6,"resolution":"1080p"}}`
	cache := `{"model":"models/gemini-2.5-flash","contents":[{"role":"user","parts":[{"text":"a long book, which is read again and again"}]}],"ttl":"5400s"}`
	pictured := func(t mockprovider.Totals) int64 {
		return int64(t.Input)*300 + (int64(t.Output)-1290)*2_500 + 1290*30_000
	}
	return slices.Concat(of("gemini",
		endpointCall{endpoint: gemini + "gemini-embedding-001:embedContent", model: "gemini-embedding-001", body: `{"content":{"parts":[{"text":"one and two"}]}}`, counted: "tokens", bill: perToken(150, 0)},
		endpointCall{
			endpoint: gemini + "gemini-embedding-001:batchEmbedContents", model: "gemini-embedding-001", counted: "tokens", bill: perToken(150, 0),
			body: `{"requests":[{"model":"models/gemini-embedding-001","content":{"parts":[{"text":"one"}]}},{"model":"models/gemini-embedding-001","content":{"parts":[{"text":"two"}]}}]}`,
		},
		endpointCall{endpoint: gemini + "gemini-2.5-flash:generateContent", model: "gemini-2.5-flash", body: search, mock: "web-searches=3", counted: "tokens, web searches", bill: plus(perToken(300, 2_500), llm.WebSearches, 35_000_000)},
		endpointCall{endpoint: gemini + "gemini-3.5-flash:generateContent", model: "gemini-3.5-flash", body: search, mock: "web-searches=3", counted: "tokens, web searches", bill: plus(perToken(1_500, 9_000), llm.WebSearches, 14_000_000)},
		endpointCall{endpoint: gemini + "gemini-3.5-flash:streamGenerateContent?alt=sse", model: "gemini-3.5-flash", body: search, mock: "web-searches=2", counted: "tokens, web searches", bill: plus(perToken(1_500, 9_000), llm.WebSearches, 14_000_000)},
		endpointCall{endpoint: gemini + "gemini-3.5-flash:generateContent", model: "gemini-3.5-flash", body: `{` + ask + `,"tools":[{"googleMaps":{}}]}`, mock: "places=3", counted: "tokens, web searches (Maps)", bill: plus(perToken(1_500, 9_000), llm.WebSearches, 14_000_000)},
		endpointCall{endpoint: gemini + "gemini-2.5-flash:generateContent", model: "gemini-2.5-flash", body: `{` + ask + `,"tools":[{"googleMaps":{}}]}`, mock: "places=3", counted: "tokens, web searches (Maps)", bill: plus(perToken(300, 2_500), llm.WebSearches, 25_000_000)},
		endpointCall{
			endpoint: "POST /v1beta/interactions", model: "gemini-3.5-flash", mock: "web-searches=2", counted: "tokens, web searches", bill: plus(perToken(1_500, 9_000), llm.WebSearches, 14_000_000),
			body: `{"model":"gemini-3.5-flash","input":"what is new?","generation_config":{"max_output_tokens":50},"tools":[{"type":"google_search"}]}`,
		},
		endpointCall{endpoint: gemini + "gemini-2.5-flash-image:generateContent", model: "gemini-2.5-flash-image", body: picture, mock: "output=1300 output-image=1290", counted: "images, tokens", bill: pictured},
		endpointCall{endpoint: gemini + "imagen-4.0-generate-001:predict", model: "imagen-4.0-generate-001", body: imagen, counted: "images", bill: perUnit(llm.Images, 40_000_000)},
		endpointCall{endpoint: gemini + "veo-3.1-generate-preview:predictLongRunning", model: "veo-3.1-generate-preview", body: veo, counted: "seconds of video", bill: perUnit(llm.VideoSeconds, 400_000_000)},
		endpointCall{endpoint: "POST /v1beta/cachedContents", model: "gemini-2.5-flash", body: cache, counted: "tokens, token hours", bill: plus(perToken(300, 0), llm.TokenHours, 1_000)},
		endpointCall{endpoint: "PATCH /v1beta/cachedContents/" + storedCache, model: "gemini-2.5-flash", body: fmt.Sprintf(`{"expireTime":%q}`, cacheEnd.Add(100*time.Minute).UTC().Format(time.RFC3339)), counted: "token hours", bill: perUnit(llm.TokenHours, 1_000)},
	), of("anthropic",
		endpointCall{endpoint: "POST /v1/messages", model: "claude-opus-4-5", body: claude + `,"tools":[{"type":"web_search_20250305","name":"web_search"}]}`, mock: "web-searches=2", counted: "tokens, web searches", bill: plus(perToken(5_000, 25_000), llm.WebSearches, 10_000_000)},
		endpointCall{endpoint: "POST /v1/messages", model: "claude-opus-4-5", body: claude + `,"tools":[{"type":"code_execution_20250825","name":"code_execution"}]}`, mock: "code-runs=3", counted: "tokens, containers", bill: plus(perToken(5_000, 25_000), llm.Containers, 50_000_000)},
		endpointCall{endpoint: "POST /v1/messages (stream)", model: "claude-opus-4-5", body: claude + `,"stream":true,"tools":[{"type":"code_execution_20250825","name":"code_execution"}]}`, mock: "code-runs=1", counted: "tokens, containers", bill: plus(perToken(5_000, 25_000), llm.Containers, 50_000_000)},
		endpointCall{endpoint: "POST /v1/messages", model: "claude-opus-4-5", body: claude + `,"tools":[{"type":"code_execution_20250825","name":"code_execution"},{"type":"web_search_20260209","name":"web_search"}]}`, mock: "code-runs=1 web-searches=1", counted: "tokens, web searches", bill: plus(perToken(5_000, 25_000), llm.WebSearches, 10_000_000)},
		endpointCall{endpoint: "POST /v1/messages", model: "claude-opus-4-5", body: claude + `,"tools":[{"type":"web_fetch_20250910","name":"web_fetch"}]}`, mock: "web-fetches=2", counted: "tokens (web fetch)", bill: perToken(5_000, 25_000)},
		endpointCall{endpoint: "POST /v1/messages", model: "claude-opus-4-5", body: claude + `,"mcp_servers":[{"type":"url","url":"https://example.com/sse","name":"mcp"}]}`, counted: "tokens (MCP connector)", bill: perToken(5_000, 25_000)},
	), of("vertex",
		endpointCall{endpoint: vertex + "text-embedding-005:predict", model: "text-embedding-005", body: `{"instances":[{"content":"one and two"},{"content":"three"}]}`, counted: "tokens", bill: perToken(25, 0)},
		endpointCall{endpoint: vertex + "imagen-4.0-generate-001:predict", model: "imagen-4.0-generate-001", body: `{"instances":[{"prompt":"a cat"}]}`, counted: "images", bill: perUnit(llm.Images, 40_000_000)},
	), of("cohere",
		endpointCall{endpoint: "POST /v2/embed", model: "embed-v4.0", body: `{"model":"embed-v4.0","texts":["one","two and three"],"input_type":"search_query"}`, counted: "tokens", bill: perToken(120, 0)},
		endpointCall{endpoint: "POST /v2/rerank", model: "rerank-v3.5", body: `{"model":"rerank-v3.5","query":"two","documents":["one","two"]}`, counted: "search units", bill: perUnit(llm.SearchUnits, 2_000_000)},
	), others(), of("mistral",
		endpointCall{endpoint: "POST /v1/embeddings", model: "mistral-embed", body: `{"model":"mistral-embed","input":["one","two and three"]}`, counted: "tokens", bill: perToken(100, 0)},
		endpointCall{endpoint: "POST /v1/ocr", model: "mistral-ocr-2512", body: `{"model":"mistral-ocr-2512","document":{"type":"document_url","document_url":"https://example.com/a.pdf"}}`, counted: "pages", bill: perUnit(llm.Pages, 3_000_000)},
	))
}

// others returns calls of providers with OpenAI's API, some of which have APIs of their own beside it.
func others() []endpointCall {
	short, kind := form("model", "whisper-large-v3", "@file", sound(3))
	minute, minuteKind := form("@file", sound(60))
	named, namedKind := form("model", "whisper-1", "@file", sound(60))
	heard, heardKind := form("model", "whisper-t", "@file", sound(60))
	const rank = `,"query":"two","documents":["one","two and three"]}`
	embed := func(model string) string { return `{"model":"` + model + `","input":["one","two and three"]}` }
	return slices.Concat(of("voyageai",
		endpointCall{endpoint: "POST /v1/embeddings", model: "voyage-4", body: embed("voyage-4"), counted: "tokens", bill: perToken(60, 0)},
		endpointCall{endpoint: "POST /v1/multimodalembeddings", model: "voyage-multimodal-3", body: `{"model":"voyage-multimodal-3","inputs":[{"content":[{"type":"text","text":"a cat"}]}]}`, counted: "tokens", bill: perToken(120, 0)},
		endpointCall{endpoint: "POST /v1/rerank", model: "rerank-2.5", body: `{"model":"rerank-2.5"` + rank, counted: "tokens", bill: perToken(50, 0)},
	), of("jina",
		endpointCall{endpoint: "POST /v1/embeddings", model: "jina-t", body: embed("jina-t"), counted: "tokens", bill: perToken(50, 0)},
		endpointCall{endpoint: "POST /v1/rerank", model: "jina-t", body: `{"model":"jina-t"` + rank, counted: "tokens", bill: perToken(50, 0)},
	), of("azure",
		endpointCall{endpoint: "POST /openai/deployments/text-embedding-3-small/embeddings?api-version=2024-10-21", model: "text-embedding-3-small", body: `{"input":["one","two and three"]}`, counted: "tokens", bill: perToken(20, 0)},
		endpointCall{endpoint: "POST /openai/deployments/dall-e-3/images/generations?api-version=2024-10-21", model: "dall-e-3", body: `{"prompt":"a cat","quality":"hd"}`, counted: "images", bill: perUnit(llm.Images, 80_000_000)},
		endpointCall{endpoint: "POST /openai/deployments/tts-1/audio/speech?api-version=2025-03-01-preview", model: "tts-1", body: `{"input":"Hello, you","voice":"alloy"}`, counted: "characters", bill: perUnit(llm.Characters, 15_000)},
		endpointCall{endpoint: "POST /openai/deployments/whisper-1/audio/transcriptions?api-version=v1", model: "whisper-1", body: minute, kind: minuteKind, counted: "seconds of audio", bill: perUnit(llm.AudioSeconds, 100_000)},
		endpointCall{endpoint: "POST /openai/deployments/whisper-1/audio/translations?api-version=v1", model: "whisper-1", body: minute, kind: minuteKind, counted: "seconds of audio", bill: perUnit(llm.AudioSeconds, 100_000)},
		endpointCall{endpoint: "POST /openai/v1/audio/speech", model: "tts-1", body: `{"model":"tts-1","input":"Hello, you","voice":"alloy"}`, counted: "characters", bill: perUnit(llm.Characters, 15_000)},
		endpointCall{endpoint: "POST /openai/v1/audio/transcriptions", model: "whisper-1", body: named, kind: namedKind, counted: "seconds of audio", bill: perUnit(llm.AudioSeconds, 100_000)},
		endpointCall{endpoint: "POST /openai/v1/audio/translations", model: "whisper-1", body: named, kind: namedKind, counted: "seconds of audio", bill: perUnit(llm.AudioSeconds, 100_000)},
	), of("ollama",
		endpointCall{endpoint: "POST /api/embed", model: "embed-t", body: embed("embed-t"), counted: "tokens", bill: perToken(8, 0)},
	), of("vllm",
		endpointCall{endpoint: "POST /v1/embeddings", model: "embed-t", body: embed("embed-t"), counted: "tokens", bill: perToken(8, 0)},
		endpointCall{endpoint: "POST /v1/rerank", model: "rank-t", body: `{"model":"rank-t"` + rank, counted: "tokens", bill: perToken(100, 0)},
	), of("bedrock",
		endpointCall{endpoint: "POST /model/amazon.titan-embed-text-v1/invoke", model: "amazon.titan-embed-text-v1", body: `{"inputText":"one and two"}`, counted: "tokens", bill: perToken(100, 0)},
		endpointCall{endpoint: "POST /model/amazon.titan-embed-text-v2:0/invoke", model: "amazon.titan-embed-text-v2:0", body: `{"inputText":"one and two"}`, counted: "tokens", bill: perToken(20, 0)},
		endpointCall{
			endpoint: "POST /model/amazon.nova-canvas-v1:0/invoke", model: "amazon.nova-canvas-v1:0", counted: "images", bill: perUnit(llm.Images, 60_000_000),
			body: `{"taskType":"TEXT_IMAGE","textToImageParams":{"text":"a cat"},"imageGenerationConfig":{"numberOfImages":3,"quality":"premium","width":1024,"height":1024}}`,
		},
		endpointCall{endpoint: "POST /model/amazon.titan-image-generator-v2:0/invoke", model: "amazon.titan-image-generator-v2:0", body: `{"taskType":"TEXT_IMAGE","textToImageParams":{"text":"a cat"}}`, counted: "images", bill: perUnit(llm.Images, 10_000_000)},
		endpointCall{endpoint: "POST /model/stability.sd3-5-large-v1:0/invoke", model: "stability.sd3-5-large-v1:0", body: `{"prompt":"a cat","mode":"text-to-image","output_format":"png"}`, counted: "images", bill: perUnit(llm.Images, 80_000_000)},
		endpointCall{endpoint: "POST /model/cohere.rerank-v3-5:0/invoke", model: "cohere.rerank-v3-5:0", body: `{"api_version":2` + rank, counted: "search units", bill: perUnit(llm.SearchUnits, 2_000_000)},
		endpointCall{endpoint: "POST /model/amazon.rerank-v1:0/invoke", model: "amazon.rerank-v1:0", body: `{"top_n":1` + rank, counted: "search units", bill: perUnit(llm.SearchUnits, 1_000_000)},
	), of("groq",
		endpointCall{endpoint: "POST /openai/v1/audio/transcriptions", model: "whisper-large-v3", body: short, kind: kind, counted: "seconds of audio, 10 at least", bill: func(t mockprovider.Totals) int64 { return (t.Units[llm.AudioSeconds]*1_850_000 + 59) / 60 }},
	), of("together",
		endpointCall{endpoint: "POST /v1/images/generations", model: "flux-t", body: `{"model":"flux-t","prompt":"a cat","n":2,"steps":4}`, counted: "images", bill: perUnit(llm.Images, 40_000_000)},
		endpointCall{endpoint: "POST /v1/audio/speech", model: "tts-t", body: `{"model":"tts-t","input":"Hello, you","voice":"a"}`, counted: "characters", bill: perUnit(llm.Characters, 65_000)},
		endpointCall{endpoint: "POST /v1/audio/transcriptions", model: "whisper-t", body: heard, kind: heardKind, counted: "seconds of audio", bill: perUnit(llm.AudioSeconds, 25_000)},
		endpointCall{endpoint: "POST /v1/rerank", model: "rank-t", body: `{"model":"rank-t"` + rank, counted: "tokens", bill: perToken(100, 0)},
	), of("fireworks",
		endpointCall{endpoint: "POST /inference/v1/embeddings", model: "embed-t", body: embed("embed-t"), counted: "tokens", bill: perToken(8, 0)},
		endpointCall{endpoint: "POST /inference/v1/rerank", model: "rank-t", body: `{"model":"rank-t"` + rank, counted: "tokens", bill: perToken(100, 0)},
	))
}

// endpointCalls returns a call of each endpoint of OpenAI's that is read and costs something beside text, and of those
// that cost nothing.
func endpointCalls() []endpointCall {
	transcription, transcriptionKind := form("model", "whisper-1", "@file", sound(90))
	tokens, tokensKind := form("model", "gpt-4o-transcribe", "response_format", "json", "@file", sound(90))
	streamed, streamedKind := form("model", "gpt-4o-transcribe", "stream", "true", "@file", sound(30))
	translation, translationKind := form("@file", sound(7), "model", "whisper-1")
	edit, editKind := form("model", "gpt-image-t", "prompt", "a cat", "n", "2", "@image[]", "png", "@image[]", "png")
	variation, variationKind := form("model", "dall-e-2", "n", "3", "size", "512x512", "@image", "png")
	video, videoKind := form("model", "sora-2", "prompt", "a cat", "seconds", "4", "@input_reference", "png")
	extension, extensionKind := form("prompt", "a dog", "seconds", "12", "video[id]", storedVideo)
	const images = "POST /v1/images/generations"
	rows := []struct {
		endpoint, model, body, kind, counted string
		bill                                 func(mockprovider.Totals) int64
	}{
		{images, "dall-e-3", `{"model":"dall-e-3","prompt":"a cat","n":2,"quality":"hd"}`, "", "images", perUnit(llm.Images, 80_000_000)},
		{images, "gpt-image-t", `{"model":"gpt-image-t","prompt":"a cat","n":2,"size":"1024x1536"}`, "", "images, tokens", perToken(5_000, 40_000)},
		{images + " (stream)", "gpt-image-t", `{"model":"gpt-image-t","prompt":"a cat","stream":true,"partial_images":1}`, "", "images, tokens", perToken(5_000, 40_000)},
		{"POST /v1/images/edits", "gpt-image-t", edit, editKind, "images, tokens", func(t mockprovider.Totals) int64 {
			pictures := int64(2 * 272)
			return (int64(t.Input)-pictures)*5_000 + pictures*10_000 + int64(t.Output)*40_000
		}},
		{"POST /v1/images/variations", "dall-e-2", variation, variationKind, "images", perUnit(llm.Images, 18_000_000)},
		{"POST /v1/audio/speech", "tts-1", `{"model":"tts-1","input":"Grüße, \u00e9 \"you\"","voice":"alloy"}`, "", "characters", perUnit(llm.Characters, 15_000)},
		{"POST /v1/audio/speech (stream)", "gpt-tts-t", `{"model":"gpt-tts-t","input":"Hello, you","stream_format":"sse","voice":"alloy"}`, "", "characters, tokens", perToken(600, 12_000)},
		{"POST /v1/audio/transcriptions", "whisper-1", transcription, transcriptionKind, "seconds of audio", perUnit(llm.AudioSeconds, 100_000)},
		{"POST /v1/audio/transcriptions", "gpt-4o-transcribe", tokens, tokensKind, "seconds of audio, tokens", perToken(6_000, 10_000)},
		{"POST /v1/audio/transcriptions (stream)", "gpt-4o-transcribe", streamed, streamedKind, "seconds of audio, tokens", perToken(6_000, 10_000)},
		{"POST /v1/audio/translations", "whisper-1", translation, translationKind, "seconds of audio", perUnit(llm.AudioSeconds, 100_000)},
		{"POST /v1/embeddings", "text-embedding-3-small", `{"model":"text-embedding-3-small","input":["one","two and three"]}`, "", "tokens", perToken(20, 0)},
		{"POST /v1/chat/completions", "gpt-4o", `{"model":"gpt-4o","max_tokens":50,"messages":[{"role":"user","content":"hello"}]}`, "", "tokens", perToken(2_500, 10_000)},
		{"POST /v1/chat/completions", "gpt-4o-search-preview", `{"model":"gpt-4o-search-preview","max_tokens":50,"web_search_options":{},"messages":[{"role":"user","content":"news?"}]}`, "", "tokens, web searches", plus(perToken(2_500, 10_000), llm.WebSearches, 25_000_000)},
		{"POST /v1/videos", "sora-2-pro", `{"model":"sora-2-pro","prompt":"a cat","seconds":"8","size":"1280x720"}`, "", "seconds of video", perUnit(llm.VideoSeconds, 300_000_000)},
		{"POST /v1/videos", "sora-2", video, videoKind, "seconds of video", perUnit(llm.VideoSeconds, 100_000_000)},
	}
	var calls []endpointCall
	for _, r := range rows {
		calls = append(calls, endpointCall{endpoint: r.endpoint, model: r.model, body: r.body, kind: r.kind, counted: r.counted, bill: r.bill})
	}
	draw := `{"model":"gpt-5.4","input":"a cat","max_output_tokens":50,"tools":[{"type":"image_generation","quality":"high"}]`
	drawn := plus(perToken(2_500, 15_000), llm.Images, 20*5_000+500*30_000) // by gpt-image-2
	calls = append(calls,
		endpointCall{endpoint: "POST /v1/responses", model: "gpt-5.4", counted: "tokens, images of `gpt-image-2`", bill: drawn, mock: "images=2", body: draw + `}`},
		endpointCall{endpoint: "POST /v1/responses (stream)", model: "gpt-5.4", counted: "tokens, images of `gpt-image-2`", bill: drawn, mock: "images=1", body: draw + `,"stream":true}`},
		endpointCall{
			endpoint: "POST /v1/responses", model: "gpt-5.4", counted: "tokens, web searches", bill: plus(perToken(2_500, 15_000), llm.WebSearches, 10_000_000), mock: "web-searches=2",
			body: `{"model":"gpt-5.4","input":"news?","max_output_tokens":50,"tools":[{"type":"web_search"}]}`,
		})
	stored := `{"model":"gpt-5.4","prompt":{"id":"pmpt_1"},"input":"a cat","max_output_tokens":50}`
	calls = append(calls,
		endpointCall{endpoint: "POST /v1/responses", model: "gpt-5.4", counted: "tokens, images of a stored prompt", bill: drawn, mock: "images=2", body: stored},
		endpointCall{endpoint: "POST /v1/responses", model: "gpt-5.4", counted: "tokens, searches and containers of a stored prompt", mock: "code-runs=3 web-searches=2 file-searches=1", body: stored, bill: func(t mockprovider.Totals) int64 {
			return perToken(2_500, 15_000)(t) + t.Units[llm.Containers]*30_000_000 + t.Units[llm.WebSearches]*10_000_000 + t.Units[llm.FileSearches]*2_500_000
		}},
		endpointCall{
			endpoint: "POST /v1/responses", model: "gpt-5.4", counted: "tokens, images of `gpt-image-2`", bill: drawn, mock: "images=1",
			body: strings.Replace(draw, `"quality"`, `"model":null,"quality"`, 1) + `}`,
		})
	tool := func(model, kind string) string {
		return `{"model":"` + model + `","input":"what is there?","max_output_tokens":50,"tools":[{"type":"` + kind + `"}]}`
	}
	search := strings.Replace(tool("gpt-5.4", "file_search"), `"file_search"`, `"file_search","vector_store_ids":["STORE"]`, 1)
	calls = append(calls,
		endpointCall{endpoint: "POST /v1/responses", model: "gpt-5.4", counted: "tokens, file searches", bill: plus(perToken(2_500, 15_000), llm.FileSearches, 2_500_000), mock: "file-searches=3", body: search},
		endpointCall{endpoint: "POST /v1/responses (stream)", model: "gpt-5.4", counted: "tokens, file searches", bill: plus(perToken(2_500, 15_000), llm.FileSearches, 2_500_000), mock: "file-searches=2", body: strings.Replace(search, "{", `{"stream":true,`, 1)},
		endpointCall{endpoint: "POST /v1/responses", model: "computer-use-preview", counted: "tokens (computer use)", bill: perToken(3_000, 12_000), body: tool("computer-use-preview", "computer_use_preview")},
	)
	code := `{"model":"gpt-5.4","input":"compute","max_output_tokens":50,"tools":[`
	calls = append(calls,
		endpointCall{
			endpoint: "POST /v1/responses", model: "gpt-5.4", counted: "tokens, a container of 4 GB", bill: plus(perToken(2_500, 15_000), llm.Containers, 30_000_000), mock: "code-runs=3",
			body: code + `{"type":"code_interpreter","container":{"type":"auto","memory_limit":"4g"}}]}`,
		},
		endpointCall{
			endpoint: "POST /v1/responses", model: "gpt-5.4", counted: "tokens, containers (shell)", bill: plus(perToken(2_500, 15_000), llm.Containers, 30_000_000), mock: "code-runs=2",
			body: code + `{"type":"shell","environment":{"type":"container_auto"}}]}`,
		},
		endpointCall{endpoint: "POST /v1/containers", model: "container", counted: "containers", bill: perUnit(llm.Containers, 30_000_000), body: `{"name":"mine","memory_limit":"16g"}`},
		endpointCall{endpoint: "POST /v1/videos/" + storedVideo + "/remix", model: "sora-2-pro", counted: "seconds of video", bill: perUnit(llm.VideoSeconds, 300_000_000), body: `{"prompt":"a dog"}`},
		endpointCall{endpoint: "POST /v1/videos/edits", model: "sora-2-pro", counted: "seconds of video", bill: perUnit(llm.VideoSeconds, 300_000_000), body: `{"prompt":"a dog","seconds":"4","video":{"id":"` + storedVideo + `"}}`},
		endpointCall{endpoint: "POST /v1/videos/extensions", model: "sora-2-pro", counted: "seconds of video", bill: perUnit(llm.VideoSeconds, 300_000_000), body: extension, kind: extensionKind},
		endpointCall{
			endpoint: "POST /v1/fine_tuning/jobs", model: "gpt-4o-mini-2024-07-18", counted: "trained tokens", bill: perUnit(llm.TrainedTokens, 3_000), file: trainingFile,
			body: `{"model":"gpt-4o-mini-2024-07-18","training_file":"FILE"` + threeEpochs + `}`,
		},
		endpointCall{endpoint: "POST /v1/vector_stores", model: "vector_store", counted: "byte days", bill: storageBill, file: trainingFile, body: `{"file_ids":["FILE"],` + sevenDays + `}`},
		endpointCall{endpoint: "POST /v1/vector_stores/STORE/files", model: "vector_store", counted: "byte days", bill: storageBill, file: trainingFile, body: `{"file_id":"FILE"}`},
		endpointCall{endpoint: "POST /v1/vector_stores/STORE/file_batches", model: "vector_store", counted: "byte days", bill: storageBill, file: trainingFile, body: `{"file_ids":["FILE","FILE"]}`},
	)
	return append(calls, endpointCall{
		endpoint: "POST /v1/responses", model: "gpt-5.4", counted: "tokens, containers", bill: plus(perToken(2_500, 15_000), llm.Containers, 30_000_000), mock: "code-runs=3",
		body: code + `{"type":"code_interpreter","container":{"type":"auto"}}]}`,
	})
}

// searchingBatch submits a batch of two calls, of which each may search once.
var searchingBatch = func() endpointCall {
	const call = `{"custom_id":"ID","params":{"model":"claude-opus-4-5","max_tokens":50,"messages":[{"role":"user","content":"what is new?"}],"tools":[{"type":"web_search_20250305","name":"web_search","max_uses":1}]}}`
	body := `{"requests":[` + strings.Replace(call, "ID", "a", 1) + "," + strings.Replace(call, "ID", "b", 1) + `]}`
	return endpointCall{endpoint: "POST /v1/messages/batches", model: "claude-opus-4-5", provider: "anthropic", body: body}
}()

// send sends the call through the gateway.
func (c *endpointCall) send(t testing.TB, r *rig, project string) answer {
	kind := c.kind
	if kind == "" {
		kind = "application/json"
	}
	method, path, _ := strings.Cut(c.endpoint, " ")
	path, _, _ = strings.Cut(path, " ")
	path = "/" + cmp.Or(c.provider, "openai") + path
	body := c.body
	if c.file != "" {
		body = strings.ReplaceAll(body, "FILE", r.uploadFile(t, c.file, "fine-tune"))
	}
	if strings.Contains(path+body, "STORE") {
		id := r.newStore(t)
		path, body = strings.ReplaceAll(path, "STORE", id), strings.ReplaceAll(body, "STORE", id)
	}
	a := r.do(t, method, path, body, "Content-Type", kind, "X-Project-ID", project, "X-Mock", c.mock)
	if c.file != "" && a.status == http.StatusOK {
		for range 2 {
			where := path + "/" + field(t, a, "id")
			if strings.HasSuffix(path, "/file_batches") {
				where += "/files"
			}
			r.do(t, "GET", where, "", "X-Project-ID", project)
		}
	}
	return a
}

// With a budget in dollars every endpoint that is read passes, and the books have what the provider bills, to the
// nanodollar. The table of endpoints in the documents is written by this test.
func TestEveryEndpointIsBilledExactly(t *testing.T) {
	table := new(strings.Builder)
	for _, c := range append(endpointCalls(), otherCalls()...) {
		r := newRig(t, mediaRig, mockprovider.Config{})
		if a := c.send(t, r, "acme"); a.status != http.StatusOK {
			t.Errorf("%s of %s: %d %.300s", c.endpoint, c.model, a.status, a.body)
			continue
		}
		total := r.provider.Totals()[c.model]
		got := r.usage(t, books.Query{Project: "acme"}).Total
		want := books.Amounts{books.Requests: 1, books.Input: int64(total.Input), books.Output: int64(total.Output), books.Nanodollars: c.bill(total)}
		copy(want[books.Beside:], total.Units[:])
		if got != want || int64(spentOf(t, r, "acme")) != want[books.Nanodollars] || want[books.Nanodollars] == 0 {
			t.Errorf("%s of %s:\n%v is booked, %v is spent; want\n%v", c.endpoint, c.model, got, spentOf(t, r, "acme"), want)
		}
		fmt.Fprintf(table, "| %s | `%s` | `%s` | %s | yes |\n", cmp.Or(c.provider, "openai"), inTable(regexp.MustCompile(regexp.QuoteMeta(c.model)+`\b`).ReplaceAllString(c.endpoint, "MODEL")), c.model, c.counted)
	}
	for _, other := range []struct {
		provider string
		free     bool
		list     []string
	}{
		{"openai", true, []string{"POST /v1/moderations", "POST /v1/responses/input_tokens", "POST /v1/files", "GET /v1/models", "GET /v1/videos/video_1", "POST /v1/vector_stores/vs_1/file_batches/b/cancel", "DELETE /v1/vector_stores/vs_1", "POST /v1/vector_stores/vs_1/search (of a store that was active today, or has no end)"}},
		{"gemini", true, []string{"POST /v1beta/models/gemini-2.5-flash:countTokens", "GET /v1beta/models/veo-3.1-generate-preview/operations/o"}},
		{"vertex", true, []string{"POST /v1/projects/p/locations/l/publishers/google/models/veo-3.1-generate-001:fetchPredictOperation"}},
		{"anthropic", true, []string{"POST /v1/messages/count_tokens", "POST /v1/files", "POST /v1/messages/batches/b/cancel"}},
		{"gemini", true, []string{"POST /v1beta/batches/b:cancel"}},
		{"openai", false, []string{"POST /v1/videos/edits (of a video in the form)", "POST /v1/vector_stores/vs_1 (of another end)"}},
		{"gemini", false, []string{"POST /v1beta/models/gemini-e:asyncBatchEmbedContent"}},
		{"vertex", false, []string{"POST /v1/projects/p/locations/l/batchPredictionJobs"}},
		{"bedrock", false, []string{"POST /rerank (of the agent runtime)", "POST /async-invoke"}},
		{"jina", false, []string{"POST /v1/classify"}},
		{"fireworks", false, []string{"POST /inference/v1/workflows/m/text_to_image"}},
	} {
		for _, endpoint := range other.list {
			r := newRigBefore(t, mediaRig, newSeen())
			method, path, _ := strings.Cut(endpoint, " ")
			path, _, _ = strings.Cut(path, " ")
			body := "{}"
			if strings.Contains(endpoint, "(of another end)") {
				body = `{"expires_after":null}`
			}
			a := r.do(t, method, "/"+other.provider+path, body, "X-Project-ID", "acme")
			status, what := http.StatusForbidden, "with a price in `endpoint_prices`"
			if other.free {
				status, what = http.StatusOK, "free"
			} else if !strings.Contains(a.body, "endpoint_prices") {
				t.Errorf("%s: the refusal does not name the setting: %s", endpoint, a.body)
			}
			if a.status != status || spentOf(t, r, "acme") != 0 {
				t.Errorf("%s: %d %s, and %v is spent", endpoint, a.status, a.body, spentOf(t, r, "acme"))
			}
			fmt.Fprintf(table, "| %s | `%s` | | requests | %s |\n", other.provider, inTable(endpoint), what)
		}
	}
	checkEndpointsPage(t, table.String())
}

// storedVideo is the id of a video of eight seconds that the mock has.
var storedVideo = fmt.Sprintf("video_%x_1", "sora-2-pro 8 1280x720")

// storedCache is the name of a cache of ten tokens that the mock keeps until cacheEnd.
var (
	cacheEnd    = time.Now().Add(time.Hour).Truncate(time.Second)
	storedCache = fmt.Sprintf("%x-1", fmt.Sprint("gemini-2.5-flash 10 ", cacheEnd.Unix()))
)

// inTable returns an endpoint without the folders of Vertex's paths, so that lines of the table are not too long.
func inTable(endpoint string) string {
	return strings.NewReplacer("/v1/projects/p/locations/l/publishers/google", "…", storedVideo, "video_1", storedCache, "ID").Replace(endpoint)
}

// stateStores are the names of the stores.
var stateStores = []string{"memory", "SQLite", "Redis"}

// stateLines returns the line of a configuration for each of the stores.
func stateLines(t *testing.T) []string {
	return []string{"", "state: " + filepath.Join(t.TempDir(), "state.db") + "\n", "state: " + redistest.New(t).PatientURL() + "\n"}
}

// However many calls of an endpoint come at once, a budget for ten of them lets no more pass, on every store: in a short
// run each limit has one of the stores.
func TestMediaAtOnce(t *testing.T) {
	transcription, kind := form("model", "whisper-1", "@file", sound(6))
	all := map[string]endpointCall{}
	for _, c := range append(endpointCalls(), otherCalls()...) {
		all[c.endpoint+" "+c.model] = c
	}
	type row struct {
		limit string // for ten calls
		call  endpointCall
		most  int // calls that may pass; 0: ten pass, and -1: as many as there is room for, since each gives back what it has not used
	}
	rows := map[string]row{
		"images":     {"dollars: 0.40", endpointCall{endpoint: "POST /v1/images/generations", body: `{"model":"dall-e-3","prompt":"a cat"}`}, 0},
		"audio":      {"dollars: 0.006", endpointCall{endpoint: "POST /v1/audio/transcriptions", body: transcription, kind: kind}, 0},
		"few":        {"images_per_day: 10", endpointCall{endpoint: "POST /v1/images/generations", body: `{"model":"dall-e-2","prompt":"a cat"}`}, 0},
		"pictures":   {"dollars: 0.80", all["POST /v1beta/models/imagen-4.0-generate-001:predict imagen-4.0-generate-001"], 0},
		"veo":        {"dollars: 24", all["POST /v1beta/models/veo-3.1-generate-preview:predictLongRunning veo-3.1-generate-preview"], 0},
		"ranks":      {"dollars: 0.02", all["POST /v2/rerank rerank-v3.5"], 0},
		"embeddings": {"requests_per_day: 20", all["POST /v1beta/models/gemini-embedding-001:batchEmbedContents gemini-embedding-001"], 0}, // two requests each
		"sora":       {"dollars: 24", all["POST /v1/videos sora-2-pro"], 0},
		"pages":      {"pages_per_day: 10", endpointCall{endpoint: "POST /v1/ocr", provider: "mistral", body: `{"model":"mistral-ocr-2512","pages":[0],"document":{"type":"document_url","document_url":"https://example.com/a.pdf"}}`}, 10},
		"searches":   {"web_searches_per_day: 10", all["POST /v1/chat/completions gpt-4o-search-preview"], 0},
		"runs":       {"containers_per_day: 10", all["POST /v1/responses gpt-5.4"], 0},
		"grounded":   {"web_searches_per_day: 20", all["POST /v1beta/interactions gemini-3.5-flash"], 10},
		"code":       {"containers_per_day: 10", endpointCall{endpoint: "POST /v1/messages", provider: "anthropic", mock: "code-runs=1", body: `{"model":"claude-opus-4-5","max_tokens":9,"messages":[],"tools":[{"type":"code_execution_20250825"}]}`}, 0},
		"drawn":      {"images_per_day: 10", endpointCall{endpoint: "POST /v1/responses", mock: "images=1", body: `{"model":"gpt-5.4","input":"a cat","max_tool_calls":1,"tools":[{"type":"image_generation"}]}`}, 0},
		"drawings":   {"dollars: 60", all["POST /v1/responses (stream) gpt-5.4"], -1},
		"heard":      {"audio_seconds_per_day: 100", all["POST /openai/v1/audio/transcriptions whisper-large-v3"], 0},
		"spoken":     {"dollars: 0.0065", all["POST /v1/audio/speech tts-t"], 0},
		"batches":    {"web_searches_per_day: 20", searchingBatch, 0},  // two calls each
		"batched":    {"dollars: 21, max_wait: 0s", searchingBatch, 0}, // what is found may fill the context window: $2.03 each. Open batches keep what they have reserved, so nobody waits for it
		"caches":     {"token_hours_per_day: 500", all["POST /v1beta/cachedContents gemini-2.5-flash"], -1},
	}
	limits := ""
	for project, r := range rows {
		limits += project + ": {" + r.limit + "}, "
	}
	first := rand.IntN(3)
	for k, state := range stateLines(t) {
		r := newRig(t, state+strings.Replace(mediaRig, "acme: {dollars: 1000}", limits, 1), mockprovider.Config{})
		for i, project := range slices.Sorted(maps.Keys(rows)) {
			if row := rows[project]; !testing.Short() || (i+first)%3 == k {
				atOnce(t, r, stateStores[k], project, &row.call, row.most)
			}
		}
	}
}

// The same holds for every endpoint with a budget for ten of its calls, on every store: in a short run each endpoint has
// one of the stores. A call that reserves more than ten cost never passes.
func TestEveryEndpointAtOnce(t *testing.T) {
	calls := append(append(endpointCalls(), otherCalls()...), searchingBatch)
	limits := func(of func(i int) string) (text string) {
		for i := range calls {
			text += fmt.Sprintf("p%d: {%s}, ", i, of(i))
		}
		return strings.Replace(mediaRig, "acme: {dollars: 1000}", text, 1)
	}
	rich := newRig(t, limits(func(int) string { return "dollars: 1000" }), mockprovider.Config{})
	budgets := make([]string, len(calls))
	for i := range calls {
		project := fmt.Sprintf("p%d", i)
		calls[i].send(t, rich, project)
		budgets[i] = "max_wait: 0s, dollars: " + (10 * spentOf(t, rich, project)).Decimal()
	}
	first := rand.IntN(3)
	for k, state := range stateLines(t) {
		r := newRig(t, state+limits(func(i int) string { return budgets[i] }), mockprovider.Config{})
		for i := range calls {
			if !testing.Short() || (i+first)%3 == k {
				fewPass(t, r, &calls[i], fmt.Sprintf("p%d", i), k == 2)
			}
		}
	}
}

// fewPass sends 300 calls, or 15 in a short run, of a project at once, of which at most ten pass, and none beyond the
// limit.
func fewPass(t *testing.T, r *rig, c *endpointCall, project string, onRedis bool) {
	t.Helper()
	var passed atomic.Int64
	var all sync.WaitGroup
	for range testkit.Rounds(15, 300) {
		all.Go(func() {
			switch a := c.send(t, r, project); {
			case a.status == http.StatusOK:
				passed.Add(1)
			case a.status == http.StatusServiceUnavailable && onRedis: // it has not answered in time, because the machine is busy
			case a.status == http.StatusServiceUnavailable && c.file != "": // two files of a project are read at a time
			case a.status != http.StatusPaymentRequired && a.status != http.StatusTooManyRequests && !strings.Contains(a.body, "may cost up to"):
				t.Errorf("%s of %s: %d %.300s", c.endpoint, c.model, a.status, a.body)
			}
		})
	}
	all.Wait()
	r.settled(t)
	testkit.Eventually(t, "the store answers", func() bool {
		d, err := r.Projects().Peek(t.Context(), project)
		if err == nil && (passed.Load() > 10 || d.Windows()[0].Used > d.Windows()[0].Window.Count) {
			t.Errorf("%s of %s: %d have passed, and %+v is left", c.endpoint, c.model, passed.Load(), d.Windows())
		}
		return err == nil
	})
}

// atOnce sends 300 calls of a project at once, or 50 in a short run, whose limit is enough for ten. It fails if more than
// most of them pass.
func atOnce(t *testing.T, r *rig, store, project string, c *endpointCall, most int) {
	t.Helper()
	var passed, lost atomic.Int64
	var all sync.WaitGroup
	for range testkit.Rounds(50, 300) {
		all.Go(func() {
			switch a := c.send(t, r, project); a.status {
			case http.StatusOK:
				passed.Add(1)
			case http.StatusPaymentRequired, http.StatusTooManyRequests:
			case http.StatusServiceUnavailable: // Redis has not answered in time, because the machine is busy
				lost.Add(1)
			default:
				t.Errorf("%s, %s: %d %s", store, project, a.status, a.body)
			}
		})
	}
	all.Wait()
	r.settled(t)
	testkit.Eventually(t, "the store answers", func() bool {
		d, err := r.Projects().Peek(t.Context(), project)
		if err == nil && d.Windows()[0].Remaining < 0 {
			t.Errorf("%s, %s: %+v", store, project, d.Windows())
		}
		return err == nil
	})
	n := passed.Load()
	wrong := most == 0 && (n > 10 || n < 10 && lost.Load() == 0) || most > 0 && n > int64(most) || n == 0 && lost.Load() == 0
	if wrong || lost.Load() > 0 && store != "Redis" {
		t.Errorf("%s: %d of %s have passed and %d were not decided, want 10 and 0", store, n, project, lost.Load())
	}
}

// A form is sent as it is, so it must name its model and no alias; and what names no model that the project may call is
// refused.
func TestFormsAreNotChanged(t *testing.T) {
	r := newRig(t, "providers: {openai: {base_url: MOCK, models: {dall-e-2: {max_rpm: 9, aliases: [best]}}}}\nprojects: {p: {models: [dall-e-2]}}\n", mockprovider.Config{})
	for model, want := range map[string]int{"dall-e-2": 200, "best": 400, "dall-e-3": 403} {
		body, kind := form("model", model, "prompt", "a cat", "@image", "png")
		if a := r.post(t, "/openai/v1/images/edits", body, "Content-Type", kind, "X-Project-ID", "p"); a.status != want {
			t.Errorf("%s: %d %s", model, a.status, a.body)
		}
	}
	if n := len(r.provider.Totals()); n != 1 {
		t.Errorf("%d models were called: %v", n, r.provider.Totals())
	}
}

// The refusal of a call that is denied because of what it uses beside tokens says how much that is.
func TestUnitsOfADeniedCall(t *testing.T) {
	r := newRig(t, strings.Replace(mediaRig, "acme: {dollars: 1000}", "p: {images_per_day: 2}", 1), mockprovider.Config{})
	a := r.post(t, "/openai/v1/images/generations", `{"model":"dall-e-2","prompt":"a cat","n":3}`, "X-Project-ID", "p")
	if want := `may use 2 images a day, and this call needs 3: it can never pass`; a.status != http.StatusBadRequest || !strings.Contains(a.body, want) {
		t.Errorf("%d %s, want %s", a.status, a.body, want)
	}
}

// An alias of a model of Bedrock's that makes images is charged what the model costs, and no more than a budget has passes.
func TestAliasOfAnImageModel(t *testing.T) {
	r := newRig(t, `
providers: {bedrock: {kind: bedrock, base_url: MOCK, models: {"amazon.nova-canvas-v1:0": {max_rpm: 9, aliases: [painter]}}}}
prices: {"amazon.nova-canvas-v1:0": {image: 0.06}}
projects: {acme: {dollars: 0.20, max_wait: 0s}}
`, mockprovider.Config{})
	for _, status := range []int{http.StatusOK, http.StatusPaymentRequired} {
		a := r.post(t, "/bedrock/model/painter/invoke", `{"taskType":"TEXT_IMAGE","imageGenerationConfig":{"numberOfImages":2}}`, "X-Project-ID", "acme")
		if got := spentOf(t, r, "acme"); a.status != status || got != 12*price.Dollar/100 {
			t.Errorf("%d %.300s, and %v is spent; want %d", a.status, a.body, got, status)
		}
	}
}
