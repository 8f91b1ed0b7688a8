package gateway_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/llm"
)

const mediaBudget = `
prices: {gpt-image-t: {input: 5, image_input: 10, output: 40, max_output: 7000}, gpt-4o-transcribe: {max_output: 2000},
  jina-t: {input: 0.05}, flux-t: {image: 0.04}, tts-t: {characters: 65}, whisper-t: {audio_minute: 0.0015}, voxtral-t: {audio_minute: 0.003}, embed-t: {input: 0.008},
  "amazon.nova-canvas-v1:0": {image: 0.06}, "stability.sd3-5-large-v1:0": {image: 0.08}, "cohere.rerank-v3-5:0": {search_units: 2}}
projects: {acme: {dollars: 100}}
`

// wav is a WAV file of five seconds.
func wav() io.Reader {
	b := []byte("RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00")
	b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, 8000), 8000)
	b = binary.LittleEndian.AppendUint32(append(b, "\x01\x00\x08\x00data"...), 40_000)
	return bytes.NewReader(append(b, make([]byte, 40_000)...))
}

// OpenAI's SDK generates, edits and varies images, speaks, transcribes and translates through the gateway with a budget
// in dollars, and the books have what the provider bills, to the nanodollar.
func TestMediaOfOpenAI(t *testing.T) {
	picture := func() io.Reader { return openai.File(strings.NewReader("png"), "cat.png", "image/png") }
	sound := func() io.Reader { return openai.File(wav(), "five.wav", "audio/wav") }
	for name, c := range map[string]struct {
		model string
		call  func(t *testing.T, c *openai.Client) error
		bill  func(total mockprovider.Totals) int64 // in nanodollars
	}{
		"generate": {"dall-e-3", func(t *testing.T, c *openai.Client) error {
			_, err := c.Images.Generate(t.Context(), openai.ImageGenerateParams{Model: "dall-e-3", Prompt: "a cat", N: openai.Int(1), Size: "1024x1792"})
			return err
		}, func(total mockprovider.Totals) int64 { return total.Units[llm.Images] * 80_000_000 }},
		"generate by tokens": {"gpt-image-t", func(t *testing.T, c *openai.Client) error {
			_, err := c.Images.Generate(t.Context(), openai.ImageGenerateParams{Model: "gpt-image-t", Prompt: "a cat", N: openai.Int(3)})
			return err
		}, func(total mockprovider.Totals) int64 { return int64(total.Input)*5_000 + int64(total.Output)*40_000 }},
		"stream": {"gpt-image-t", func(t *testing.T, c *openai.Client) error {
			stream := c.Images.GenerateStreaming(t.Context(), openai.ImageGenerateParams{Model: "gpt-image-t", Prompt: "a cat"})
			for stream.Next() {
				_ = stream.Current()
			}
			return stream.Err()
		}, func(total mockprovider.Totals) int64 { return int64(total.Input)*5_000 + int64(total.Output)*40_000 }},
		"edit": {"gpt-image-t", func(t *testing.T, c *openai.Client) error {
			_, err := c.Images.Edit(t.Context(), openai.ImageEditParams{Model: "gpt-image-t", Prompt: "a cat", Image: openai.ImageEditParamsImageUnion{OfFile: picture()}})
			return err
		}, func(total mockprovider.Totals) int64 {
			return (int64(total.Input)-272)*5_000 + 272*10_000 + int64(total.Output)*40_000
		}},
		"vary": {"dall-e-2", func(t *testing.T, c *openai.Client) error {
			//lint:ignore SA1019 clients still call it
			_, err := c.Images.NewVariation(t.Context(), openai.ImageNewVariationParams{Model: "dall-e-2", Image: picture(), N: openai.Int(2), Size: "256x256"})
			return err
		}, func(total mockprovider.Totals) int64 { return total.Units[llm.Images] * 16_000_000 }},
		"speak": {"tts-1-hd", func(t *testing.T, c *openai.Client) error {
			response, err := c.Audio.Speech.New(t.Context(), openai.AudioSpeechNewParams{Model: "tts-1-hd", Input: "Grüße aus Köln", Voice: openai.AudioSpeechNewParamsVoiceUnion{OfString: openai.String("alloy")}})
			if err == nil {
				_, err = io.Copy(io.Discard, response.Body)
				response.Body.Close()
			}
			return err
		}, func(total mockprovider.Totals) int64 { return total.Units[llm.Characters] * 30_000 }},
		"transcribe": {"whisper-1", func(t *testing.T, c *openai.Client) error {
			_, err := c.Audio.Transcriptions.New(t.Context(), openai.AudioTranscriptionNewParams{Model: "whisper-1", File: sound()})
			return err
		}, func(total mockprovider.Totals) int64 { return total.Units[llm.AudioSeconds] * 100_000 }},
		"transcribe by tokens": {"gpt-4o-transcribe", func(t *testing.T, c *openai.Client) error {
			_, err := c.Audio.Transcriptions.New(t.Context(), openai.AudioTranscriptionNewParams{Model: "gpt-4o-transcribe", File: sound()})
			return err
		}, func(total mockprovider.Totals) int64 { return int64(total.Input)*6_000 + int64(total.Output)*10_000 }},
		"translate": {"whisper-1", func(t *testing.T, c *openai.Client) error {
			//lint:ignore SA1019 clients still call it
			_, err := c.Audio.Translations.New(t.Context(), openai.AudioTranslationNewParams{Model: "whisper-1", File: sound()})
			return err
		}, func(total mockprovider.Totals) int64 { return total.Units[llm.AudioSeconds] * 100_000 }},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, with(ample, mediaBudget))
			client := r.openAISDK("")
			if err := c.call(t, &client); err != nil {
				t.Fatal(err)
			}
			r.idle(t)
			sum, err := r.Usage(t.Context(), books.Query{Project: project})
			if err != nil {
				t.Fatal(err)
			}
			total := r.provider.Totals()[c.model]
			want := books.Amounts{books.Requests: 1, books.Input: int64(total.Input), books.Output: int64(total.Output), books.Nanodollars: c.bill(total)}
			copy(want[books.Beside:], total.Units[:])
			if sum.Total != want || want[books.Nanodollars] == 0 {
				t.Errorf("%v is booked; want %v", sum.Total, want)
			}
		})
	}
}

