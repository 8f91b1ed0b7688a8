package dialect

import (
	"testing"

	"dappco.re/go/core/go-ratelimit/llm"
)

// What the provider's own tools can use beside tokens: images with the model that generates them, and containers, which
// Anthropic does not bill beside its newer tools for the web.
func TestToolsOfARequest(t *testing.T) {
	for _, c := range []struct {
		api                API
		tools, limit       string
		images, containers int64
		model              string
	}{
		{Responses, `[{"type":"image_generation"}]`, "", 4, 0, "gpt-image-2"},
		{Responses, `[{"model":"gpt-image-1.5","type":"image_generation","quality":"low"}]`, `,"max_tool_calls":2`, 2, 0, "gpt-image-1.5"},
		{Responses, `[{"type":"image_generation","model":"a"},{"type":"image_generation","model":"b"}]`, "", 8, 0, "a or b"},
		{Responses, `[{"type":"image_generation","model":"a"},{"type":"image_generation","model":"b"},{"type":"image_generation","model":"a"}]`, "", 12, 0, "a or b"},
		{Responses, `[{"type":"image_generation","type":"function"}]`, "", 4, 0, "gpt-image-2"},
		{Responses, `[{"type":"image_generation","model":"a","model":"b"}]`, "", 4, 0, "a or b"},
		{Responses, `[{"type":"image_generation","container":"c"}]`, "", 4, 0, "gpt-image-2"},
		{Responses, `[{"type":"code_interpreter","container":"c"}]`, "", 0, 0, ""},
		{Responses, `[{"type":"function","name":"image_generation","model":"a"}]`, "", 0, 0, ""},
		{Messages, `[{"type":"code_execution_20250825","name":"code_execution"}]`, "", 0, 1, ""},
		{Messages, `[{"type":"code_execution_20260120"},{"type":"web_fetch_20260209","max_uses":3}]`, "", 0, 0, ""},
		{Messages, `[{"type":"web_search_20260209"},{"type":"code_execution_20260120"}]`, "", 0, 0, ""},
		{Messages, `[{"type":"web_search_20250305"},{"type":"code_execution_20260120"}]`, "", 0, 1, ""},
		{Generate, `[{"code_execution":{}}]`, "", 0, 0, ""},
	} {
		r, err := Endpoint{API: c.api}.Read([]byte(`{"model":"m","tools":` + c.tools + c.limit + `}`))
		if err != nil || r.Units[llm.Images] != c.images || r.Units[llm.Containers] != c.containers || r.ImageModel != c.model {
			t.Errorf("%s %s: %v, %q, %v; want %d images of %q and %d containers", c.api, c.tools, r.Units, r.ImageModel, err, c.images, c.model, c.containers)
		}
	}
}

// A response reports what its tools have used beside its usage. A page that the model has opened is no search, and is
// not billed.
func TestToolsOfAResponse(t *testing.T) {
	const items = `"output":[{"type":"image_generation_call","result":"iVBORw0KGgo="},{"type":"web_search_call"},{"type":"web_search_call"}],"usage":{"input_tokens":9,"output_tokens":3}`
	const told = `"tool_usage":{"image_gen":{"input_tokens":7,"input_tokens_details":{"image_tokens":5,"text_tokens":2},"output_tokens":11,"output_tokens_details":{"image_tokens":10,"text_tokens":1}},"web_search":{"num_requests":1}}`
	drawn := llm.ToolTokens{Input: 7, InputImage: 5, Output: 11, OutputText: 1}
	for body, want := range map[string]struct {
		searches int64
		drawn    llm.ToolTokens
	}{
		`{` + items + `}`:              {2, llm.ToolTokens{}},
		`{` + items + `,` + told + `}`: {1, drawn},
		`{` + told + `,` + items + `}`: {1, drawn},
		`{"type":"response.completed","response":{` + told + `,` + items + `}}`: {1, drawn},
	} {
		m := NewMeter(Responses, nil)
		m.Write([]byte(body))
		if u := m.Usage(); !u.Exact || u.Input != 9 || u.Output != 3 || u.Units[llm.Images] != 1 || u.Units[llm.WebSearches] != want.searches || u.Drawn != want.drawn {
			t.Errorf("%s: %+v", body, u)
		}
	}
}
