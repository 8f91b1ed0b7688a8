package llm

import (
	"testing"
)

// Only a response of OpenAI's can be asked for in the background, and only in one spelling.
func TestBackgroundRequests(t *testing.T) {
	for _, c := range []struct {
		api   API
		body  string
		want  bool
		wrong bool
	}{
		{Responses, `{"model":"m","background":true}`, true, false},
		{Responses, `{"model":"m","background":false}`, false, false},
		{Responses, `{"model":"m","background":null}`, false, false},
		{Responses, `{"model":"m"}`, false, false},
		{Responses, `{"model":"m","background":"true"}`, false, true},
		{Responses, `{"model":"m","Background":true}`, false, true},
		{Responses, `{"model":"m","background":false,"background":true}`, true, true},
		{Chat, `{"model":"m","background":true}`, false, false},
	} {
		r, err := Endpoint{Provider: OpenAI, API: c.api}.Read([]byte(c.body))
		if err != nil || r.Background != c.want || (r.Wrong != "") != c.wrong {
			t.Errorf("%s %s: %t, wrong: %q, %v", c.api, c.body, r.Background, r.Wrong, err)
		}
	}
}

// The status of a response counts once the response has come whole, wherever in it the status stands.
func TestStatusOfAResponse(t *testing.T) {
	const whole = `{"id":"resp_1","status":"completed","output":[{"id":"msg_1","status":"in_progress","content":[{"text":"Hi"}]}],"usage":{"input_tokens":3,"output_tokens":1}}`
	for _, c := range []struct{ body, id, status string }{
		{whole, "resp_1", "completed"},
		{whole[:len(whole)-1], "resp_1", ""},
		{`{"output":[{"id":"x","status":"failed"}],"usage":null,"status":"queued","id":"resp_2"}`, "resp_2", "queued"},
		{"event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_3\",\"status\":\"in_progress\"}}\n\n", "resp_3", "in_progress"},
		{"data: {\"response\":{\"id\":\"resp_3\",\"status\":\"in_progress\"}}\n\ndata: {\"item\":{\"status\":\"completed\"}}\n\ndata: {\"response\":{\"id\":\"resp_3\",\"status\":\"incomplete\"}}\n\n", "resp_3", "incomplete"},
	} {
		m := NewMeter(Responses, nil)
		m.Write([]byte(c.body))
		if m.ResponseID() != c.id || m.Status() != c.status {
			t.Errorf("%s: %q is %q, want %q is %q", c.body, m.ResponseID(), m.Status(), c.id, c.status)
		}
	}
}
