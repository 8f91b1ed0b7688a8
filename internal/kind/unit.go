package kind

import "time"

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

	Units // how many there are
)

// units has what is known of each unit: the end of the keys of its counters, its name, what sentences call it, the
// name of what is counted, and how many of these are 1 of the unit. No scope limits both Tokens and AllTokens.
var units = [Units]struct {
	key, name, words, counted string
	parts                     int64
}{
	Requests:  {"requests", "requests", "requests", "requests", 1},
	Tokens:    {"tokens", "tokens", "tokens", "tokens", 1},
	Input:     {"input", "tokens", "input tokens", "tokens", 1},
	Output:    {"output", "tokens", "output tokens", "tokens", 1},
	Slots:     {"slots", "calls", "calls", "calls", 1},
	AllTokens: {"tokens", "tokens", "tokens", "tokens", 1},
	Dollars:   {"dollars", "dollars", "dollars", "nanodollars", 1_000_000_000},

	Images:       {"images", "images", "images", "images", 1},
	AudioSeconds: {"audio-seconds", "audio_seconds", "audio seconds", "audio seconds", 1},
	Characters:   {"characters", "characters", "characters", "characters", 1},
	WebSearches:  {"web-searches", "web_searches", "web searches", "web searches", 1},
	FileSearches: {"file-searches", "file_searches", "file searches", "file searches", 1},
	Pages:        {"pages", "pages", "pages", "pages", 1},
	VideoSeconds: {"video-seconds", "video_seconds", "video seconds", "video seconds", 1},
	Containers:   {"containers", "containers", "containers", "containers", 1},
	TokenHours:   {"token-hours", "token_hours", "token hours", "token hours", 1},
	SearchUnits:  {"search-units", "search_units", "search units", "search units", 1},

	TokensInFlight: {"tokens-in-flight", "tokens", "tokens", "tokens", 1},
	EnqueuedTokens: {"enqueued-tokens", "enqueued_tokens", "enqueued tokens", "enqueued tokens", 1},
	TrainedTokens:  {"trained-tokens", "trained_tokens", "trained tokens", "trained tokens", 1},
}

// Beside has the units of llm.Units, in their order.
var Beside = [...]Unit{Images, AudioSeconds, Characters, WebSearches, FileSearches, Pages, VideoSeconds, Containers, TokenHours, SearchUnits, TrainedTokens}

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
