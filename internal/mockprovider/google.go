package mockprovider

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

// single is a part of the formats that have no streams.
type single struct{}

func (single) framing(*Call) framing          { return framing{} }
func (single) events(*answer) iter.Seq[event] { return func(func(event) bool) {} }
func (single) broken(*answer) event           { return event{} }

// geminiEmbed is Gemini's embedContent and batchEmbedContents.
type geminiEmbed struct{ embeddings }

func (geminiEmbed) read(c *Call) error {
	list, batch := c.fields["requests"].([]any)
	if c.Answers = max(len(list), 1); !batch && c.fields["content"] == nil {
		return errors.New("content is not specified")
	}
	for _, r := range list {
		one, _ := r.(map[string]any)
		c.Prompt += fields(one).count("content")
	}
	c.Prompt += c.fields.count("content")
	return nil
}

func (f geminiEmbed) whole(a *answer) object {
	vectors := make([]object, a.Answers)
	for i := range vectors {
		vectors[i] = object{"values": f.vector(a, i)}
	}
	body := object{"usageMetadata": object{"promptTokenCount": a.usage.input}}
	if strings.HasSuffix(a.Path, ":batchEmbedContents") {
		body["embeddings"] = vectors
	} else {
		body["embedding"] = vectors[0]
	}
	return body
}

// predict is Google's predict: Imagen's images, and embeddings on Vertex.
type predict struct{ embeddings }

func (predict) read(c *Call) error {
	instances, _ := c.fields["instances"].([]any)
	if len(instances) == 0 {
		return errors.New("instances is not specified")
	}
	c.Prompt, c.Answers = c.fields.count("instances"), len(instances)
	if !strings.Contains(c.Model, "imagen") {
		c.API = dialect.GeminiEmbed
		return nil
	}
	samples := c.fields.in("parameters").number("sampleCount")
	if samples == 0 {
		samples = 4
	}
	c.Answers *= samples
	c.units[llm.Images] = int64(c.Answers)
	return nil
}

func (f predict) whole(a *answer) object {
	predictions := make([]object, a.Answers)
	for i := range predictions {
		if a.API == dialect.GeminiImages {
			predictions[i] = object{"bytesBase64Encoded": "iVBORw0KGgo=", "mimeType": "image/png"}
			continue
		}
		tokens := a.usage.input / a.Answers
		if i == 0 {
			tokens += a.usage.input % a.Answers
		}
		predictions[i] = object{"embeddings": object{"values": f.vector(a, i), "statistics": object{"truncated": false, "token_count": tokens}}}
	}
	return object{"predictions": predictions}
}

// veo is Veo's predictLongRunning. Its videos are ready when a client first asks for them.
type veo struct{ single }

func (veo) read(c *Call) error {
	instances, _ := c.fields["instances"].([]any)
	if len(instances) == 0 {
		return errors.New("instances is not specified")
	}
	p := c.fields.in("parameters")
	seconds := p.number("durationSeconds")
	if seconds == 0 {
		seconds = 8
	}
	c.units[llm.VideoSeconds] = int64(seconds * max(p.number("sampleCount"), 1) * len(instances))
	return nil
}

func (veo) whole(a *answer) object {
	_, path, _ := strings.Cut(a.Path, "/v1beta/")
	path, _ = strings.CutSuffix(path, ":predictLongRunning")
	return object{"name": fmt.Sprintf("%s/operations/mock%d", path, a.Number)}
}

// operation returns a long-running operation that has ended.
func operation(name string) object {
	video := object{"video": object{"uri": "https://generativelanguage.googleapis.com/v1beta/files/mock:download?alt=media"}}
	return object{"name": name, "done": true, "response": object{
		"@type":                 "type.googleapis.com/google.ai.generativelanguage.v1beta.PredictLongRunningResponse",
		"generateVideoResponse": object{"generatedSamples": []object{video}},
	}}
}

// cachedContents is Gemini's cachedContents.
type cachedContents struct{ single }

func (cachedContents) read(c *Call) error {
	c.Model = strings.TrimPrefix(c.Model, "models/")
	c.Prompt = c.fields.count("contents", "systemInstruction", "tools")
	kept := time.Hour
	if ttl := c.fields.text("ttl"); ttl != "" {
		var err error
		if kept, err = time.ParseDuration(ttl); err != nil {
			return err
		}
	}
	c.units[llm.TokenHours] = (int64(c.Prompt)*int64(kept/time.Second) + 3599) / 3600
	return nil
}

func (cachedContents) whole(a *answer) object {
	kept := a.units[llm.TokenHours] * 3600 / int64(max(a.usage.input, 1))
	c := cacheFacts{a.Model, a.usage.input, a.at.Unix() + kept}
	return c.object(a.Number)
}

// cacheFacts are what a cache was made with. Its name has them, so that the server need not keep them.
type cacheFacts struct {
	model  string
	tokens int
	until  int64 // Unix seconds
}

func (c cacheFacts) object(number int) object {
	id := fmt.Sprintf("%x-%d", fmt.Sprint(c.model, " ", c.tokens, " ", c.until), number)
	return object{
		"name": "cachedContents/" + id, "model": "models/" + c.model, "expireTime": time.Unix(c.until, 0).UTC().Format(time.RFC3339),
		"usageMetadata": object{"totalTokenCount": c.tokens},
	}
}

// cacheOf returns the facts of a cache by the last name of its path.
func cacheOf(path string) (c cacheFacts) {
	id, _, _ := strings.Cut(path[strings.LastIndexByte(path, '/')+1:], "-")
	facts, _ := hex.DecodeString(id) // without facts, all are zero
	fmt.Sscan(string(facts), &c.model, &c.tokens, &c.until)
	return c
}

