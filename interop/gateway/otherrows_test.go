package gateway_test

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	cohere "github.com/cohere-ai/cohere-go/v2"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/llm"
)

// compatibleSDK returns OpenAI's SDK for Go, which calls a provider with OpenAI's API through the gateway.
func (r *rig) compatibleSDK(provider string) openai.Client {
	return r.openAISDK("", option.WithBaseURL(r.url+"/"+provider+"/v1"))
}

// embeds returns a row in which OpenAI's SDK has a provider embed two texts, at a price for each token.
func embeds(provider, model string, each int64) sdkRow {
	return sdkRow{model, func(t *testing.T, r *rig) error {
		client := r.compatibleSDK(provider)
		a, err := client.Embeddings.New(t.Context(), openai.EmbeddingNewParams{Model: model, Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"one", "two and three"}}})
		if err == nil && len(a.Data) != 2 {
			t.Errorf("the SDK sees %d embeddings", len(a.Data))
		}
		return err
	}, perToken(each, 0, 0, 0)}
}

// transcribes returns a row in which OpenAI's SDK has a provider transcribe five seconds.
func transcribes(provider, model string, bill func(mockprovider.Totals) int64) sdkRow {
	return sdkRow{model, func(t *testing.T, r *rig) error {
		client := r.compatibleSDK(provider)
		_, err := client.Audio.Transcriptions.New(t.Context(), openai.AudioTranscriptionNewParams{Model: model, File: openai.File(wav(), "five.wav", "audio/wav")})
		return err
	}, bill}
}

// speaks returns a row in which OpenAI's SDK has a provider speak, at a price for each character.
func speaks(provider, model string, each int64) sdkRow {
	return sdkRow{model, func(t *testing.T, r *rig) error {
		client := r.compatibleSDK(provider)
		a, err := client.Audio.Speech.New(t.Context(), openai.AudioSpeechNewParams{Model: model, Input: "Hello, you", Voice: openai.AudioSpeechNewParamsVoiceUnion{OfString: openai.String("a")}})
		if err == nil {
			a.Body.Close()
		}
		return err
	}, perToken(0, 0, llm.Characters, each)}
}

// invokes returns a row in which Amazon's SDK sends a body to one of Bedrock's models.
func invokes(model, body string, bill func(mockprovider.Totals) int64) sdkRow {
	return sdkRow{model, func(t *testing.T, r *rig) error {
		_, err := r.bedrockSDK(t).InvokeModel(t.Context(), &bedrockruntime.InvokeModelInput{ModelId: &model, Body: []byte(body)})
		return err
	}, bill}
}

// fromNode returns a row in which a script of Node.js makes a call.
func fromNode(script, call, base, model string, bill func(mockprovider.Totals) int64) sdkRow {
	return sdkRow{model, func(t *testing.T, r *rig) error {
		if a := nodes[script].do(t, ask{Call: call, Base: r.url + base, Key: r.key, Model: model}); a.Error != nil {
			return errors.New(a.Error.Message)
		}
		return nil
	}, bill}
}

// otherRows are those of other providers, by their own SDKs or, where they have OpenAI's API, by OpenAI's.
var otherRows = map[string]sdkRow{
	"Azure embeds":                      fromNode("openai", "azure-embeddings", "/azure", "text-embedding-3-small", perToken(20, 0, 0, 0)),
	"Azure draws":                       fromNode("openai", "azure-images", "/azure", "dall-e-3", perToken(0, 0, llm.Images, 80_000_000)),
	"Mistral embeds":                    fromNode("mistral", "embeddings", "/mistral/v1", "mistral-embed", perToken(100, 0, 0, 0)),
	"Mistral reads pages":               fromNode("own", "ocr", "/mistral", "mistral-ocr-2512", perToken(0, 0, llm.Pages, 3_000_000)),
	"Cohere's SDK for JavaScript ranks": fromNode("cohere", "rerank", "/cohere", "rerank-v3.5", perToken(0, 0, llm.SearchUnits, 2_000_000)),
	"Voyage embeds":                     embeds("voyageai", "voyage-4", 60),
	"Jina embeds":                       embeds("jina", "jina-t", 50),
	"Fireworks embeds":                  embeds("fireworks", "embed-t", 8),
	"vLLM embeds":                       embeds("vllm", "embed-t", 8),
	"Ollama embeds":                     embeds("local", "embed-t", 8),
	"Azure hears":                       transcribes("azure/openai", "whisper-1", perToken(0, 0, llm.AudioSeconds, 100_000)),
	"Together hears":                    transcribes("together", "whisper-t", perToken(0, 0, llm.AudioSeconds, 25_000)),
	"Groq hears":                        transcribes("groq", "whisper-large-v3", func(t mockprovider.Totals) int64 { return (t.Units[llm.AudioSeconds]*1_850_000 + 59) / 60 }),
	"Mistral transcribes":               transcribes("mistral", "voxtral-t", perToken(0, 0, llm.AudioSeconds, 50_000)),
	"Together draws": {"flux-t", func(t *testing.T, r *rig) error {
		client := r.compatibleSDK("together")
		_, err := client.Images.Generate(t.Context(), openai.ImageGenerateParams{Model: "flux-t", Prompt: "a cat", N: openai.Int(2)})
		return err
	}, perToken(0, 0, llm.Images, 40_000_000)},
	"Together speaks": speaks("together", "tts-t", 65_000),
	"Azure speaks":    speaks("azure/openai", "tts-1", 15_000),
	"Cohere embeds": {"embed-v4.0", func(t *testing.T, r *rig) error {
		_, err := r.cohereSDK().V2.Embed(t.Context(), &cohere.V2EmbedRequest{Model: "embed-v4.0", Texts: []string{"one", "two and three"}, InputType: cohere.EmbedInputTypeSearchQuery})
		return err
	}, perToken(120, 0, 0, 0)},
	"Bedrock embeds":                     invokes("amazon.titan-embed-text-v2:0", `{"inputText":"one and two"}`, perToken(20, 0, 0, 0)),
	"Bedrock draws":                      invokes("amazon.nova-canvas-v1:0", `{"taskType":"TEXT_IMAGE","textToImageParams":{"text":"a cat"},"imageGenerationConfig":{"numberOfImages":3}}`, perToken(0, 0, llm.Images, 60_000_000)),
	"Stability's models draw at Bedrock": invokes("stability.sd3-5-large-v1:0", `{"prompt":"a cat"}`, perToken(0, 0, llm.Images, 80_000_000)),
	"Bedrock ranks":                      invokes("cohere.rerank-v3-5:0", `{"api_version":2,"query":"two","documents":["one","two"]}`, perToken(0, 0, llm.SearchUnits, 2_000_000)),
}
