package main

import (
	"encoding/json"
	"fmt"
	"testing"

	"dappco.re/go/core/go-ratelimit/llm"
	"github.com/tidwall/gjson"
)

const (
	fasterThanJSON = 5

	nameRead      = "llm.Endpoint.Read"
	nameUnmarshal = "json.Unmarshal"
	nameGJSON     = "gjson.GetManyBytes"
)

// requests compares reading what matters of requests with decoding them.
func requests(b *bench) (result, error) {
	var sum result
	for _, q := range bodies(b.sized) {
		name := "llm/request/" + q.name
		r, err := turns(b, q.contestants(), plenty, alone, make([]string, q.turn()))
		if err != nil {
			return result{}, err
		}
		rows := r.rows()
		for i, each := range q.readers() {
			rows[i].cells = []string{fmt.Sprintf("%.2f", float64(len(q.text))/rows[i].value), fmt.Sprintf("%.0f", each.allocs(q.text))}
		}
		rep := newCostReport(name, fmt.Sprintf("a chat request of %d bytes, one goroutine; %s", len(q.text), b.method()), "ns/request", rows)
		rep.columns = append(rep.columns, "GB/s", "allocations")
		sum.reports = append(sum.reports, rep)
		sum.checks = append(sum.checks, faster(name, named(rows, nameRead), named(rows, nameUnmarshal), fasterThanJSON))
		sum.notes = append(sum.notes, noise(name, medianOf(r.samples[0], sample.cores), 1)...)
	}
	return sum, nil
}

// turn is how many requests are read between two looks at the clock: about a megabyte.
func (q body) turn() int { return max(1<<20/len(q.text), 1) }

// reader is a way to find out what a request asks for. It reports whether it did.
type reader struct {
	name string
	kind kind
	read func(text []byte) bool
}

// readers all look for the model, whether it streams, how much it may write, and at the messages.
// Ours estimates the prompt beside that.
func (q body) readers() []reader {
	unmarshal := unmarshalTexts
	if q.image {
		unmarshal = unmarshalParts
	}
	return []reader{
		{nameRead, ours, readRequest},
		{nameUnmarshal, peer, unmarshal},
		{nameGJSON, peer, getMany},
	}
}

func (q body) contestants() []contestant {
	var all []contestant
	for _, r := range q.readers() {
		all = append(all, contestant{name: r.name, kind: r.kind, build: func(quota) instance {
			return instance{decide: func(keys []string) (n int) {
				for range keys {
					if r.read(q.text) {
						n++
					}
				}
				return n
			}}
		}})
	}
	return all
}

func (r reader) allocs(text []byte) float64 {
	const runs = 3
	return testing.AllocsPerRun(runs, func() { r.read(text) })
}

func readRequest(text []byte) bool {
	r, err := llm.Endpoint{Provider: llm.OpenAI, API: llm.Chat}.Read(text)
	return err == nil && r.Model == bodyModel && r.Stream && r.MaxOutput == bodyOutput && r.Prompt > 0
}

// fields are what a program that does it by encoding/json declares.
type fields[Content any] struct {
	Model     string
	Stream    bool
	MaxTokens int `json:"max_tokens"`
	Messages  []struct {
		Role    string
		Content Content
	}
}

func (f fields[Content]) complete() bool {
	return f.Model == bodyModel && f.Stream && f.MaxTokens == bodyOutput && len(f.Messages) > 1
}

func unmarshalTexts(text []byte) bool {
	var f fields[string]
	return json.Unmarshal(text, &f) == nil && f.complete()
}

// content is a string, or parts. A program that wants both leaves it for later.
func unmarshalParts(text []byte) bool {
	var f fields[json.RawMessage]
	return json.Unmarshal(text, &f) == nil && f.complete()
}

func getMany(text []byte) bool {
	found := gjson.GetManyBytes(text, "model", "stream", "max_tokens", "messages.#.role", "messages.#.content")
	return found[0].Str == bodyModel && found[1].Bool() && found[2].Int() == bodyOutput && len(found[3].Array()) > 1 && found[4].Exists()
}
