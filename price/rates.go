package price

import (
	"fmt"
	"slices"

	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/llm"
)

// Rate is the price of a million tokens, or of so many units as [Rates] says, in nanodollars. Zero is no price: the
// part costs what [Rates] says that it costs instead.
type Rate int64

// Free is the Rate of a part that costs nothing though the parts that it would otherwise be priced
// like do cost something.
const Free Rate = -1

// MaxRate is the highest Rate of tokens, and the highest price of a request: what is above is a mistake. MaxUnitRate is
// that of units.
const (
	MaxRate     = 100_000 * Dollar
	MaxUnitRate = 1_000 * Dollar
)

// String returns the rate for people: "$2.50", or "-" where there is none.
func (r Rate) String() string {
	if r == 0 {
		return "-"
	}
	return r.amount().String()
}

// amount returns what a million tokens cost.
func (r Rate) amount() Amount { return Amount(max(r, 0)) }

// MarshalJSON writes the rate as a number of dollars.
func (r Rate) MarshalJSON() ([]byte, error) { return r.amount().MarshalJSON() }

// UnmarshalJSON reads a number of dollars; 0 is [Free].
func (r *Rate) UnmarshalJSON(text []byte) error {
	var a Amount
	err := a.UnmarshalJSON(text)
	*r = RateOf(a)
	return err
}

// RateOf returns the Rate of a part of which a million tokens cost an amount: [Free] if it is zero.
func RateOf(a Amount) Rate {
	if a == 0 {
		return Free
	}
	return Rate(a)
}

// Rates are the prices of the parts of a call. A part without a price costs what its kind costs:
// whatever is read costs what Input does, and whatever is generated costs what Output does. Without
// these, it costs nothing.
type Rates struct {
	Input          Rate `json:"input,omitempty"`
	CachedInput    Rate `json:"cached_input,omitempty"`     // read from a cache
	CacheWrite     Rate `json:"cache_write,omitempty"`      // written to a cache for five minutes
	CacheWriteHour Rate `json:"cache_write_hour,omitempty"` // written to a cache for an hour; without a price, as CacheWrite
	AudioInput     Rate `json:"audio_input,omitempty"`
	CachedAudio    Rate `json:"cached_audio,omitempty"` // read from a cache; without a price, as AudioInput, and without that as CachedInput
	ImageInput     Rate `json:"image_input,omitempty"`

	Output      Rate `json:"output,omitempty"`
	Reasoning   Rate `json:"reasoning,omitempty"`
	AudioOutput Rate `json:"audio_output,omitempty"`
	ImageOutput Rate `json:"image_output,omitempty"`

	// Request is what each call costs beside its tokens.
	Request Amount `json:"request,omitempty"`

	// What calls use beside tokens: see [llm.Units]. Service tiers in percent do not change these prices.
	Image         Rate `json:"image,omitempty"`          // of each image
	AudioMinute   Rate `json:"audio_minute,omitempty"`   // of a minute, of which each second counts
	Characters    Rate `json:"characters,omitempty"`     // of a million characters
	WebSearches   Rate `json:"web_searches,omitempty"`   // of a thousand searches
	FileSearches  Rate `json:"file_searches,omitempty"`  // of a thousand searches
	Pages         Rate `json:"pages,omitempty"`          // of a thousand pages
	VideoSecond   Rate `json:"video_second,omitempty"`   // of each second
	Containers    Rate `json:"containers,omitempty"`     // of each container
	TokenHours    Rate `json:"token_hours,omitempty"`    // of a million tokens that are kept for an hour
	SearchUnits   Rate `json:"search_units,omitempty"`   // of a thousand search units
	TrainedTokens Rate `json:"trained_tokens,omitempty"` // of a million tokens that a model is trained with, in all epochs
	ByteDays      Rate `json:"byte_days,omitempty"`      // of a gigabyte, which is a billion bytes, that is kept for a day
}

// part is one of the Rates.
type part int

const (
	input part = iota
	cachedInput
	cacheWrite
	cacheWriteHour
	audioInput
	cachedAudio
	imageInput
	output
	reasoning
	audioOutput
	imageOutput
	firstUnit                                  // those of [llm.Units] follow
	parts     part = firstUnit + llm.UnitCount // how many there are
)

