package mockprovider

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"mime/multipart"
	"strconv"
	"strings"
	"unicode/utf8"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

// readForm reads the fields and the files of a multipart form. Whole numbers and flags become what they are in JSON.
func (c *Call) readForm() error {
	_, parameters, err := mime.ParseMediaType(c.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	form, err := multipart.NewReader(bytes.NewReader(c.Body), parameters["boundary"]).ReadForm(maxBody)
	if err != nil {
		return err
	}
	defer form.RemoveAll()
	c.fields, c.files = fields{}, map[string][][]byte{}
	for name, values := range form.Value {
		value := values[len(values)-1]
		c.fields[name] = value
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			c.fields[name] = n
		} else if value == "true" || value == "false" {
			c.fields[name] = value == "true"
		}
	}
	for name, headers := range form.File {
		for _, h := range headers {
			f, err := h.Open()
			if err != nil {
				return err
			}
			content, err := io.ReadAll(f)
			f.Close()
			if err != nil {
				return err
			}
			c.files[name] = append(c.files[name], content)
		}
	}
	return nil
}

// isForm reports whether the body of a call is a multipart form.
func (c *Call) isForm() bool {
	return strings.HasPrefix(c.Header.Get("Content-Type"), "multipart/form-data")
}

// once is a part of the formats that have no errors in mid-stream.
type once struct{}

func (once) framing(*Call) framing { return sse }
func (once) broken(*answer) event  { return event{} }

// images is OpenAI's generations, edits and variations of images. Models that are called gpt-image are billed by their
// tokens, others by the image.
type images struct{ once }

// tokensPerImage is how many tokens an image of the prompt has.
const tokensPerImage = 272

func (images) read(c *Call) error {
	prompt := c.fields.text("prompt")
	if prompt == "" && !strings.HasSuffix(c.Path, "/variations") {
		return errors.New("prompt: a text is required")
	}
	c.Answers, c.Stream = max(c.fields.number("n"), 1), c.fields.flag("stream")
	c.Prompt = Count(prompt) + tokensPerImage*(len(c.files["image"])+len(c.files["image[]"]))
	c.units[llm.Images] = int64(c.Answers)
	return nil
}

// byTokens reports whether a model is billed by tokens.
func byTokens(model string) bool { return strings.HasPrefix(model, "gpt-") }

func (images) usage(a *answer) object {
	text := Count(a.fields.text("prompt"))
	return object{
		"input_tokens": a.usage.input, "output_tokens": a.usage.output, "total_tokens": a.usage.input + a.usage.output,
		"input_tokens_details": object{"text_tokens": text, "image_tokens": a.usage.input - text},
	}
}

func (f images) whole(a *answer) object {
	data := make([]object, a.Answers)
	for i := range data {
		data[i] = object{"b64_json": "iVBORw0KGgo="}
	}
	body := object{"created": a.at.Unix(), "data": data}
	if byTokens(a.Model) {
		body["usage"] = f.usage(a)
	}
	return body
}

func (f images) events(a *answer) iter.Seq[event] {
	return func(yield func(event) bool) {
		kind := "image_generation.completed"
		if strings.HasSuffix(a.Path, "/edits") {
			kind = "image_edit.completed"
		}
		u := f.usage(a)
		yield(event{name: kind, data: object{"type": kind, "b64_json": "iVBORw0KGgo=", "created_at": a.at.Unix(), "usage": u}, output: a.usage.output, reasoning: a.usage.reasoning})
	}
}

