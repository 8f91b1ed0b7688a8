package main

import "dappco.re/go/core/go-ratelimit/price"

// media are prices that the data set does not have: of OpenAI's models that are paid for by the image and by the
// character. The variants of an image model are its quality and the size of its images; an image of
// which neither is known costs what the dearest does. All are second hand, read in November 2026 in pages that quote
// https://openai.com/api/pricing: images in github.com/kevinhermawan/Canvas (model-info.json, of December 2023). That tts-1 costs 15 dollars for a million
// characters is what a bill shows: s-anand.net, "OpenAI TTS cost", of November 2025; tts-1-hd is twice as dear.
var media = []struct {
	id    string
	rates price.Rates
}{
	{"dall-e-2@256x256", price.Rates{Image: 16_000_000}},
	{"dall-e-2@512x512", price.Rates{Image: 18_000_000}},
	{"dall-e-2", price.Rates{Image: 20_000_000}},
	{"dall-e-3@standard-1024x1024", price.Rates{Image: 40_000_000}},
	{"dall-e-3@standard-1024x1792", price.Rates{Image: 80_000_000}},
	{"dall-e-3@standard-1792x1024", price.Rates{Image: 80_000_000}},
	{"dall-e-3@hd-1024x1024", price.Rates{Image: 80_000_000}},
	{"dall-e-3", price.Rates{Image: 120_000_000}},
	{"tts-1", price.Rates{Characters: 15 * price.Dollar}},
	{"tts-1-hd", price.Rates{Characters: 30 * price.Dollar}},
}

// addMedia adds the models of media to those of OpenAI.
func addMedia(all []provider) error {
	for i := range all {
		if all[i].ID != "openai" {
			continue
		}
		for _, m := range media {
			p, err := price.New(price.Terms{Rates: m.rates})
			if err != nil {
				return err
			}
			all[i].Models = append(all[i].Models, model{ID: m.id, Price: p})
		}
	}
	return nil
}