// storedCache returns a cache.
func storedCache(name string) object { return cacheOf(name).object(1) }

// cacheChange is a change of when a cache ends. What it is kept longer than was paid for is billed.
type cacheChange struct{ single }

func (cacheChange) model(c *Call) string { return cacheOf(c.Path).model }

func (cacheChange) read(c *Call) error {
	stored := cacheOf(c.Path)
	until, err := time.Parse(time.RFC3339, c.fields.text("expireTime"))
	if ttl := c.fields.text("ttl"); ttl != "" {
		var kept time.Duration
		kept, err = time.ParseDuration(ttl)
		until = time.Now().Add(kept)
	}
	if err != nil {
		return err
	}
	c.units[llm.TokenHours] = 0
	if more := until.Sub(time.Unix(stored.until, 0)); more > 0 {
		c.units[llm.TokenHours] = (int64(stored.tokens)*int64(more/time.Second+1) + 3599) / 3600
	}
	return nil
}

func (cacheChange) whole(a *answer) object { return cacheOf(a.Path).object(1) }

// interactions is Gemini's interactions.
type interactions struct{}

func (interactions) framing(*Call) framing { return sseEnd }

func (interactions) read(c *Call) error {
	if c.fields["input"] == nil {
		return errors.New("input is not specified")
	}
	c.Stream = c.fields.flag("stream")
	c.MaxOutput = c.fields.in("generation_config").number("max_output_tokens")
	c.Prompt = c.fields.count("input", "system_instruction", "tools")
	return nil
}

func (f interactions) whole(a *answer) object {
	o := f.standing(a, a.end("completed", "incomplete", "requires_action"))
	o["steps"] = []object{{"type": "model_output", "content": []object{{"type": "text", "text": a.fullText()}}}}
	u := object{
		"total_input_tokens": a.usage.input, "total_cached_tokens": a.usage.cached, "total_output_tokens": a.usage.output - a.usage.reasoning,
		"total_thought_tokens": a.usage.reasoning, "total_tool_use_tokens": 0, "total_tokens": a.usage.input + a.usage.output,
	}
	if a.units[llm.WebSearches] > 0 {
		u["grounding_tool_count"] = []object{{"type": "google_search", "count": a.WebSearches}}
	}
	o["usage"] = u
	return o
}

func (interactions) standing(a *answer, status string) object {
	return object{"id": a.id("v1_"), "object": "interaction", "model": a.Model, "status": status}
}

func (f interactions) events(a *answer) iter.Seq[event] {
	return func(yield func(event) bool) {
		s := &sender{yield: yield}
		emit := func(name string, data object, e event) {
			data["event_type"] = name
			e.name, e.data = name, data
			s.send(e)
		}
		delta := func(kind, key string, value any, e event) {
			emit("step.delta", object{"index": 0, "delta": object{"type": kind, key: value}}, e)
		}
		emit("interaction.created", object{"interaction": f.standing(a, "in_progress")}, event{})
		for text, n := range a.pieces(a.thoughts) {
			delta("thought_summary", "content", object{"type": "text", "text": text}, event{output: n, reasoning: n})
		}
		for text, n := range a.pieces(a.text) {
			delta("text", "text", text, event{output: n})
		}
		if t := a.tool; t != nil {
			delta("arguments", "partial_arguments", t.argument(), event{output: t.cost})
		}
		emit("interaction.completed", object{"interaction": f.whole(a)}, event{})
	}
}

func (interactions) broken(a *answer) event {
	body := a.failure().body(dialect.Gemini)
	body["event_type"] = "error"
	return event{name: "error", data: body}
}

// submitToGemini keeps a batch of Gemini's, whose calls are in its body or in a file.
func (e *exchange) submitToGemini(model string) {
	var body struct {
		Batch struct {
			Input struct {
				File     string `json:"fileName"`
				Requests struct {
					Requests []batchCall `json:"requests"`
				} `json:"requests"`
			} `json:"inputConfig"`
		} `json:"batch"`
	}
	if err := json.NewDecoder(io.LimitReader(e.r.Body, maxBody)).Decode(&body); err != nil {
		e.fail(failure{status: http.StatusBadRequest, message: err.Error()}, limitStates{})
		return
	}
	all := &e.server.batches
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.files == nil {
		all.files, all.byID = map[string]*file{}, map[string]*batch{}
	}
	all.count++
	input := body.Batch.Input
	b := &batch{id: fmt.Sprintf("mock%d", all.count), model: model, input: strings.TrimPrefix(input.File, "files/"), calls: input.Requests.Requests, status: "PENDING", at: e.now}
	if f := all.files[b.input]; f != nil {
		for line := range bytes.Lines(f.content) {
			var c batchCall
			if json.Unmarshal(line, &c) == nil {
				b.calls = append(b.calls, c)
			}
		}
	}
	all.byID[b.id] = b
	e.json(http.StatusOK, encode(b.operation()))
}

// generated returns the result of one call of a batch of Gemini's.
func generated(w *recorder) object {
	if w.status != http.StatusOK {
		return object{"error": object{"code": w.status, "message": "the call has failed"}}
	}
	return object{"response": json.RawMessage(w.body.Bytes())}
}

// operation returns a batch of Gemini's as it stands.
func (b *batch) operation() object {
	metadata := object{"@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch", "model": "models/" + b.model, "state": "BATCH_STATE_PENDING"}
	o := object{"name": "batches/" + b.id, "metadata": metadata}
	if b.results != nil {
		output := object{"inlinedResponses": object{"inlinedResponses": b.answers}}
		if b.input != "" {
			output = object{"responsesFile": "files/" + b.output}
		}
		metadata["state"], metadata["output"] = "BATCH_STATE_SUCCEEDED", output
		o["done"], o["response"] = true, output
	}
	return o
}