// Searches that the providers make for calls of their SDKs are in the books beside the tokens, as the providers bill them.
func TestSearchesOfSDKs(t *testing.T) {
	for model, call := range map[string]func(r *rig) error{
		"claude-opus-5-5": func(r *rig) error {
			client := r.anthropicSDK("web-searches=3")
			search := anthropic.ToolUnionParam{OfWebSearchTool20250305: &anthropic.WebSearchTool20250305Param{MaxUses: anthropic.Int(5)}}
			m, err := client.Messages.New(t.Context(), anthropic.MessageNewParams{
				Model: "claude-opus-5-5", MaxTokens: 50, Tools: []anthropic.ToolUnionParam{search},
				Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("news?"))},
			})
			if err == nil && m.Usage.ServerToolUse.WebSearchRequests != 3 {
				t.Errorf("the SDK sees %+v", m.Usage)
			}
			return err
		},
		"gpt-5.4": func(r *rig) error {
			client := r.openAISDK("web-searches=3")
			search := responses.ToolUnionParam{OfWebSearch: &responses.WebSearchToolParam{Type: "web_search"}}
			_, err := client.Responses.New(t.Context(), responses.ResponseNewParams{
				Model: "gpt-5.4", MaxOutputTokens: openai.Int(50), MaxToolCalls: openai.Int(4), Tools: []responses.ToolUnionParam{search},
				Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("news?")},
			})
			return err
		},
	} {
		r := newRig(t, with(ample, mediaBudget))
		if err := call(r); err != nil {
			t.Errorf("%s: %v", model, err)
			continue
		}
		r.idle(t)
		sum, err := r.Usage(t.Context(), books.Query{Project: project})
		if err != nil {
			t.Fatal(err)
		}
		total := r.provider.Totals()[model]
		rates := map[string][2]int64{"claude-opus-5-5": {4_000, 20_000}, "gpt-5.4": {2_500, 15_000}}[model]
		bill := int64(total.Input)*rates[0] + int64(total.Output)*rates[1] + 3*10_000_000
		if total.Units[llm.WebSearches] != 3 || sum.Total[books.Beside+llm.WebSearches] != 3 || sum.Total[books.Nanodollars] != bill {
			t.Errorf("%s: %v is booked, the bill is %d: %+v", model, sum.Total, bill, total)
		}
	}
}