// useTools lets the provider use its own tools as often as the script says, if the call has them. A Gemini before the
// third bills all searches of a call as one.
func (a *answer) useTools() {
	if a.API == dialect.CohereRerank && a.usage.input > 0 { // it is billed by its tokens, and searches all the same
		a.units[llm.SearchUnits] = int64((a.Answers + 99) / 100)
	}
	if a.API == dialect.Generate && a.usage.parts.OutputImage > 0 {
		a.units[llm.Images] = int64(a.Answers)
	}
	if a.API == dialect.Chat && (a.fields["web_search_options"] != nil || strings.Contains(a.Model, "-search-")) {
		a.units[llm.WebSearches] = 1
	}
	tools, _ := a.fields["tools"].([]any)
	if a.API == dialect.Responses && a.fields.in("prompt") != nil { // a stored prompt has every tool
		a.units[llm.WebSearches], a.units[llm.Images], a.units[llm.Containers] = int64(a.WebSearches), int64(a.Images), int64(min(a.CodeRuns, 1))
		a.units[llm.FileSearches] = int64(a.FileSearches)
	}
	runs := func(tool map[string]any, in string) int64 { // what the containers cost in which its code runs
		size, _ := strings.CutSuffix(cmp.Or(fields(tool).in(in).text("memory_limit"), "1g"), "g")
		n, _ := strconv.Atoi(size)
		return int64(n * min(a.CodeRuns, 1))
	}
	defer func() { // with Anthropic's newer tools for the web, code is free
		if a.API == dialect.Messages && strings.Contains(string(a.Body), `"web_search_20260209"`) {
			a.units[llm.Containers] = 0
		}
	}()
	for _, t := range tools {
		tool, _ := t.(map[string]any)
		switch kind := fields(tool).text("type"); {
		case strings.HasPrefix(kind, "web_search"):
			a.units[llm.WebSearches] = int64(a.WebSearches)
		case kind == "file_search":
			a.units[llm.FileSearches] = int64(a.FileSearches)
		case kind == "image_generation":
			a.units[llm.Images] = int64(a.Images)
		case strings.HasPrefix(kind, "code_execution"):
			a.units[llm.Containers] = int64(min(a.CodeRuns, 1))
		case kind == "code_interpreter" && fields(tool).in("container") != nil:
			a.units[llm.Containers] = runs(tool, "container")
		case kind == "shell" && fields(tool).in("environment").text("type") == "container_auto":
			a.units[llm.Containers] = runs(tool, "environment")
		case tool["googleMaps"] != nil:
			a.units[llm.WebSearches] = int64(min(a.Places, 1))
		case (tool["googleSearch"] != nil || kind == "google_search") && strings.HasPrefix(a.Model, "gemini-2"):
			a.units[llm.WebSearches] = int64(min(a.WebSearches, 1))
		case tool["googleSearch"] != nil || kind == "google_search":
			a.units[llm.WebSearches] = int64(a.WebSearches)
		}
	}
}

// videos is OpenAI's videos, which are ready when a client first asks for them.
type videos struct{ single }

func (videos) read(c *Call) error {
	if c.fields.text("prompt") == "" {
		return errors.New("prompt: a text is required")
	}
	stored, _ := changed(c)
	if strings.HasSuffix(c.Path, "/extensions") {
		stored.seconds = ""
	}
	seconds, _ := strconv.Atoi(cmp.Or(stored.seconds, c.fields.text("seconds"), "4"))
	if stored.seconds == "" {
		seconds = max(seconds, c.fields.number("seconds"))
	}
	c.units[llm.VideoSeconds] = int64(seconds)
	return nil
}

// model returns the model of a request that changes a video, which is that of the video.
func (videos) model(c *Call) string {
	stored, _ := changed(c)
	return stored.model
}

// videoFacts are what a video was asked for with. Its id has them, so that the server need not keep them.
type videoFacts struct{ model, seconds, size string }

func (v videoFacts) id(number int) string {
	return fmt.Sprintf("video_%x_%d", v.model+" "+v.seconds+" "+v.size, number)
}

func factsOf(id string) (v videoFacts, ok bool) {
	text, _, _ := strings.Cut(strings.TrimPrefix(id, "video_"), "_")
	facts, err := hex.DecodeString(text)
	words := strings.Split(string(facts), " ")
	if err != nil || len(words) != 3 {
		return v, false
	}
	return videoFacts{words[0], words[1], words[2]}, true
}

// changed returns the facts of the video that a request changes.
func changed(c *Call) (v videoFacts, ok bool) {
	if before, isRemix := strings.CutSuffix(c.Path, "/remix"); isRemix {
		return factsOf(before[strings.LastIndexByte(before, '/')+1:])
	}
	return factsOf(cmp.Or(c.fields.in("video").text("id"), c.fields.text("video[id]")))
}

func (videos) whole(a *answer) object {
	stored, _ := changed(a.Call)
	v := videoFacts{a.Model, strconv.FormatInt(a.units[llm.VideoSeconds], 10), cmp.Or(stored.size, a.fields.text("size"), "720x1280")}
	return object{
		"id": v.id(a.Number), "object": "video", "model": v.model, "status": "queued", "progress": 0, "created_at": a.at.Unix(),
		"seconds": v.seconds, "size": v.size,
	}
}

