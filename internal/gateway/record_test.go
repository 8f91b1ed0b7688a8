package gateway

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// The outcome of a provider's error is throttled or failed, and not passed.
func TestOutcomeOfProvidersAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		reply mockprovider.Reply
		want  Outcome
	}{
		"success":          {mockprovider.Reply{}, Passed},
		"429":              {mockprovider.Reply{Status: 429}, Throttled},
		"529":              {mockprovider.Reply{Status: 529}, Throttled},
		"503 that says so": {mockprovider.Reply{Status: 503, Header: retryAfter("7")}, Throttled},
		"503":              {mockprovider.Reply{Status: 503, Code: "down"}, Failed},
		"400":              {mockprovider.Reply{Status: 400}, Failed},
		"500":              {mockprovider.Reply{Status: 500}, Failed},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, oneOfEach, mockprovider.Config{Script: func(mockprovider.Call) mockprovider.Reply { return c.reply }})
			r.post(t, chat, hello)
			if last := r.last(t); last.Outcome != c.want {
				t.Errorf("%d is %s: want %s", last.Status, last.Outcome, c.want)
			}
		})
	}
}

// The code, the OpenAPI document and the documentation have the same outcomes.
func TestOutcomesAreTheSameEverywhere(t *testing.T) {
	want := []string{string(Passed), string(Denied), string(Refused), string(Throttled), string(Failed), string(Cut), string(Left), string(Lost)}
	var api struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct{ Enum []string }
			}
		}
	}
	text, err := os.ReadFile("admin/openapi.json")
	if err == nil {
		err = json.Unmarshal(text, &api)
	}
	if err != nil {
		t.Fatal(err)
	}
	testkit.Equal(t, "the outcomes of the OpenAPI document", want, api.Components.Schemas["Decision"].Properties["outcome"].Enum)
	for _, name := range []string{"glossary.md", "gateway.md", "admin.md"} {
		text, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range want {
			if !strings.Contains(string(text), "`"+word+"`") {
				t.Errorf("%s does not have %s", name, word)
			}
		}
	}
}
