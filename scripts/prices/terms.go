package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/price"
)

// dated is prices of the data set, which hold from a date on, or at times of the day.
type dated struct {
	Constraint struct {
		Type  string `json:"type"`
		Start string `json:"start_date"`
	} `json:"constraint"`
	Prices map[string]value `json:"prices"`
}

// value is a price, or prices by the size of the prompt.
type value struct {
	Base  json.Number `json:"base"`
	Tiers []struct {
		Start json.Number `json:"start"` // may be written 272e3
		Price json.Number `json:"price"`
	} `json:"tiers"`
}

func (v *value) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(text, []byte("{")) {
		type fields value
		return json.Unmarshal(text, (*fields)(v))
	}
	v.Base = json.Number(text)
	return nil
}

// fields returns the rates of the data set's names.
func fields(r *price.Rates) map[string]*price.Rate {
	return map[string]*price.Rate{
		"input_mtok": &r.Input, "cache_read_mtok": &r.CachedInput, "cache_write_mtok": &r.CacheWrite,
		"cache_write_1h_mtok": &r.CacheWriteHour, "input_audio_mtok": &r.AudioInput, "cache_audio_read_mtok": &r.CachedAudio,
		"input_image_mtok": &r.ImageInput, "output_mtok": &r.Output, "output_reasoning_mtok": &r.Reasoning,
		"output_audio_mtok": &r.AudioOutput, "output_image_mtok": &r.ImageOutput,
		"web_searches_kcount": &r.WebSearches, "storage_searches_kcount": &r.FileSearches,
	}
}

// beside is the prices that are left out: they are for what a usage does not report.
var beside = []string{
	"cache_image_read_mtok", "input_video_mtok", "output_video_mtok", "output_citation_mtok", "input_text_messages_kcount",
}

// setUnits sets the prices of audio and of pages, and reports whether the name is one of theirs. Of several, the highest
// counts: of pages with and without annotations, say, since an answer does not show which they are.
func setUnits(r *price.Rates, name string, base price.Amount) bool {
	switch name {
	case "audio_hours", "input_audio_hours":
		r.AudioMinute = max(r.AudioMinute, price.RateOf((base+59)/60))
	case "input_document_kpages", "input_annotated_document_kpages":
		r.Pages = max(r.Pages, price.RateOf(base))
	default:
		return false
	}
	return true
}

// termsOf reads the prices of a model, or nil if nothing has one. Prices for times of the day count
// at any time where they are higher.
func termsOf(text json.RawMessage) ([]price.Terms, error) {
	var all []dated
	if bytes.HasPrefix(text, []byte("[")) {
		if err := json.Unmarshal(text, &all); err != nil {
			return nil, err
		}
	} else if all = make([]dated, 1); json.Unmarshal(text, &all[0].Prices) != nil {
		return nil, fmt.Errorf("unknown prices: %s", text)
	}
	var terms, hours []price.Terms
	for _, d := range all {
		t, err := d.terms()
		switch {
		case err != nil || t == nil:
			return nil, err
		case d.Constraint.Type == "time_of_date":
			hours = append(hours, *t)
		default:
			terms = append(terms, *t)
		}
	}
	for i := range terms {
		for _, h := range hours {
			raise(&terms[i].Rates, h.Rates)
		}
	}
	return terms, nil
}

// raise lifts rates to those of others where they are higher.
func raise(to *price.Rates, others price.Rates) {
	theirs := fields(&others)
	for name, rate := range fields(to) {
		*rate = max(*rate, *theirs[name])
	}
}

// terms returns nil if nothing has a price.
func (d *dated) terms() (*price.Terms, error) {
	t := &price.Terms{}
	if d.Constraint.Start != "" {
		from, err := time.Parse(time.DateOnly, d.Constraint.Start)
		if err != nil {
			return nil, err
		}
		t.From = from
	}
	priced := len(d.Prices) == 0 // a model without any price is free
	rates := fields(&t.Rates)
	for name, v := range d.Prices {
		base, err := dollars(v.Base)
		switch rate := rates[name]; {
		case err != nil:
			return nil, err
		case rate != nil:
			priced = true
			*rate = price.RateOf(base)
			err = v.addTiers(t, name)
		case name == "requests_kcount":
			t.Request, priced = (base+999)/1000, true
		case setUnits(&t.Rates, name, base):
			priced = true
		case !slices.Contains(beside, name):
			err = fmt.Errorf("an unknown price: %s", name)
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(t.Above, func(a, b price.Above) int { return a.Tokens - b.Tokens })
	if !priced {
		return nil, nil
	}
	return t, nil
}

// addTiers adds the prices above the size of a prompt.
func (v *value) addTiers(t *price.Terms, name string) error {
	for _, tier := range v.Tiers {
		start, err := dollars(tier.Start)
		tokens := int(start / price.Dollar)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(t.Above, func(a price.Above) bool { return a.Tokens == tokens })
		if i < 0 {
			i = len(t.Above)
			t.Above = append(t.Above, price.Above{Tokens: tokens})
		}
		amount, err := dollars(tier.Price)
		if err != nil {
			return err
		}
		*fields(&t.Above[i].Rates)[name] = price.RateOf(amount)
	}
	return nil
}
