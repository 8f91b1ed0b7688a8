package gateway

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/llm"
)

var updateEndpoints = flag.Bool("update", false, "write docs/reference/endpoints.md")

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
func form(t testing.TB, fields ...string) (body, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(fields); i += 2 {
		if name, ok := strings.CutPrefix(fields[i], "@"); ok {
			f, err := w.CreateFormFile(name, "file")
			if err != nil {
				t.Fatal(err)
			}
			f.Write([]byte(fields[i+1]))
		} else if err := w.WriteField(fields[i], fields[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	return b.String(), w.FormDataContentType()
}

const mediaRig = `
providers: {openai: {base_url: MOCK}, anthropic: {base_url: MOCK}}
prices: {gpt-image-t: {input: 5, image_input: 10, output: 40, max_output: 7000}, gpt-4o-transcribe: {max_output: 2000}, gpt-tts-t: {input: 0.60, output: 12, max_output: 1000}}
projects: {acme: {dollars: 1000}}
`

// endpointCall is a call of an endpoint.
type endpointCall struct {
	endpoint, model string
	body, kind      string // kind is the Content-Type
	counted         string // what it is counted in, for the table
	bill            func(t mockprovider.Totals) int64
}

// perUnit returns the bill of a model by one unit, in nanodollars.
func perUnit(unit int, nanodollars int64) func(mockprovider.Totals) int64 {
	return func(t mockprovider.Totals) int64 { return t.Units[unit] * nanodollars }
}

// perToken returns the bill of a model in nanodollars for a token of the prompt and of the answer.
func perToken(input, output int64) func(mockprovider.Totals) int64 {
	return func(t mockprovider.Totals) int64 { return int64(t.Input)*input + int64(t.Output)*output }
}

// endpointCalls returns a call of each endpoint of OpenAI's that is read and costs something beside text, and of those
// that cost nothing.
func endpointCalls(t testing.TB) []endpointCall {
	transcription, transcriptionKind := form(t, "model", "whisper-1", "@file", sound(90))
	tokens, tokensKind := form(t, "model", "gpt-4o-transcribe", "response_format", "json", "@file", sound(90))
	streamed, streamedKind := form(t, "model", "gpt-4o-transcribe", "stream", "true", "@file", sound(30))
	translation, translationKind := form(t, "@file", sound(7), "model", "whisper-1")
	edit, editKind := form(t, "model", "gpt-image-t", "prompt", "a cat", "n", "2", "@image[]", "png", "@image[]", "png")
	variation, variationKind := form(t, "model", "dall-e-2", "n", "3", "size", "512x512", "@image", "png")
	const images = "POST /v1/images/generations"
	return []endpointCall{
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
	}
}

// send sends the call through the gateway.
func (c *endpointCall) send(t testing.TB, r *rig, project string) answer {
	kind := c.kind
	if kind == "" {
		kind = "application/json"
	}
	_, path, _ := strings.Cut(c.endpoint, " ")
	path, _, _ = strings.Cut(path, " ")
	return r.post(t, "/openai"+path, c.body, "Content-Type", kind, "X-Project-ID", project)
}

// With a budget in dollars every endpoint that is read passes, and the books have what the provider bills, to the
// nanodollar. The table of endpoints in the documents is written by this test.
func TestEveryEndpointIsBilledExactly(t *testing.T) {
	table := new(strings.Builder)
	for _, c := range endpointCalls(t) {
		r := newRig(t, mediaRig, mockprovider.Config{})
		if a := c.send(t, r, "acme"); a.status != http.StatusOK {
			t.Errorf("%s of %s: %d %.300s", c.endpoint, c.model, a.status, a.body)
			continue
		}
		total := r.provider.Totals()[c.model]
		got := r.usage(t, books.Query{Project: "acme"}).Total
		want := books.Amounts{books.Requests: 1, books.Input: int64(total.Input), books.Output: int64(total.Output), books.Nanodollars: c.bill(total)}
		copy(want[books.Images:], total.Units[:])
		if got != want || int64(spentOf(t, r, "acme")) != want[books.Nanodollars] || want[books.Nanodollars] == 0 {
			t.Errorf("%s of %s:\n%v is booked, %v is spent; want\n%v", c.endpoint, c.model, got, spentOf(t, r, "acme"), want)
		}
		fmt.Fprintf(table, "| `%s` | `%s` | %s | yes |\n", c.endpoint, c.model, c.counted)
	}
	for _, free := range []string{"POST /v1/moderations", "POST /v1/responses/input_tokens", "POST /v1/files", "GET /v1/models"} {
		r := newRigBefore(t, mediaRig, newSeen())
		method, path, _ := strings.Cut(free, " ")
		if a := r.do(t, method, "/openai"+path, "{}", "X-Project-ID", "acme"); a.status != http.StatusOK || spentOf(t, r, "acme") != 0 {
			t.Errorf("%s: %d %s, and %v is spent", free, a.status, a.body, spentOf(t, r, "acme"))
		}
		fmt.Fprintf(table, "| `%s` | | requests | free |\n", free)
	}
	for _, unknown := range []string{"POST /v1/videos", "POST /v1/fine_tuning/jobs"} {
		r := newRigBefore(t, mediaRig, newSeen())
		method, path, _ := strings.Cut(unknown, " ")
		if a := r.do(t, method, "/openai"+path, "{}", "X-Project-ID", "acme"); a.status != http.StatusForbidden {
			t.Errorf("%s: %d %s", unknown, a.status, a.body)
		}
		fmt.Fprintf(table, "| `%s` | | requests | with a price in `endpoint_prices` |\n", unknown)
	}
	checkEndpointsPage(t, table.String())
}

// checkEndpointsPage compares the table in the documents with what was found.
func checkEndpointsPage(t *testing.T, table string) {
	t.Helper()
	const page = "../../docs/reference/endpoints.md"
	text := `# Endpoints of OpenAI under a budget

Written by a test of ` + "`internal/gateway`" + ` that calls each of them with a budget in dollars, and compares what is booked
with what the provider bills; do not edit. The same endpoints of other servers with OpenAI's API are read in the same
way. [prices.md](../prices.md) says what the units cost.

| endpoint | model | counted in | passes, and is billed exactly |
|---|---|---|---|
` + table
	if *updateEndpoints {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != text {
		t.Errorf("%s is not what was found: run the test with -update (%v)", page, err)
	}
}

// However many images and transcriptions come at once, a budget for ten of them lets no more pass, on every store.
func TestMediaAtOnce(t *testing.T) {
	stores := map[string]string{"memory": "", "SQLite": "state: " + filepath.Join(t.TempDir(), "state.db") + "\n", "Redis": "state: " + redistest.New(t).URL() + "\n"}
	transcription, kind := form(t, "model", "whisper-1", "@file", sound(6))
	for store, state := range stores {
		r := newRig(t, state+strings.Replace(mediaRig, "acme: {dollars: 1000}", "images: {dollars: 0.40}, audio: {dollars: 0.006}, few: {images_per_day: 10}", 1), mockprovider.Config{})
		for project, c := range map[string]endpointCall{
			"images": {endpoint: "POST /v1/images/generations", body: `{"model":"dall-e-3","prompt":"a cat"}`},
			"audio":  {endpoint: "POST /v1/audio/transcriptions", body: transcription, kind: kind},
			"few":    {endpoint: "POST /v1/images/generations", body: `{"model":"dall-e-2","prompt":"a cat"}`},
		} {
			var passed, lost atomic.Int64
			var all sync.WaitGroup
			for range 300 {
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
			if n := passed.Load(); n > 10 || n < 10 && lost.Load() == 0 || lost.Load() > 0 && store != "Redis" {
				t.Errorf("%s: %d of %s have passed and %d were not decided, want 10 and 0", store, n, project, lost.Load())
			}
		}
	}
}

// A form is sent as it is, so it must name its model and no alias; and what names no model that the project may call is
// refused.
func TestFormsAreNotChanged(t *testing.T) {
	r := newRig(t, "providers: {openai: {base_url: MOCK, models: {dall-e-2: {max_rpm: 9, aliases: [best]}}}}\nprojects: {p: {models: [dall-e-2]}}\n", mockprovider.Config{})
	for model, want := range map[string]int{"dall-e-2": 200, "best": 400, "dall-e-3": 403} {
		body, kind := form(t, "model", model, "prompt", "a cat", "@image", "png")
		if a := r.post(t, "/openai/v1/images/edits", body, "Content-Type", kind, "X-Project-ID", "p"); a.status != want {
			t.Errorf("%s: %d %s", model, a.status, a.body)
		}
	}
	if n := len(r.provider.Totals()); n != 1 {
		t.Errorf("%d models were called: %v", n, r.provider.Totals())
	}
}
