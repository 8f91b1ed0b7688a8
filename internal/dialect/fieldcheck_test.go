package dialect

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Servers that convert types, that use the first of two fields, or that ignore case would read
// these bodies in another way than this package.
func TestFieldsThatAreNotOfTheirType(t *testing.T) {
	openAI := func(api API) Endpoint { return Endpoint{Provider: OpenAI, API: api} }
	ollama := Endpoint{Provider: Ollama, API: OllamaChat}
	gemini := Endpoint{Provider: Gemini, API: Generate, Model: "g"}
	for _, c := range []struct {
		to           Endpoint
		field        string // the wrong field
		wrong, right []string
	}{
		{openAI(Chat), "stream", []string{`"stream":1`, `"stream":0`, `"stream":"true"`, `"stream":""`, `"stream":[]`, `"stream":{}`, `"stream":True`}, []string{`"stream":true`, `"stream": false`, `"stream":null`}},
		{openAI(Responses), "stream", []string{`"stream":1`}, nil},
		{Endpoint{Provider: Anthropic, API: Messages}, "stream", []string{`"stream":1`}, nil},
		{ollama, "stream", []string{`"stream":0`, `"stream":"false"`}, nil},
		{openAI(Embeddings), "stream", nil, []string{`"stream":1`}},
		{openAI(Chat), "stream_options", []string{`"stream_options":0`, `"stream_options":false`, `"stream_options":""`, `"stream_options":[]`, `"stream_options":"null"`}, []string{`"stream_options":{}`, `"stream_options":null`}},
		{openAI(Completions), "include_usage", []string{`"stream_options":{"include_usage":0}`, `"stream_options":{"include_usage":""}`, `"stream_options":{"include_usage":"true"}`, `"stream_options":{"include_usage":{}}`}, []string{`"stream_options":{"include_usage":null}`, `"stream_options":{"include_usage":false}`}},
		{openAI(Chat), "include_usage", []string{`"stream_options":{"include_usage":true,"Include_Usage":false}`, `"stream_options":{"include_usage":true,"include_usage":false}`, `"stream_options":{"include_uſage":false}`}, nil},
		{openAI(Chat), "max_tokens", []string{`"max_tokens":"5"`, `"max_tokens":2.5`, `"max_tokens":true`, `"max_tokens":[5]`, `"max_tokens":NaN`}, []string{`"max_tokens":5.0`, `"max_tokens":1e3`, `"max_tokens":-1`, `"max_tokens":null`}},
		{openAI(Chat), "max_completion_tokens", []string{`"max_completion_tokens":"5"`}, []string{`"max_completion_tokens":7`}},
		{openAI(Responses), "max_output_tokens", []string{`"max_output_tokens":"5"`}, []string{`"max_tokens":"5"`}},
		{openAI(Completions), "n", []string{`"n":"3"`, `"n":{}`}, []string{`"n":3`}},
		{openAI(Completions), "best_of", []string{`"best_of":"3"`}, []string{`"best_of":3`}},
		{ollama, "num_predict", []string{`"options":{"num_predict":"8"}`, `"options":{"num_predict":8.5}`}, []string{`"options":{"num_predict":-2}`, `"options":{"num_predict":-1}`, `"options":null`}},
		{ollama, "options", []string{`"options":[]`}, nil},
		{gemini, "maxOutputTokens", []string{`"generationConfig":{"maxOutputTokens":"8"}`}, []string{`"generationConfig":{"maxOutputTokens":8}`}},
		{gemini, "max_output_tokens", []string{`"generation_config":{"max_output_tokens":"8"}`}, nil},
		{gemini, "candidateCount", []string{`"generationConfig":{"candidateCount":"8"}`}, nil},
		{gemini, "generationConfig", []string{`"generationConfig":[]`}, nil},
		{Endpoint{Provider: Bedrock, API: Converse, Model: "m"}, "maxTokens", []string{`"inferenceConfig":{"maxTokens":"8"}`}, []string{`"inferenceConfig":{"maxTokens":8}`, `"stream":1`, `"max_tokens":"8"`}},
		{Endpoint{Provider: Bedrock, API: Invoke, Model: "m"}, "max_tokens", []string{`"max_tokens":"8"`}, []string{`"max_gen_len":8`}},
		{openAI(Chat), "model", []string{`"model":5`, `"model":["a"]`, `"model":{"a":1}`}, []string{`"model":null`, `"model":"m"`}},
		{openAI(Chat), "stream", []string{`"stream":true,"stream":false`, `"stream":true,"Stream":false`, `"STREAM":true`, `"ſtream":true`}, nil},
		{openAI(Chat), "messages", []string{`"messages":[],"messages":[]`, `"Messages":[]`}, nil},
		{gemini, "generation_config", []string{`"generationConfig":{},"generation_config":{}`}, nil},
		{openAI(Chat), "", nil, []string{`"model":"m","model":"m"`, `"models":[],"fallbacks":[]`, `"x":1,"x":2,"X":3`, `"metadata":{"Stream":1,"stream":"x"}`}},
	} {
		for _, fields := range c.wrong {
			if r, err := c.to.Read([]byte(`{` + fields + `}`)); err != nil || !strings.HasPrefix(r.Wrong, `the field "`+c.field+`" must `) {
				t.Errorf("%s: {%s}: %q, %v", c.to.API, fields, r.Wrong, err)
			}
		}
		for _, fields := range c.right {
			if r, err := c.to.Read([]byte(`{` + fields + `}`)); err != nil || r.Wrong != "" {
				t.Errorf("%s: {%s}: %q, %v", c.to.API, fields, r.Wrong, err)
			}
		}
	}
}