// names are those of the parts in files and break-downs.
var names = func() (names [parts]string) {
	copy(names[:], []string{
		"input", "cached_input", "cache_write", "cache_write_hour", "audio_input", "cached_audio", "image_input",
		"output", "reasoning", "audio_output", "image_output",
	})
	for i, u := range units {
		names[int(firstUnit)+i] = u.Price
	}
	return names
}()

// units has what is known of [llm.Units].
var units = [llm.UnitCount]kind.BesideUnit(kind.Beside)

// UnitNames returns the names of the prices of units, in the order of [llm.Units].
func UnitNames() []string { return slices.Clone(names[firstUnit:]) }

// million returns what a million of what a part counts cost at a rate, rounded up.
func (p part) million(r Rate) Amount {
	if p < firstUnit {
		return r.amount()
	}
	per := units[p-firstUnit].Per
	return (r.amount()*million + Amount(per) - 1) / Amount(per)
}

// most returns the highest rate of a part, and what it is the price of.
func (p part) most() (most Rate, of string) {
	if p < firstUnit {
		return MaxRate, "a million tokens"
	}
	return MaxUnitRate, units[p-firstUnit].PriceOf
}

// fields returns the rates by part.
func (r *Rates) fields() [parts]*Rate {
	return [parts]*Rate{
		&r.Input, &r.CachedInput, &r.CacheWrite, &r.CacheWriteHour, &r.AudioInput, &r.CachedAudio, &r.ImageInput,
		&r.Output, &r.Reasoning, &r.AudioOutput, &r.ImageOutput,
		&r.Image, &r.AudioMinute, &r.Characters, &r.WebSearches, &r.FileSearches, &r.Pages,
		&r.VideoSecond, &r.Containers, &r.TokenHours, &r.SearchUnits, &r.TrainedTokens, &r.ByteDays,
	}
}

// over returns the rates with those of others where they have none.
func (r Rates) over(others Rates) Rates {
	theirs := others.fields()
	for i, own := range r.fields() {
		if *own == 0 {
			*own = *theirs[i]
		}
	}
	if r.Request == 0 {
		r.Request = others.Request
	}
	return r
}

// percent returns so many percent of the rates of tokens, each rounded up.
func (r Rates) percent(p int) Rates {
	for i, own := range r.fields() {
		if *own > 0 && part(i) < firstUnit {
			*own = (*own*Rate(p) + 99) / 100
		}
	}
	r.Request = (r.Request*Amount(p) + 99) / 100
	return r
}

// check refuses rates that no model has.
func (r Rates) check() error {
	for i, own := range r.fields() {
		if most, of := part(i).most(); *own < Free || *own > most {
			return fmt.Errorf("ratelimit: %s is %v for %s: it must be from $0 to %v", names[i], Amount(*own), of, Amount(most))
		}
	}
	if r.Request < 0 || r.Request > MaxRate {
		return fmt.Errorf("ratelimit: request is %v: it must be from $0 to %v", r.Request, Amount(MaxRate))
	}
	return nil
}

// resolved returns the rates with a price for every part.
func (r Rates) resolved() Rates {
	either := func(own, kind Rate) Rate {
		if own != 0 {
			return own
		}
		return kind
	}
	r.Input = either(r.Input, Free)
	r.CachedInput = either(r.CachedInput, r.Input)
	r.CacheWrite = either(r.CacheWrite, r.Input)
	r.CacheWriteHour = either(r.CacheWriteHour, r.CacheWrite)
	r.CachedAudio = either(r.CachedAudio, either(r.AudioInput, r.CachedInput))
	r.AudioInput = either(r.AudioInput, r.Input)
	r.ImageInput = either(r.ImageInput, r.Input)
	r.Output = either(r.Output, Free)
	r.Reasoning = either(r.Reasoning, r.Output)
	r.AudioOutput = either(r.AudioOutput, r.Output)
	r.ImageOutput = either(r.ImageOutput, r.Output)
	return r
}
