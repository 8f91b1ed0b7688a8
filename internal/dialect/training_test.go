package dialect

import (
	"slices"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/llm"
)

// However a body says how often a model is trained, the number is never lower than what a server may read in it.
func TestTrainingEpochs(t *testing.T) {
	for body, want := range map[string]int64{
		`{}`:                                              mostEpochs,
		`{"hyperparameters":{"n_epochs":3}}`:              3,
		`{"hyperparameters":{"n_epochs":2.5}}`:            3,
		`{"hyperparameters":{"n_epochs":"3"}}`:            mostEpochs,
		`{"hyperparameters":{"n_epochs":0}}`:              mostEpochs,
		`{"hyperparameters":{"n_epochs":-1}}`:             mostEpochs,
		`{"hyperparameters":{"n_epochs":1e300}}`:          1<<31 - 1,
		`{"hyperparameters":{"N_epochs":1}}`:              mostEpochs,
		`{"Hyperparameters":{"n_epochs":1}}`:              mostEpochs,
		`{"hyperparameters":{"n_epochs":1,"N_epochs":9}}`: -1,
		`{"method":{"type":"supervised","supervised":{"hyperparameters":{"n_epochs":2}}}}`:                                  2,
		`{"method":{"type":"supervised","supervised":{}},"hyperparameters":{"n_epochs":2}}`:                                 mostEpochs,
		`{"method":{"type":"supervised","supervised":{"hyperparameters":{"n_epochs":2}}},"hyperparameters":{"n_epochs":7}}`: 7,
		`{"method":{"type":"supervised","dpo":{"hyperparameters":{"n_epochs":2}}}}`:                                         mostEpochs,
		`{"method":{"type":"dpo","dpo":{"hyperparameters":{"n_epochs":2}}}}`:                                                4,
		`{"method":{"type":"reinforcement"}}`:                                                                               -1,
		`{"method":{"supervised":{"hyperparameters":{"n_epochs":2}}}}`:                                                      -1,
		`{"method":"supervised","hyperparameters":{"n_epochs":2}}`:                                                          -1,
		`{"method":null,"hyperparameters":{"n_epochs":2}}`:                                                                  2,
		`{"method":{"type":"supervised","supervised":{"hyperparameters":{"n_epochs":2}},"supervised":{}}}`:                  -1,
		`{"hyperparameters":{"n_epochs":2}}{"hyperparameters":{"n_epochs":9}}`:                                              -1,
	} {
		if got := trainingEpochs([]byte(body)); got != want {
			t.Errorf("%s: %d epochs, want %d", body, got, want)
		}
	}
}

// A line of a training file has at least a token for each byte of its texts, and the dearest image for each image,
// wherever it stands.
func TestTrainingTokens(t *testing.T) {
	const image = `{"type":"image_url","image_url":{"url":"https://a.b/c"}}`
	e := Endpoint{Provider: OpenAI, Model: "gpt-4o-2024-08-06"}
	for line, least := range map[string]int64{
		`{"messages":[{"role":"user","content":"` + strings.Repeat("é", 100) + `"}]}`: 200,
		`{"messages":[{"role":"user","content":[` + image + `]}]}`:                    boundImageGPT4,
		`{"messages":[{"role":"user","content":[` + image + `,` + image + `]}]}`:      2 * boundImageGPT4,
		`{"input":{"messages":[{"role":"user","content":[` + image + `]}]}}`:          boundImageGPT4,
		`{"prompt":"` + strings.Repeat("x", 50) + `","completion":"y"}`:               50,
	} {
		if got := trainingTokens(e, []byte(line)); got < least || got > 3*least+200 {
			t.Errorf("%.60s: %d tokens, want %d at least", line, got, least)
		}
	}
	for _, line := range []string{"", "no JSON", `[]`, `{"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"f"}}]}]}`} {
		if got := trainingTokens(e, []byte(line)); got != -1 {
			t.Errorf("%s: %d tokens, but nobody knows how many there are", line, got)
		}
	}
}

// What a file counts is added up and multiplied without overflow.
func TestStoredLinesDoNotOverflow(t *testing.T) {
	e := Endpoint{Provider: OpenAI, API: FineTuning}
	s, err := e.Stored("/v1/fine_tuning/jobs/", "application/json", []byte(`{"model":"gpt-4o","training_file":"f","hyperparameters":{"n_epochs":1e300}}`))
	if err != nil || s == nil || !slices.Equal(s.Paths, []string{"/v1/files/f/content"}) || !s.Lines {
		t.Fatalf("%+v, %v", s, err)
	}
	line := []byte(`{"messages":[{"role":"user","content":"` + strings.Repeat("x", 1<<20) + `"}]}`)
	for range 3 {
		s.Add(line)
	}
	if q, err := s.Request(); err != nil || q.Units[llm.TrainedTokens] != mostLines || q.Model != "gpt-4o" || !q.Background {
		t.Errorf("%v %v, %v", q.Units, q.Model, err)
	}
}
