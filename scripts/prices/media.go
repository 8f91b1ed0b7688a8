package main

import (
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/price"
)

// media are prices that the data set does not have: of models that are paid for by the image, the character, the second
// of video or the search. Behind the @ stands a variant: the quality and the size of images, and the size or resolution of
// videos; a call of which the variant has no entry costs what the model's own entry says, which is the dearest.
//
// All are second hand, read in November 2026 in pages that quote the providers' own. OpenAI's images:
// github.com/kevinhermawan/Canvas (model-info.json, of December 2023). That tts-1 costs 15 dollars for a million
// characters is what a bill shows: s-anand.net, "OpenAI TTS cost", of November 2025; tts-1-hd is twice as dear. Sora:
// anttisahla.com/ai/models/sora-2, of April 2026. Imagen: discuss.ai.google.dev, topic 101173. Veo 3.1:
// github.com/api-evangelist/deepmind, of October 2026, and abzglobal.net ("Why AI video generation is much more
// expensive"), of 2026. Containers: simoncarter.ai, "OpenAI Container Sessions Now Billed Per Minute", of 2026, which
// has the price of 20 minutes by the memory; one of 1 GB is a quarter of one of 4 GB. Titan: the price lists of several
// public repositories agree. Rankings: artificial-intelligence-wiki.com, "Cohere Rerank Guide", of December 2025. Vector
// stores, of which a search that no tool makes costs nothing: hivebook.wiki, "OpenAI Vector Stores API", of May 2026.
//
// No page that was read has these, which are from memory: Sora's dearest size, and Veo 2 and 3.0. Check them against your
// bill, and set your own in the configuration's prices.
var media = []struct {
	provider string
	ids      []string
	rates    price.Rates
}{
	{"openai", []string{"dall-e-2@256x256"}, price.Rates{Image: 16_000_000}},
	{"openai", []string{"dall-e-2@512x512"}, price.Rates{Image: 18_000_000}},
	{"openai", []string{"dall-e-2"}, price.Rates{Image: 20_000_000}},
	{"openai", []string{"dall-e-3@standard-1024x1024"}, price.Rates{Image: 40_000_000}},
	{"openai", []string{"dall-e-3@standard-1024x1792", "dall-e-3@standard-1792x1024", "dall-e-3@hd-1024x1024"}, price.Rates{Image: 80_000_000}},
	{"openai", []string{"dall-e-3"}, price.Rates{Image: 120_000_000}},
	{"openai", []string{"tts-1"}, price.Rates{Characters: 15 * price.Dollar}},
	{"openai", []string{"tts-1-hd"}, price.Rates{Characters: 30 * price.Dollar}},
	{"openai", []string{"container"}, price.Rates{Containers: 30_000_000}},
	{"openai", []string{"vector_store"}, price.Rates{FileSearches: price.Free, ByteDays: price.Dollar / 10}},
	{"openai", []string{"sora-2"}, price.Rates{VideoSecond: 100_000_000}},
	{"openai", []string{"sora-2-pro@720x1280", "sora-2-pro@1280x720"}, price.Rates{VideoSecond: 300_000_000}},
	{"openai", []string{"sora-2-pro@1024x1792", "sora-2-pro@1792x1024"}, price.Rates{VideoSecond: 500_000_000}},
	{"openai", []string{"sora-2-pro"}, price.Rates{VideoSecond: 700_000_000}},
	{"google", []string{"imagen-3.0-generate-002"}, price.Rates{Image: 30_000_000}},
	{"google", []string{"imagen-4.0-fast-generate-001"}, price.Rates{Image: 20_000_000}},
	{"google", []string{"imagen-4.0-generate-001"}, price.Rates{Image: 40_000_000}},
	{"google", []string{"imagen-4.0-ultra-generate-001"}, price.Rates{Image: 60_000_000}},
	{"google", []string{"veo-2.0-generate-001"}, price.Rates{VideoSecond: 350_000_000}},
	{"google", []string{"veo-3.0-generate-001"}, price.Rates{VideoSecond: 400_000_000}},
	{"google", []string{"veo-3.0-fast-generate-001"}, price.Rates{VideoSecond: 150_000_000}},
	{"google", []string{"veo-3.1-generate-preview@720p", "veo-3.1-generate-preview@1080p", "veo-3.1-generate-001@720p", "veo-3.1-generate-001@1080p"}, price.Rates{VideoSecond: 400_000_000}},
	{"google", []string{"veo-3.1-generate-preview", "veo-3.1-generate-001"}, price.Rates{VideoSecond: 600_000_000}},
	{"google", []string{"veo-3.1-fast-generate-preview@720p", "veo-3.1-fast-generate-preview@1080p", "veo-3.1-fast-generate-001@720p", "veo-3.1-fast-generate-001@1080p"}, price.Rates{VideoSecond: 150_000_000}},
	{"google", []string{"veo-3.1-fast-generate-preview", "veo-3.1-fast-generate-001"}, price.Rates{VideoSecond: 350_000_000}},
	{"aws", []string{"amazon.titan-embed-text-v2:0"}, price.Rates{Input: 20_000_000}},
	{"cohere", []string{"rerank-v3.5", "rerank-english-v3.0", "rerank-multilingual-v3.0"}, price.Rates{SearchUnits: 2 * price.Dollar}},
}

