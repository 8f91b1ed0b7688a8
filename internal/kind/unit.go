package kind

import (
	"strings"
	"time"
)

// Unit is what a limit counts: a row of units.
type Unit uint8

// Stores keep these numbers, so new units come last.
const (
	Requests  Unit = iota
	Tokens         // tokens that the provider counts, prompt and output together
	Input          // tokens of the prompt that the provider counts
	Output         // tokens of the output that the provider counts
	Slots          // calls under way
	AllTokens      // all tokens, also those that the provider does not count
	Dollars        // billionths of a dollar

	// Units beside tokens.
	Images
	AudioSeconds
	Characters
	WebSearches
	FileSearches
	Pages
	VideoSeconds
	Containers
	TokenHours
	SearchUnits

	TokensInFlight // all tokens that calls under way have reserved
	EnqueuedTokens // tokens of the prompts of batches that have not ended
	TrainedTokens  // tokens that a model is trained with: one of those beside tokens
	ByteDays       // bytes that the provider keeps, times the days: another one

	Units // how many there are
)

type unitRow struct {
	key, name, words, counted string
	parts                     int64
}

// units has what is known of each unit: the end of the keys of its counters, its name, what sentences call it, the
// name of what is counted, and how many of these are 1 of the unit. No scope limits both Tokens and AllTokens. The rows of
// those beside tokens are made from [Beside].
var units = [Units]unitRow{
	Requests:  {"requests", "requests", "requests", "requests", 1},
	Tokens:    {"tokens", "tokens", "tokens", "tokens", 1},
	Input:     {"input", "tokens", "input tokens", "tokens", 1},
	Output:    {"output", "tokens", "output tokens", "tokens", 1},
	Slots:     {"slots", "calls", "calls", "calls", 1},
	AllTokens: {"tokens", "tokens", "tokens", "tokens", 1},
	Dollars:   {"dollars", "dollars", "dollars", "nanodollars", 1_000_000_000},

	TokensInFlight: {"tokens-in-flight", "tokens", "tokens", "tokens", 1},
	EnqueuedTokens: {"enqueued-tokens", "enqueued_tokens", "enqueued tokens", "enqueued tokens", 1},
}

// A BesideUnit is what is known of a unit that calls use beside tokens.
type BesideUnit struct {
	Unit
	name    string
	Heading string // of a narrow column
	Means   string // what is counted, in words
	Price   string // the name of its price
	Per     int64  // of how many units that is the price
	PriceOf string // these, in words
	Apart   bool   // it is billed on top of a call's tokens, so that a price of these does not include it
	Example int64  // how many a call uses that pays for nothing else; 0: there is no such call
}

// Beside has the units of llm.Units, in their order. A new unit is a row here, its places in [Unit] and in llm.Units, and
// a field in each struct that has one for each unit: project.Limit, price.Rates and gateway.UsageSum.
var Beside = [...]BesideUnit{
	{Images, "images", "images", "images that are generated", "image", 1, "an image", false, 1},
	{AudioSeconds, "audio_seconds", "audio (s)", "seconds of audio that are read", "audio_minute", 60, "a minute of audio", false, 60},
	{Characters, "characters", "characters", "characters that are spoken", "characters", million, "a million characters", false, 1000},
	{WebSearches, "web_searches", "web searches", "searches of the web that the provider makes", "web_searches", 1000, "a thousand web searches", true, 0},
	{FileSearches, "file_searches", "file searches", "searches of stored files that the provider makes", "file_searches", 1000, "a thousand file searches", true, 0},
	{Pages, "pages", "pages", "pages of documents that are read", "pages", 1000, "a thousand pages", false, 1},
	{VideoSeconds, "video_seconds", "video (s)", "seconds of video that are generated", "video_second", 1, "a second of video", false, 8},
	{Containers, "containers", "containers", "containers in which the provider runs code", "containers", 1, "a container", true, 0},
	{TokenHours, "token_hours", "token hours", "tokens that the provider keeps, times the hours", "token_hours", million, "a million tokens kept for an hour", true, 0},
	{SearchUnits, "search_units", "search units", "searches in the documents of a request, as a ranking is billed", "search_units", 1000, "a thousand search units", false, 1},
	{TrainedTokens, "trained_tokens", "trained tokens", "tokens that a model is trained with, in all epochs", "trained_tokens", million, "a million trained tokens", true, 0},
	{ByteDays, "byte_days", "byte days", "bytes that the provider keeps, times the days", "byte_days", 1000 * million, "a gigabyte kept for a day", true, 0},
}