// video returns a video that is ready.
func video(id string) object {
	v, _ := factsOf(id)
	return object{"id": id, "object": "video", "status": "completed", "progress": 100, "model": v.model, "seconds": v.seconds, "size": v.size}
}

// containers are OpenAI's containers.
type containers struct{ single }

func (containers) model(*Call) string { return "container" }

func (containers) read(c *Call) error {
	size, ok := map[string]int64{"": 1, "1g": 1, "4g": 4, "16g": 16, "64g": 64}[c.fields.text("memory_limit")]
	if c.units[llm.Containers] = size; !ok || c.fields.text("name") == "" {
		return errors.New("name: a text is required, and memory_limit is 1g, 4g, 16g or 64g")
	}
	return nil
}

func (containers) whole(a *answer) object {
	return object{
		"id": a.id("cntr_"), "object": "container", "created_at": a.at.Unix(), "last_active_at": a.at.Unix(), "status": "running",
		"name": a.fields.text("name"), "memory_limit": cmp.Or(a.fields.text("memory_limit"), "1g"),
		"expires_after": object{"anchor": "last_active_at", "minutes": 20},
	}
}

// speech is OpenAI's text to speech, which answers with audio.
type speech struct{ once }

func (speech) read(c *Call) error {
	text := c.fields.text("input")
	if text == "" {
		return errors.New("input: a text is required")
	}
	c.Prompt, c.Stream = Count(text), c.fields.text("stream_format") == "sse"
	c.units[llm.Characters] = int64(utf8.RuneCountInString(text))
	return nil
}

func (speech) whole(*answer) object { return nil }

func (speech) events(a *answer) iter.Seq[event] {
	return func(yield func(event) bool) {
		u := object{"input_tokens": a.usage.input, "output_tokens": a.usage.output, "total_tokens": a.usage.input + a.usage.output}
		if yield(event{name: "speech.audio.delta", data: object{"type": "speech.audio.delta", "audio": "//uQAA=="}, output: a.usage.output - a.usage.reasoning}) {
			yield(event{name: "speech.audio.done", data: object{"type": "speech.audio.done", "usage": u}, output: a.usage.reasoning, reasoning: a.usage.reasoning})
		}
	}
}

// content returns the audio.
func (speech) content() (kind string, body []byte) {
	return "audio/mpeg", []byte("\xff\xfb\x90\x00 a sound")
}

// transcriptions is OpenAI's transcriptions and translations of audio. Of WAV it knows how long it is, and takes anything
// else for a second.
type transcriptions struct{ once }

func (transcriptions) read(c *Call) error {
	if len(c.files["file"]) != 1 {
		return errors.New("file: a file is required")
	}
	c.Stream = c.fields.flag("stream")
	seconds := int64(1)
	if b := c.files["file"][0]; len(b) >= 44 && string(b[:4]) == "RIFF" {
		each := int64(binary.LittleEndian.Uint32(b[28:]))
		seconds = (int64(binary.LittleEndian.Uint32(b[40:])) + each - 1) / max(each, 1)
	}
	c.units[llm.AudioSeconds], c.Prompt = max(seconds, imitationOf(c.Provider).leastAudio), int(10*seconds)
	return nil
}

func (transcriptions) usage(a *answer) object {
	if byTokens(a.Model) {
		return object{
			"type": "tokens", "input_tokens": a.usage.input, "output_tokens": a.usage.output, "total_tokens": a.usage.input + a.usage.output,
			"input_token_details": object{"text_tokens": 0, "audio_tokens": a.usage.input},
		}
	}
	return object{"type": "duration", "seconds": a.units[llm.AudioSeconds]}
}

func (f transcriptions) whole(a *answer) object {
	return object{"text": a.fullText(), "usage": f.usage(a)}
}

func (f transcriptions) events(a *answer) iter.Seq[event] {
	return func(yield func(event) bool) {
		for text, n := range a.pieces(a.text) {
			if !yield(event{name: "transcript.text.delta", data: object{"type": "transcript.text.delta", "delta": text}, output: n}) {
				return
			}
		}
		rest := max(a.usage.output-len(a.text)-a.hidden, 0) // what was thought, and written for tools
		yield(event{name: "transcript.text.done", data: object{"type": "transcript.text.done", "text": a.fullText(), "usage": f.usage(a)}, output: rest, reasoning: a.usage.reasoning})
	}
}