// extras are prices of what comes on top of the tokens of models whose names begin so, where the data set has none. Of two
// that fit, the first one counts. Second hand, too: searches of Gemini 3 by github.com/api-evangelist/deepmind, of October
// 2026, and of those before by discuss.ai.google.dev, topic 102927; what cached contents of Pro cost by the hour by topic
// 107349 there; searches of gpt-4o-search-preview by community.openai.com, topic 1363698. From memory, and in no page
// that was read: what cached contents of Flash cost by the hour. Anthropic bills containers by
// the hour, of which an answer does not say how many there were: a container costs the 0.05 dollars of an hour.
var extras = []struct {
	provider, prefix string
	rates            price.Rates
}{
	{"google", "gemini-1", price.Rates{WebSearches: 35 * price.Dollar, TokenHours: 9 * price.Dollar / 2}},
	{"google", "gemini-2.5-pro", price.Rates{WebSearches: 35 * price.Dollar, TokenHours: 9 * price.Dollar / 2}},
	{"google", "gemini-2", price.Rates{WebSearches: 35 * price.Dollar, TokenHours: price.Dollar}},
	{"google", "gemini-3-pro", price.Rates{WebSearches: 14 * price.Dollar, TokenHours: 9 * price.Dollar / 2}},
	{"google", "gemini-3.1-pro", price.Rates{WebSearches: 14 * price.Dollar, TokenHours: 9 * price.Dollar / 2}},
	{"google", "gemini-3", price.Rates{WebSearches: 14 * price.Dollar, TokenHours: price.Dollar}},
	{"openai", "gpt-4o-search-preview", price.Rates{WebSearches: 25 * price.Dollar}},
	{"anthropic", "claude-", price.Rates{Containers: 50_000_000}},
	{"openai", "gpt-", price.Rates{Containers: 30_000_000}},
	{"openai", "o", price.Rates{Containers: 30_000_000}},
}

// mapped are the models before Gemini 3 that search maps, and mapSearches is what a call costs that does: less than one
// that searches the web. Read in the notes of version 0.14.0 of github.com/iyulab/TokenMeter, of 2026.
var mapped = []string{"gemini-2.5-pro", "gemini-2.5-flash", "gemini-2.5-flash-lite"}

const mapSearches = 25 * price.Dollar

// addMaps adds a variant of each model of mapped, for calls that search maps alone.
func addMaps(p *provider) error {
	for _, m := range slices.Clone(p.Models) {
		if p.ID != "google" || !slices.Contains(mapped, m.ID) {
			continue
		}
		terms := m.Price.Terms()
		for i := range terms {
			terms[i].WebSearches = mapSearches
		}
		found, err := price.New(terms...)
		if err != nil {
			return err
		}
		p.Models = append(p.Models, model{ID: m.ID + "@maps", Price: found})
	}
	return nil
}

// trained are the models of OpenAI's that can be trained, with the price of a million tokens in all epochs. Second hand:
// gpt-4o and gpt-4o-mini by tokenmix.ai, "OpenAI Fine-Tuning Pricing Guide", of April 2026; gpt-3.5-turbo by a script at
// gist.github.com/vic4key, of January 2024. No page that was read has those of other models.
var trained = map[string]price.Rate{"gpt-4o": 25 * price.Dollar, "gpt-4o-mini": 3 * price.Dollar, "gpt-3.5-turbo": 8 * price.Dollar}

// addTraining adds the price of its training to a model of trained.
func (m *model) addTraining() (err error) {
	terms := m.Price.Terms()
	for i := range terms {
		terms[i].TrainedTokens = trained[m.ID]
	}
	m.Price, err = price.New(terms...)
	return err
}

// addMedia adds the models of media, and the prices of extras.
func addMedia(all []provider) error {
	for i := range all {
		var own []model // they come first, since a pattern of the data set may fit one of them
		for _, m := range media {
			for _, id := range m.ids {
				if m.provider != all[i].ID || slices.ContainsFunc(all[i].Models, func(known model) bool { return known.ID == id }) {
					continue
				}
				p, err := price.New(price.Terms{Rates: m.rates})
				if err != nil {
					return err
				}
				own = append(own, model{ID: id, Price: p})
			}
		}
		all[i].Models = append(own, all[i].Models...)
		for j := range all[i].Models {
			if err := all[i].Models[j].addExtras(all[i].ID); err != nil {
				return err
			}
			if m := &all[i].Models[j]; all[i].ID == "openai" && trained[m.ID] != 0 {
				if err := m.addTraining(); err != nil {
					return err
				}
			}
		}
		if err := addMaps(&all[i]); err != nil {
			return err
		}
	}
	return nil
}

// addExtras adds the prices of what comes on top of the tokens of a model. Models that are not paid for by tokens, and
// those that generate no text, have none of it.
func (m *model) addExtras(provider string) error {
	for _, e := range extras {
		terms := m.Price.Terms()
		if e.provider != provider || !strings.HasPrefix(m.ID, e.prefix) || terms[0].Output <= 0 {
			continue
		}
		for i := range terms {
			r := &terms[i].Rates
			if e.rates.Containers != 0 && r.WebSearches == 0 { // it has no tools of the provider
				continue
			}
			for to, extra := range map[*price.Rate]price.Rate{&r.WebSearches: e.rates.WebSearches, &r.TokenHours: e.rates.TokenHours, &r.Containers: e.rates.Containers} {
				if *to == 0 {
					*to = extra
				}
			}
		}
		p, err := price.New(terms...)
		m.Price = p
		return err
	}
	return nil
}
