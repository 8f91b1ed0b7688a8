package decision

import (
	"fmt"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/internal/numeral"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/price"
)

// Window is one of the limits of a project, a key or a run: so much in a period.
type Window struct {
	// Name is that of the field of the configuration that sets the limit, such as "tokens_per_day" or
	// "dollars". Those of a run are "runs.calls", "runs.tokens" and "runs.dollars".
	Name     string
	Unit     string        // what it limits: [Requests], [Tokens] or [Dollars]
	Count    int64         // how much: of dollars, in billionths
	Period   time.Duration // 0: calls under way count
	Calendar bool          // it begins as a calendar says, and is not any period
	Run      bool          // it is of a run, and begins with its first call
	Most     bool          // calls reserve the most of it that they can use: see Reserve of package project
	Cut      bool          // streams that need more of it than there is are cut off: see OnOverrun of package project

	kind     kind.Kind
	exceeded error          // says that a request was denied by the window
	months   *time.Location // the zone of calendar months that begin at midnight of the 1st; nil: it is another window
}

// NewWindow returns the window of a limit of a kind.
func NewWindow(k kind.Kind, l limit.Limit, calendar bool) Window {
	w := Window{
		Name: k.Name(), Unit: k.Unit().Name(), kind: k,
		Count: l.Count(), Period: l.Period(), Calendar: calendar && l.Algorithm() == limit.FixedWindow,
	}
	if w.AtATime() {
		w.Period = 0
	}
	w.exceeded = fmt.Errorf("%w: %s", ErrExceeded, w.short())
	return w
}

// NameMonths has a window that is a month of the calendar in a zone called by the month's name.
func NameMonths(w *Window, zone *time.Location) {
	if w.Calendar && w.kind.Window() == kind.Month {
		w.months = zone
	}
}

// String returns the window for people, such as "its 10 requests a minute".
func (w *Window) String() string {
	return "its " + w.amount(w.Count) + " " + w.per()
}

// What windows limit.
const (
	Requests = "requests"
	Tokens   = "tokens"
	Dollars  = "dollars"
)

// amount returns an amount of what the window limits, for people: "$5,000.00", "10 requests".
func (w *Window) amount(n int64) string {
	if w.kind.Unit().IsMoney() {
		return price.Amount(n).String()
	}
	return numeral.Grouped(n) + " " + w.kind.Unit().Words()
}

// quantity returns an amount of what the window limits without saying what that is: "$4.99", "10". It is
// rounded down, and at least 0.
func (w *Window) quantity(n int64) string {
	if w.kind.Unit().IsMoney() {
		return price.Amount(max(n, 0)).Floor().String()
	}
	return numeral.Grouped(max(n, 0))
}

// short returns the window as Allow's errors name it, such as "1000 requests/minute".
func (w *Window) short() string {
	text := strings.ReplaceAll(w.amount(w.Count), ",", "")
	if w.Total() || w.AtATime() {
		return text + " " + w.per()
	}
	return text + "/" + w.unit()
}

// per returns how often the window gives its count, such as "a minute".
func (w *Window) per() string {
	if w.kind.Window() == kind.Month && !w.Calendar {
		return "in 30 days"
	}
	return w.kind.Window().Per()
}

// Total reports whether the window gives its count once, and never again.
func (w *Window) Total() bool { return w.Run || w.Period > month }

// AtATime reports whether the window limits what calls under way hold, which comes back when they end.
func (w *Window) AtATime() bool { return w.kind.Window() == kind.AtATime }

const month = 30 * 24 * time.Hour

// unit returns the name of the period.
func (w *Window) unit() string {
	if w.kind.Window() == kind.Month && !w.Calendar {
		return "30 days"
	}
	return w.kind.Window().Name()
}
