package dialect

import (
	"bytes"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// Two invented providers, each in one registration: one with OpenAI's API, and one with an API of its own.
const (
	inventedCopy llm.Provider = "invented-copy"
	inventedOwn  llm.Provider = "invented-own"
	inventedAPI  API          = "invented-api"
)

var _ = register(dialect{
	provider:     inventedCopy,
	hosts:        []string{"api.invented-copy.test"},
	names:        nameRules{variant: []nameRule{without("-turbo")}},
	cachedIsFree: true,
	bucketPer:    func(llm.Window) time.Duration { return llm.Day },
})

var (
	inventedBound  = newBound()
	inventedInput  = newNumber()
	inventedOutput = newNumber()
)

var _ = register(dialect{
	provider: inventedOwn,
	hosts:    []string{"api.invented-own.test"},
	protocols: []protocol{{
		api: inventedAPI, paths: []string{"v9/sing"},
		fields:    []field{{name: "invented_stream", kind: fieldStream}, {name: "invented_limit", kind: fieldNumber, setting: inventedBound}},
		bounds:    []setting{inventedBound},
		boundName: "invented_limit",
		answers:   extend(commonTop, members{"invented_song": textNode, "invented_in": count(inventedInput), "invented_out": count(inventedOutput)}),
		events:    map[string]eventKind{"invented_end": eventEnd},
		requestID: "X-Invented-Id",
		keyHeader: "X-Invented-Key",
		refuse: func(_ Endpoint, r Refusal, fault object) object {
			return object{"invented_fault": r.Message}
		},
	}},
	fields:       []field{{name: "invented_lines", kind: fieldPrompts}},
	usage:        usageRules{input: inventedInput, output: inventedOutput},
	limitHeaders: []windowHeaders{{unit: llm.Requests, limit: "X-Invented-Limit", remaining: "X-Invented-Left", reset: "X-Invented-Reset", per: minutePer}},
	faults:       map[string]fault{"invented_too_much": faultLimit},
	errorAPI:     inventedAPI,
})

func TestACompatibleProviderNeedsOneRegistration(t *testing.T) {
	u, _ := url.Parse("https://api.invented-copy.test/v1/chat/completions")
	e, ok := Recognize(http.MethodPost, u)
	if want := (Endpoint{Provider: inventedCopy, API: Chat}); !ok || e != want {
		t.Fatalf("its call is of %+v: want %+v", e, want)
	}
	if !slices.Contains(Providers(), inventedCopy) || !CachedIsFree(inventedCopy) || BaseName(inventedCopy, "x-turbo") != "x" {
		t.Error("what it registers is not known")
	}
	h := http.Header{"X-Ratelimit-Limit-Tokens": {"9"}}
	if got := ReadLimits(inventedCopy, 200, h, nil, time.Now()).Windows; len(got) != 1 || got[0].Per != llm.Day {
		t.Errorf("its limits are %+v", got)
	}
}

func TestAProviderWithItsOwnAPINeedsOneRegistration(t *testing.T) {
	u, _ := url.Parse("https://api.invented-own.test/v9/sing")
	e, ok := Recognize(http.MethodPost, u)
	if want := (Endpoint{Provider: inventedOwn, API: inventedAPI}); !ok || e != want {
		t.Fatalf("its call is of %+v: want %+v", e, want)
	}
	body := []byte(`{"model":"bard","invented_lines":["la la la la"],"invented_limit":70}`)
	r, err := e.Read(body)
	if err != nil || r.Model != "bard" || r.MaxOutput != 70 || r.Prompt < 3 {
		t.Errorf("its request is %+v, %v", r, err)
	}
	if !r.SetMaxOutput(body, 7) {
		t.Error("its bound cannot be lowered")
	} else if edited, _ := r.Edited(body); !bytes.Contains(slices.Concat(edited...), []byte(`"invented_limit":7}`)) {
		t.Errorf("its bound was lowered to %s", slices.Concat(edited...))
	}
	m := NewMeter(inventedAPI, nil)
	m.Write([]byte("data: {\"invented_song\":\"la\"}\n\ndata: {\"type\":\"invented_end\",\"invented_in\":30,\"invented_out\":12}\n\n"))
	if got := m.Usage(); got.Input != 30 || got.Output != 12 || !got.Exact || !m.Ended() {
		t.Errorf("its usage is %+v", got)
	}
	h := http.Header{"X-Invented-Limit": {"9"}, "X-Invented-Left": {"1"}}
	if got := ReadLimits(inventedOwn, 200, h, nil, time.Now()).Windows; len(got) != 1 || got[0] != (windowOf(llm.Requests, time.Minute, 9, 1, 0)) {
		t.Errorf("its limits are %+v", got)
	}
	if got := ReadFault("invented_too_much", time.Now()); got.Cause != llm.RateLimited {
		t.Errorf("its fault means %+v", got)
	}
	if _, got := e.Refuse(Refusal{Status: 429, Message: "no"}); string(got) != `{"invented_fault":"no"}` {
		t.Errorf("it is refused with %s", got)
	}
	key := http.Header{}
	SetKey(inventedOwn, key, e, u.Path, "k")
	if key.Get("X-Invented-Key") != "k" || !slices.Contains(KeyHeaders(), "X-Invented-Key") || inventedAPI.RequestIDHeader() != "X-Invented-Id" {
		t.Errorf("its key is sent in %v", key)
	}
}

// Each of the headers of windows has a bit of its own.
func TestWindowHeadersHaveBits(t *testing.T) {
	if n := len(allWindowHeaders); n > 64 {
		t.Errorf("there are %d headers of windows, and 64 bits: see windowsByHeader", n)
	}
}
