package admin

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// naive is a document as a map, patched as RFC 7396 says.
type naive map[string]any

func (n naive) patch(patch map[string]any) {
	for name, value := range patch {
		inner, nested := value.(map[string]any)
		switch {
		case value == nil:
			delete(n, name)
		case nested:
			below, _ := n[name].(map[string]any)
			if below == nil {
				below = map[string]any{}
			}
			naive(below).patch(inner)
			if n[name] = below; len(below) == 0 {
				delete(n, name) // an empty object limits nothing
			}
		default:
			n[name] = value
		}
	}
}

// values are what random changes set a field of a project to.
var values = map[string][]any{
	"requests_per_minute": {1.0, 60.0}, "requests_per_day": {5.0, 9e15}, "tokens_per_month": {7.0, 1e6}, "max_concurrent": {3.0},
	"dollars_per_day": {0.5, 12.25}, "dollars": {9007199.0}, "weight": {1.0, 1048576.0}, "priority": {-1000.0, 4.0},
	"max_share": {"50%", "12.5%"}, "paused": {true}, "reserve": {"most", "expected"}, "on_overrun": {"debt", "cut"}, "max_wait": {1.5, 86400.0}, "fit": {true, false}, "fit_min": {16.0, 500.0}, "unknown_usage": {"seen"}, "failed_calls": {"free", "reserved"}, "models": {[]any{"gpt-4o"}, []any{"a*", "b"}},
	"resets": {map[string]any{"zone": "Europe/Berlin"}, map[string]any{"zone": nil}, map[string]any{"at": "06:00", "month": 3.0}, map[string]any{"month": nil, "at": nil}},
}

// switched are the fields that a PUT leaves as they are.
var switched = []string{"paused", "max_wait", "models", "fit", "fit_min", "unknown_usage", "failed_calls"}

// Random sequences of changes lead to what a naive model says, and each says before what it lifts.
func TestRandomChanges(t *testing.T) {
	r := newRig(t, usual)
	for seed := range uint64(testkit.Rounds(8, 30)) {
		random := rand.New(rand.NewPCG(seed, 1))
		path := fmt.Sprintf("/v1/projects/search/p%d", seed) // below a project of the file, so that the default limit does not apply
		model := naive{}
		for range 30 {
			patch := map[string]any{}
			for name, choices := range values {
				switch random.IntN(6) {
				case 0:
					patch[name] = choices[random.IntN(len(choices))]
				case 1:
					patch[name] = nil
				}
			}
			if random.IntN(4) > 0 {
				body, _ := json.Marshal(patch)
				r.want(t, 200, "PATCH", path, string(body))
				model.patch(patch)
			} else {
				model = putRandom(t, r, path, model, patch)
			}
			text, _ := json.Marshal(r.projectSettings(strings.TrimPrefix(path, "/v1/projects/")))
			got := naive{}
			json.Unmarshal(text, &got)
			if !reflect.DeepEqual(model, got) {
				t.Fatalf("seed %d, after %v: %v: want %v", seed, patch, got, model)
			}
		}
	}
}

// putRandom replaces the limit of a project, and returns what the model is then: what it was, if the PUT
// would have lifted a limit.
func putRandom(t *testing.T, r *rig, path string, model naive, patch map[string]any) naive {
	t.Helper()
	next := naive{}
	next.patch(patch)
	for _, name := range switched {
		delete(next, name)
	}
	body, _ := json.Marshal(next)
	var lifted []string
	for name := range model {
		if _, stays := next[name]; !stays && (strings.Contains(name, "_per_") || name == "dollars" || name == "max_concurrent" || name == "max_share") {
			lifted = append(lifted, name)
		}
	}
	slices.Sort(lifted)
	if len(lifted) > 0 {
		p := as[Problem](t, r.want(t, 409, "PUT", path, string(body)))
		testkit.Equal(t, "what would be lifted", lifted, p.Lifted)
	}
	p := as[Project](t, r.want(t, 200, "PUT", path+"?replace=true", string(body)))
	testkit.Equal(t, "what was lifted", lifted, p.Lifted)
	for _, name := range switched {
		if value, ok := model[name]; ok {
			next[name] = value
		}
	}
	return next
}

// Any patch is either applied or refused with a text that says what is wrong.
func FuzzPatch(f *testing.F) {
	for _, text := range []string{`{}`, `{"max_rpm": null}`, `{"count": {"output": 5}}`, `{"a": {"a": {}}}`, `{"max_rpm": 1, "max_rpm": 2}`, `{"margin": "2s"}`, `{"paused": true}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) || !strings.HasPrefix(text, "{") {
			return // readPatch refuses it
		}
		after, err := merge(QuotaSettings{}, []byte(text), "model")
		if err != nil {
			if p := problemOf(err); p.Status != 400 || p.Detail == "" {
				t.Errorf("%+v", p)
			}
			return
		}
		if again, err := merge(after, []byte(text), "model"); err != nil || !reflect.DeepEqual(after, again) {
			t.Errorf("%s applied twice: %+v, then %+v, %v", text, after, again, err)
		}
	})
}
