package project

import (
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/numeral"
	"dappco.re/go/core/go-ratelimit/price"
)

// Window is one of the limits of a project, a key or a run: so much in a period.
type Window struct {
	// Name is "minute", "hour" or "day" for requests; "tokens-minute", "tokens-hour",
	// "tokens-day" or "tokens-month"; "dollars-hour", "dollars-day", "dollars-week",
	// "dollars-month" or "dollars". Those of a run are "run-calls", "run-tokens" and
	// "run-dollars".
	Name     string
	Tokens   bool  // it limits tokens
	Dollars  bool  // it limits billionths of a dollar
	Count    int64 // of requests, if it limits neither
	Period   time.Duration
	Calendar bool // it begins as a calendar says, and is not any period
	Run      bool // it is of a run, and begins with its first call
	Most     bool // calls reserve the most of it that they can use: see [Reserve]
	Cut      bool // streams that need more of it than there is are cut off: see [OnOverrun]

	months *time.Location // the zone of calendar months that begin at midnight of the 1st; nil: it is another window
}

// String returns the window for people, such as "its 10 requests a minute".
func (w *Window) String() string {
	return "its " + w.amount(w.Count) + " " + w.per()
}

// amount returns an amount of what the window limits, for people: "$5,000.00", "10 requests".
func (w *Window) amount(n int64) string {
	switch {
	case w.Dollars:
		return price.Amount(n).String()
	case w.Tokens:
		return numeral.Grouped(n) + " tokens"
	}
	return numeral.Grouped(n) + " requests"
}

// quantity returns an amount of what the window limits without saying what that is: "$4.99", "10". It is
// rounded down, and at least 0.
func (w *Window) quantity(n int64) string {
	if w.Dollars {
		return price.Amount(max(n, 0)).Floor().String()
	}
	return numeral.Grouped(max(n, 0))
}

// short returns the window as Allow's errors name it, such as "1000 requests/minute".
func (w *Window) short() string {
	text := strings.ReplaceAll(w.amount(w.Count), ",", "")
	if w.Total() {
		return text + " in total"
	}
	return text + "/" + w.unit()
}

// per returns how often the window gives its count, such as "a minute".
func (w *Window) per() string {
	switch {
	case w.Total():
		return "in total"
	case w.Period == time.Hour:
		return "an hour"
	case w.Period == month && !w.Calendar:
		return "in 30 days"
	}
	return "a " + w.unit()
}

// Total reports whether the window gives its count once, and never again.
func (w *Window) Total() bool { return w.Run || w.Period > month }

const month = 30 * 24 * time.Hour

// unit returns the name of the period.
func (w *Window) unit() string {
	switch w.Period {
	case time.Minute:
		return "minute"
	case time.Hour:
		return "hour"
	case 24 * time.Hour:
		return "day"
	case 7 * 24 * time.Hour:
		return "week"
	}
	if w.Calendar {
		return "month"
	}
	return "30 days"
}
