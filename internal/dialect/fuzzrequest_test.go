package dialect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"
)

var fuzzedEndpoints = []Endpoint{
	{Provider: OpenAI, API: Chat},
	{Provider: Mistral, API: Chat},
	{Provider: Azure, API: Chat, Model: "mine"},
	{Provider: OpenAI, API: Completions},
	{Provider: OpenAI, API: Responses},
	{Provider: OpenAI, API: Embeddings},
	{Provider: Anthropic, API: Messages},
	{Provider: Gemini, API: Generate, Model: "gemini-2.5-pro"},
	{Provider: Vertex, API: Generate, Model: "gemini-2.5-pro", Stream: true},
	{Provider: Ollama, API: OllamaChat},
	{Provider: Ollama, API: OllamaGenerate},
}

// FuzzRequest compares Read with encoding/json.
func FuzzRequest(f *testing.F) {
	for _, body := range []string{
		``, `{`, `[]`, `{}`, "\ufeff{\"model\":\"m\"}", `{"model":"m","stream":true}`,
		`{"model":"a","mod\u0065l":"b\ud83d\ude00\ud83d\n","n":2.5,"n":1e2,"max_tokens":-1,"max_completion_tokens":1E999}`,
		"{\"model\":\"\xff\\u00e9\",\"messages\":[{\"content\":\"\xc3\"}]}",
		`{"stream":true,"stream_options":null,"messages":[{"role":"user","content":"hi"}]}`,
		`{"stream":true,"stream_options":{ },"prompt":["a","b"],"best_of":3}`,
		`{"stream":true,"stream_options":{"x":1,"include_usage":null}}`,
		`{"stream":true,"stream_options":{"include_usage":true},"stream_options":{"include_usage":false}}`,
		`{"generationConfig":{"maxOutputTokens":5,"candidateCount":2},"generation_config":{"responseSchema":{"type":[1,true]}}}`,
		`{"model":"l","options":{"num_predict":-2,"num_predict":7},"context":[1,2,3],"images":["aGk="]}`,
		`{"input":[[1,2],["x",-3,{"url":"u","image_url":{"url":"u","detail":"low"}}]],"instructions":[{"input":{"a":[null]}}],"tools":[{"a":{"b":1}},2]}`,
		`{"system":{"source":{"url":"u","data":"d"}},"text":{"format":{}},"messages":[{"arguments":"{\"a\":1}","id":"x","type":{"a":"b"}}]}`,
		`{"messages":` + strings.Repeat(`[`, maxDepth+3) + `"abcde",1,{"role":"x"}` + strings.Repeat(`]`, maxDepth+3) + `}`,
		string(chatBody(300)),
	} {
		for i := range fuzzedEndpoints {
			f.Add([]byte(body), uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, to uint8) {
		checkRead(t, fuzzedEndpoints[int(to)%len(fuzzedEndpoints)], body)
	})
}

// TestRequestProperty is FuzzRequest with bodies that are always JSON: fields in any order,
// repeated, of any type, in any spelling.
func TestRequestProperty(t *testing.T) { rapid.Check(t, propertyRequest) }

func FuzzRequestOfFields(f *testing.F) { f.Fuzz(rapid.MakeFuzz(propertyRequest)) }

func propertyRequest(t *rapid.T) {
	e := rapid.SampledFrom(fuzzedEndpoints).Draw(t, "to")
	w := bodyWriter{t: t}
	w.space()
	w.object(0)
	w.space()
	checkRead(t, e, w.body)
}

// A bodyWriter writes random bodies.
type bodyWriter struct {
	t    *rapid.T
	body []byte
}

var fuzzedKeys = strings.Fields(`model stream stream_options include_usage max_tokens max_completion_tokens max_output_tokens n best_of service_tier serviceTier SERVICE_TIER
	generationConfig generation_config maxOutputTokens candidateCount candidate_count responseSchema options num_predict
	Stream MAX_TOKENS ſtream INCLUDE_USAGE Messages messages contents content parts text input prompt suffix system instructions systemInstruction tools functions response_format format context images
	role type id detail arguments args source url image_url file_id data x`)

func (w *bodyWriter) pick(n int) int { return rapid.IntRange(0, n-1).Draw(w.t, "pick") }

func (w *bodyWriter) space() {
	w.body = append(w.body, []string{"", "", "", " ", "\n\t "}[w.pick(5)]...)
}

func (w *bodyWriter) object(depth int) {
	w.list('{', '}', func() {
		w.string(fuzzedKeys[w.pick(len(fuzzedKeys))])
		w.space()
		w.body = append(w.body, ':')
		w.space()
		w.value(depth + 1)
	})
}

func (w *bodyWriter) list(open, end byte, item func()) {
	w.body = append(w.body, open)
	w.space()
	for i := range w.pick(6) {
		if i > 0 {
			w.body = append(w.body, ',')
			w.space()
		}
		item()
		w.space()
	}
	w.body = append(w.body, end)
}

func (w *bodyWriter) value(depth int) {
	kinds := 6
	if depth > 5 {
		kinds = 4
	}
	switch w.pick(kinds) {
	case 0:
		w.body = append(w.body, []string{"true", "true", "false", "null"}[w.pick(4)]...)
	case 1:
		w.body = append(w.body, []string{"0", "7", "-1", "1e3", "2.5", "12345678901234567890", "1E+400", "-0.0"}[w.pick(8)]...)
	case 2:
		w.string(strings.Repeat("words and ", w.pick(40)) + "\"\\\n\u00e9\u6f22\U0001f600/"[w.pick(3):])
	case 3:
		w.string([]string{"", "low", "gpt-4o", "null", "https://example.com/a.png", "auto", "flex", "Priority"}[w.pick(8)])
	case 4:
		w.object(depth)
	case 5:
		w.list('[', ']', func() { w.value(depth + 1) })
	}
}

// string writes a string in one of the possible encodings.
func (w *bodyWriter) string(s string) {
	w.body = append(w.body, '"')
	way := w.pick(4)
	for i, r := range s {
		switch {
		case r < ' ', way == 1 && i%7 == 0, way == 2:
			for _, u := range utf16.AppendRune(nil, r) {
				w.body = fmt.Appendf(w.body, "\\u%04x", u)
			}
		case r == '"', r == '\\', r == '/' && way == 3:
			w.body = append(w.body, '\\', byte(r))
		default:
			w.body = utf8.AppendRune(w.body, r)
		}
	}
	w.body = append(w.body, '"')
}

// A tester is a *testing.T or a *rapid.T.
type tester interface{ Fatalf(string, ...any) }

// checkRead checks everything that must hold when a body is read.
func checkRead(t tester, e Endpoint, body []byte) {
	r, err := e.Read(slices.Clip(body))
	checkSpareCapacity(t, e, body, r, err)
	if r.Answers < 1 || r.MaxOutput < 0 || r.Prompt < 0 || r.MaxOutput > math.MaxInt32 || r.Answers > math.MaxInt32 {
		t.Fatalf("it is %+v", r)
	}
	if err != nil && (!strings.HasPrefix(err.Error(), "ratelimit: ") || json.Valid(body) && bytes.HasPrefix(bytes.TrimSpace(body), []byte("{"))) {
		t.Fatalf("it fails with %v", err)
	}
	object, ok := parseObject(body)
	if !ok {
		return
	}
	want := naiveRequest(e, object)
	got := r
	got.Prompt, got.usageSplice, got.modelSplice, got.size, got.bound, got.Ambiguous, got.Wrong, got.inPath, got.oldBound = 0, splice{}, splice{}, 0, requestBound{}, false, "", false, false
	if r.StoredTools { // by a stored prompt, which has tests of its own
		got.StoredTools, got.ImageModel = false, ""
	}
	if isWrong := naiveProblem(e, object); (r.Wrong != "") != isWrong {
		t.Fatalf("what is wrong with it is %q: want something: %v", r.Wrong, isWrong)
	}
	if got != want {
		t.Fatalf("it is %+v: want %+v", got, want)
	}
	checkTexts(t, r, body, object)
	checkAskUsage(t, e, r, body)
}

// checkSpareCapacity checks that bytes behind the body in memory do not matter.
func checkSpareCapacity(t tester, e Endpoint, body []byte, r Request, err error) {
	more := append(slices.Clone(body), `","model":"behind","n":77}]}"`...)
	again, againErr := e.Read(more[:len(body)])
	if again != r || (err == nil) != (againErr == nil) || err != nil && err.Error() != againErr.Error() {
		t.Fatalf("it is %+v, %v and with more behind it %+v, %v", r, err, again, againErr)
	}
}

// A pair is a member of an object. An object is a []pair, which keeps the order and repeated keys.
type pair struct {
	key   string
	value any
}

func parseObject(body []byte) (object []pair, ok bool) {
	if !json.Valid(body) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	object, ok = parseValue(d).([]pair)
	return object, ok
}

func parseValue(d *json.Decoder) any {
	token, _ := d.Token()
	switch token {
	case json.Delim('{'):
		object := []pair{}
		for d.More() {
			key, _ := d.Token()
			object = append(object, pair{key.(string), parseValue(d)})
		}
		d.Token()
		return object
	case json.Delim('['):
		list := []any{}
		for d.More() {
			list = append(list, parseValue(d))
		}
		d.Token()
		return list
	}
	return token
}

// lastOf returns the value of the last member with one of the keys.
func lastOf(value any, keys ...string) (last any) {
	object, _ := value.([]pair)
	for _, p := range object {
		if slices.Contains(keys, p.key) {
			last = p.value
		}
	}
	return last
}

func naiveWholeNumber(value any) int {
	number, _ := value.(json.Number)
	n, _ := strconv.ParseFloat(string(number), 64)
	return int(max(0, min(n, math.MaxInt32)))
}

// naiveBound returns the highest of several values that bound an answer, or 0 if one of them is anything but null and
// a number from 1 on.
func naiveBound(values ...any) (most int) {
	for _, v := range values {
		n := naiveWholeNumber(v)
		if n == 0 && v != nil {
			return 0
		}
		most = max(most, n)
	}
	return most
}

// naivePart returns the bound that an object has under one of the keys. One that comes twice must not be null.
func naivePart(value any, keys ...string) int {
	object, _ := value.([]pair)
	var values []any
	for _, p := range object {
		if slices.Contains(keys, p.key) {
			values = append(values, p.value)
		}
	}
	if len(values) > 1 && slices.ContainsFunc(values, func(v any) bool { return v == nil }) {
		return 0
	}
	return naiveBound(values...)
}

func naiveRequest(e Endpoint, object []pair) Request {
	r := Request{Endpoint: e, UsageAsked: true}
	inBody, _ := lastOf(object, "model").(string)
	if r.Model == "" {
		r.Model = inBody
	} else if r.Provider != Azure {
		r.InBody = inBody
	}
	stream := lastOf(object, "stream")
	if e.API != Generate && e.API != Embeddings {
		r.Stream = stream == true
	}
	n := func(key string) int { return naiveWholeNumber(lastOf(object, key)) }
	switch e.API {
	case Chat:
		r.Answers, r.MaxOutput = n("n"), naiveBound(lastOf(object, "max_completion_tokens"), lastOf(object, "max_tokens"))
	case Completions:
		r.Answers, r.MaxOutput = max(1, n("n"), n("best_of")), n("max_tokens")
		prompts := 0
		list, _ := lastOf(object, "prompt").([]any)
		for _, prompt := range list {
			switch prompt.(type) {
			case string, []any, []pair:
				prompts++
			}
		}
		r.Answers = min(r.Answers*max(1, prompts), math.MaxInt32)
	case Responses:
		r.MaxOutput = n("max_output_tokens")
	case Messages:
		r.MaxOutput = n("max_tokens")
	case Generate:
		config := lastOf(object, "generationConfig", "generation_config")
		r.MaxOutput = naivePart(config, "maxOutputTokens", "max_output_tokens")
		r.Answers = naiveWholeNumber(lastOf(config, "candidateCount", "candidate_count"))
	case OllamaChat, OllamaGenerate:
		r.Stream = stream != false
		r.MaxOutput = naivePart(lastOf(object, "options"), "num_predict")
	}
	tier := lastOf(object, "service_tier", "serviceTier")
	if in, ok := tier.([]pair); ok {
		tier = lastOf(in, "type")
	}
	if fields["service_tier"].isOf(e.API.protocol()) && slices.Contains([]any{"flex", "Priority"}, tier) {
		r.Tier = strings.ToLower(tier.(string))
	}
	r.Answers = max(1, r.Answers)
	if r.Stream && e.Provider != Mistral && (e.API == Chat || e.API == Completions) {
		r.UsageAsked = lastOf(lastOf(object, "stream_options"), "include_usage") == true
	}
	return r
}

// checkTexts checks the texts of a prompt and their count. Images and files, which are long, have
// tests of their own.
func checkTexts(t tester, r Request, body []byte, object []pair) {
	got := textsOf(r, body)
	want := naiveTexts(object)
	if slices.ContainsFunc(want, func(s string) bool {
		return len(s) >= minBlob && strings.Count(s, " ") < len(s)/16 || strings.HasPrefix(s, "data:")
	}) {
		return
	}
	if !slices.Equal(got, want) {
		t.Fatalf("its texts are %q: want %q", got, want)
	}
	if !utf8.Valid(body) {
		return
	}
	counted := r
	counted.CountWith(body, func(_, text string) int { return (len(text) + 3) / 4 })
	if counted.Prompt != r.Prompt {
		t.Fatalf("it is %d tokens, and %d when its texts are counted", r.Prompt, counted.Prompt)
	}
}

func naiveTexts(object []pair) (texts []string) {
	last := map[*field]int{}
	for i, p := range object {
		last[fields[p.key]] = i
	}
	for i, p := range object {
		f := fields[p.key]
		if f == nil || last[f] != i {
			continue
		}
		switch f.kind {
		case fieldTools:
			switch p.value.(type) {
			case []any, []pair: // one tool may stand without the brackets of a list
				texts = append(texts, allTexts(p.value)...)
			}
		case fieldAll:
			texts = append(texts, allTexts(p.value)...)
		case fieldObject:
			if f.name != "generationConfig" {
				continue
			}
			config, _ := p.value.([]pair)
			for _, c := range config {
				switch c.key {
				case "responseSchema", "response_schema", "responseJsonSchema", "response_json_schema":
					texts = append(texts, allTexts(c.value)...)
				}
			}
		case fieldMessages, fieldPrompts:
			if list, ok := p.value.([]any); ok {
				for _, v := range list {
					texts = append(texts, promptTexts(v, keyText, 0)...)
				}
				continue
			}
			texts = append(texts, promptTexts(p.value, keyText, 0)...)
		case fieldTexts, fieldImages, fieldMessage:
			in := keyText
			if f.name == "images" {
				in = keyImage
			}
			texts = append(texts, promptTexts(p.value, in, 0)...)
		}
	}
	return texts
}

// allTexts returns all keys, strings and scalars.
func allTexts(value any) (texts []string) {
	switch v := value.(type) {
	case []pair:
		for _, p := range v {
			texts = append(append(texts, p.key), allTexts(p.value)...)
		}
	case []any:
		for _, item := range v {
			texts = append(texts, allTexts(item)...)
		}
	case string:
		texts = []string{v}
	case json.Number:
		texts = []string{string(v)}
	case bool:
		texts = []string{strconv.FormatBool(v)}
	case nil:
		texts = []string{"null"}
	}
	return texts
}

// promptTexts returns the strings that are meant for the model.
func promptTexts(value any, in keyKind, depth int) (texts []string) {
	switch v := value.(type) {
	case string:
		if in != keyReference && in != keyImage {
			texts = []string{v}
		}
	case []any:
		if depth == maxDepth {
			return allTexts(v)
		}
		for _, item := range v {
			texts = append(texts, promptTexts(item, in, depth+1)...)
		}
	case []pair:
		if depth == maxDepth {
			return allTexts(v)
		}
		for _, p := range v {
			at := keyKindOf([]byte(p.key)).inside(in)
			_, isText := p.value.(string)
			scalar := isText || p.value == nil || p.value == true || p.value == false || reflect.TypeOf(p.value) == reflect.TypeFor[json.Number]()
			switch {
			case at == keyLabel || at == keyDetail || at == keyType || at == keyMime:
				continue
			case at == keyFree && (isText || !scalar):
				texts = append(texts, allTexts(p.value)...)
				continue
			case at == keyFree, at == keyStored, at == keyEncrypted:
				at = keyText
			}
			texts = append(texts, promptTexts(p.value, at, depth+1)...)
		}
	}
	return texts
}

// checkAskUsage checks that AskUsage returns a body that asks for usage, and differs in nothing
// else.
func checkAskUsage(t tester, e Endpoint, r Request, body []byte) {
	pieces, ok := r.AskUsage(body)
	asking := slices.Concat(pieces...)
	var before map[string]any
	decode := func(b []byte) (m map[string]any) {
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		if err := d.Decode(&m); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		return m
	}
	before = decode(body)
	options, isObject := before["stream_options"].(map[string]any)
	able := r.Stream && e.Provider != Mistral && (e.API == Chat || e.API == Completions) &&
		(before["stream_options"] == nil || isObject && (options["include_usage"] == nil || options["include_usage"] == false))
	if ok != able {
		t.Fatalf("usage can be asked for: %v: want %v", ok, able)
	}
	if !ok {
		return
	}
	after := decode(asking)
	asked, _ := after["stream_options"].(map[string]any)
	if asked["include_usage"] != true {
		t.Fatalf("%s does not ask for usage", asking)
	}
	for _, m := range []map[string]any{before, after} {
		if options, _ := m["stream_options"].(map[string]any); options != nil {
			delete(options, "include_usage")
		}
		if options, _ := m["stream_options"].(map[string]any); len(options) == 0 {
			delete(m, "stream_options")
		}
	}
	if !reflect.DeepEqual(before, after) {
		t.Fatalf("%s is more than %s", asking, body)
	}
	front, back := 0, 0
	for front < len(body) && body[front] == asking[front] {
		front++
	}
	for back < len(body) && body[len(body)-1-back] == asking[len(asking)-1-back] {
		back++
	}
	if front+back < len(body)-len("null") {
		t.Fatalf("%s differs from %s in more than one place", asking, body)
	}
}
