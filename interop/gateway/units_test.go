package gateway_test

import (
	"maps"
	"net/http"
	"testing"
	"time"

	cohere "github.com/cohere-ai/cohere-go/v2"
	"github.com/openai/openai-go/v3"
	"google.golang.org/genai"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/llm"
)

// geminiSDK returns Gemini's SDK for Go, which calls the gateway.
func (r *rig) geminiSDK(t *testing.T, mock string) *genai.Client {
	t.Helper()
	client, err := genai.NewClient(t.Context(), &genai.ClientConfig{
		APIKey: r.key, Backend: genai.BackendGeminiAPI,
		HTTPOptions: genai.HTTPOptions{BaseURL: r.url + "/gemini", Headers: http.Header{"X-Mock": {mock}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// An sdkRow is what an SDK does with a model, and what the provider bills for it in nanodollars.
type sdkRow struct {
	model string
	call  func(t *testing.T, r *rig) error
	bill  func(mockprovider.Totals) int64
}

// What calls of the providers' own SDKs use beside text is in the books as the providers bill it, to the nanodollar,
// under a budget in dollars.
func TestUnitsOfSDKs(t *testing.T) {
	perUnit := func(unit int, each int64) func(mockprovider.Totals) int64 {
		return func(total mockprovider.Totals) int64 { return total.Units[unit] * each }
	}
	rows := map[string]sdkRow{
		"Gemini embeds": {"gemini-embedding-001", func(t *testing.T, r *rig) error {
			a, err := r.geminiSDK(t, "").Models.EmbedContent(t.Context(), "gemini-embedding-001", append(genai.Text("one"), genai.Text("two and three")...), nil)
			if err == nil && len(a.Embeddings) != 2 {
				t.Errorf("the SDK sees %d embeddings", len(a.Embeddings))
			}
			return err
		}, func(total mockprovider.Totals) int64 { return int64(total.Input) * 150 }},
		"Gemini searches": {"gemini-3.5-flash", func(t *testing.T, r *rig) error {
			config := &genai.GenerateContentConfig{MaxOutputTokens: 50, Tools: []*genai.Tool{{GoogleSearch: &genai.GoogleSearch{}}}}
			a, err := r.geminiSDK(t, "web-searches=3").Models.GenerateContent(t.Context(), "gemini-3.5-flash", genai.Text("news?"), config)
			if err == nil && len(a.Candidates[0].GroundingMetadata.WebSearchQueries) != 3 {
				t.Errorf("the SDK sees %+v", a.Candidates[0].GroundingMetadata)
			}
			return err
		}, func(total mockprovider.Totals) int64 {
			return int64(total.Input)*1_500 + int64(total.Output)*9_000 + total.Units[llm.WebSearches]*14_000_000
		}},
		"Gemini paints": {"gemini-2.5-flash-image", func(t *testing.T, r *rig) error {
			config := &genai.GenerateContentConfig{MaxOutputTokens: 2000, ResponseModalities: []string{"IMAGE"}}
			a, err := r.geminiSDK(t, "output=1300 output-image=1290").Models.GenerateContent(t.Context(), "gemini-2.5-flash-image", genai.Text("a cat"), config)
			if err == nil && a.Candidates[0].Content.Parts[1].InlineData == nil {
				t.Errorf("the SDK sees no image: %+v", a)
			}
			return err
		}, func(total mockprovider.Totals) int64 {
			return int64(total.Input)*300 + (int64(total.Output)-1290)*2_500 + 1290*30_000
		}},
		"Veo": {"veo-3.1-generate-preview", func(t *testing.T, r *rig) error {
			client := r.geminiSDK(t, "")
			o, err := client.Models.GenerateVideosFromSource(t.Context(), "veo-3.1-generate-preview", &genai.GenerateVideosSource{Prompt: "a cat"}, &genai.GenerateVideosConfig{DurationSeconds: genai.Ptr[int32](6), Resolution: "4k"})
			if err != nil {
				return err
			}
			if o, err = client.Operations.GetVideosOperation(t.Context(), o, nil); err == nil && !o.Done {
				t.Errorf("the SDK sees %+v", o)
			}
			return err
		}, perUnit(llm.VideoSeconds, 600_000_000)},
		"a cache of Gemini's": {"gemini-2.5-flash", func(t *testing.T, r *rig) error {
			_, err := r.geminiSDK(t, "").Caches.Create(t.Context(), "gemini-2.5-flash", &genai.CreateCachedContentConfig{TTL: 90 * time.Minute, Contents: genai.Text("a long book, which is read again and again")})
			return err
		}, func(total mockprovider.Totals) int64 {
			return int64(total.Input)*300 + total.Units[llm.TokenHours]*1_000
		}},
		"a cache of Gemini's that is kept longer": {"gemini-2.5-flash", func(t *testing.T, r *rig) error {
			client := r.geminiSDK(t, "")
			c, err := client.Caches.Create(t.Context(), "gemini-2.5-flash", &genai.CreateCachedContentConfig{TTL: 90 * time.Minute, Contents: genai.Text("a long book, which is read again and again")})
			if err != nil {
				return err
			}
			_, err = client.Caches.Update(t.Context(), c.Name, &genai.UpdateCachedContentConfig{ExpireTime: c.ExpireTime.Add(110 * time.Minute)})
			return err
		}, func(total mockprovider.Totals) int64 {
			return int64(total.Input)*300 + total.Units[llm.TokenHours]*1_000
		}},
		"OpenAI's videos": {"sora-2-pro", func(t *testing.T, r *rig) error {
			client := r.openAISDK("")
			//lint:ignore SA1019 compatible servers have it
			v, err := client.Videos.New(t.Context(), openai.VideoNewParams{Model: "sora-2-pro", Prompt: "a cat", Seconds: "8", Size: "1792x1024"})
			if err != nil {
				return err
			}
			//lint:ignore SA1019 compatible servers have it
			_, err = client.Videos.Get(t.Context(), v.ID)
			return err
		}, perUnit(llm.VideoSeconds, 500_000_000)},
		"OpenAI's chat that searches": {"gpt-4o-search-preview", func(t *testing.T, r *rig) error {
			client := r.openAISDK("")
			_, err := client.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
				Model: "gpt-4o-search-preview", MaxTokens: openai.Int(50), WebSearchOptions: openai.ChatCompletionNewParamsWebSearchOptions{SearchContextSize: "low"},
				Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("news?")},
			})
			return err
		}, func(total mockprovider.Totals) int64 {
			return int64(total.Input)*2_500 + int64(total.Output)*10_000 + total.Units[llm.WebSearches]*25_000_000
		}},
		"Cohere ranks": {"rerank-v3.5", func(t *testing.T, r *rig) error {
			_, err := r.cohereSDK().V2.Rerank(t.Context(), &cohere.V2RerankRequest{Model: "rerank-v3.5", Query: "two", Documents: []string{"one", "two"}})
			return err
		}, perUnit(llm.SearchUnits, 2_000_000)},
	}
	for _, more := range []map[string]sdkRow{openAIRows, anthropicRows, geminiRows, otherRows} {
		maps.Copy(rows, more)
	}
	for name, c := range rows {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, with(ample, mediaBudget))
			if err := c.call(t, r); err != nil {
				t.Fatal(err)
			}
			r.idle(t)
			sum, err := r.Usage(t.Context(), books.Query{Project: project})
			if err != nil {
				t.Fatal(err)
			}
			total := r.provider.Totals()[c.model]
			want := books.Amounts{books.Requests: sum.Total[books.Requests], books.Input: int64(total.Input), books.Output: int64(total.Output), books.Nanodollars: c.bill(total)}
			copy(want[books.Beside:], total.Units[:])
			if sum.Total != want || want[books.Nanodollars] == 0 {
				t.Errorf("%v is booked; want %v", sum.Total, want)
			}
		})
	}
}