// naiveProblem reports whether a field has the wrong type, comes twice, or has a known name in the
// wrong case.
func naiveProblem(e Endpoint, object []pair) bool {
	seen := map[*field]bool{}
	for _, p := range object {
		f := fields[p.key]
		if f == nil {
			lower := strings.ToLower(strings.ReplaceAll(p.key, "ſ", "s"))
			if known := fields[lower]; known != nil && known.kind != fieldModel {
				return true
			}
			continue
		}
		if seen[f] && f.kind != fieldModel && f.kind != fieldFallbacks || wrongType(e.API, f, p.value) {
			return true
		}
		seen[f] = true
	}
	return false
}

func wrongType(a API, f *field, value any) bool {
	if value == nil || !f.isOf(a.protocol()) {
		return false
	}
	members, isObject := value.([]pair)
	switch f.kind {
	case fieldModel:
		_, ok := value.(string)
		return !ok
	case fieldStream:
		return notBool(value)
	case fieldStreamOptions:
		usages := 0
		return !isObject || slices.ContainsFunc(members, func(p pair) bool {
			if p.key != "include_usage" {
				return strings.EqualFold(p.key, "include_usage")
			}
			usages++
			return usages > 1 || notBool(p.value)
		})
	case fieldObject:
		counts := strings.Fields("num_predict")
		if f.name == "generationConfig" {
			counts = strings.Fields("maxOutputTokens max_output_tokens candidateCount candidate_count")
		}
		return !isObject || slices.ContainsFunc(members, func(p pair) bool { return slices.Contains(counts, p.key) && notWhole(p.value) })
	case fieldTier:
		notText := func(value any) bool { _, ok := value.(string); return value != nil && !ok }
		if isObject {
			return slices.ContainsFunc(members, func(p pair) bool { return p.key == "type" && notText(p.value) })
		}
		return notText(value)
	case fieldNumber:
		return notWhole(value)
	}
	return false
}

func notBool(value any) bool {
	_, ok := value.(bool)
	return value != nil && !ok
}

func notWhole(value any) bool {
	number, ok := value.(json.Number)
	n, err := strconv.ParseFloat(string(number), 64)
	return value != nil && (!ok || err != nil || n != math.Trunc(n))
}