const million = 1_000_000

func init() {
	for i, u := range Beside {
		words := strings.ReplaceAll(u.name, "_", " ")
		units[u.Unit] = unitRow{strings.ReplaceAll(u.name, "_", "-"), u.name, words, words, 1}
		for j, w := range besideWindows {
			table[int(firstBeside)+len(besideWindows)*i+j] = row{u.name + "_per_" + w.Name(), u.Unit, w, Project, ""}
		}
	}
}

// Counted returns what counters count of the unit with a name: "nanodollars" of "dollars".
func Counted(name string) string {
	for _, u := range units {
		if u.name == name {
			return u.counted
		}
	}
	return name
}

// String returns the end of the keys of the unit's counters.
func (u Unit) String() string { return units[u].key }

// Name returns what the unit is called: "tokens" for tokens of any sort, "calls" for slots.
func (u Unit) Name() string { return units[u].name }

// Words returns what sentences call the unit: "input tokens".
func (u Unit) Words() string { return units[u].words }

// Counted returns the name of what counters count: "nanodollars" of dollars.
func (u Unit) Counted() string { return units[u].counted }

// Parts returns how many of what counters count are 1 of the unit: 1,000,000,000 of dollars.
func (u Unit) Parts() int64 { return units[u].parts }

// InFlight reports whether a call holds what it takes of the unit while it is under way, and gives all of it back when it
// ends: a slot, or tokens in flight.
func (u Unit) InFlight() bool { return u == Slots || u == TokensInFlight }

// IsMoney reports whether amounts of the unit are written as money.
func (u Unit) IsMoney() bool { return u == Dollars }

// Window is the time in which a limit counts: a row of windows, the shortest first.
type Window uint8

const (
	Minute Window = iota
	Hour
	Day
	Week
	Month
	Total   // a total never comes back
	AtATime // calls under way count
)

// windows has what is known of each window: its name, what follows an amount in a sentence and in a column, what the
// time is if no calendar says when it begins, and how long it is.
var windows = [...]struct {
	name, per, short, any string
	period                time.Duration
}{
	Minute:  {"minute", "a minute", "/min", "in any minute", time.Minute},
	Hour:    {"hour", "an hour", "/hour", "in any hour", time.Hour},
	Day:     {"day", "a day", "/day", "in any 24 hours", 24 * time.Hour},
	Week:    {"week", "a week", "/week", "in any 7 days", 7 * 24 * time.Hour},
	Month:   {"month", "a month", "/month", "in any 30 days", 30 * 24 * time.Hour},
	Total:   {"total", "in total", " in total", "in total", 0},
	AtATime: {"at a time", "at a time", " at a time", "at a time", 0},
}

// Name returns what the window is called: "minute".
func (w Window) Name() string { return windows[w].name }

// Per returns what follows an amount in a sentence: "a minute".
func (w Window) Per() string { return windows[w].per }

// Short returns what follows an amount in a column: "/min".
func (w Window) Short() string { return windows[w].short }

// Any returns which time it is if no calendar says when the window begins: "in any 24 hours".
func (w Window) Any() string { return windows[w].any }

// Period returns how long the window is: 0 for a total, and for calls at a time.
func (w Window) Period() time.Duration { return windows[w].period }
