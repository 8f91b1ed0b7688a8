// Package books has the books: what calls have used, by hour and day, project, model and key.
//
// A line of the books is what one key of a project has used of one model within an hour. Only
// such lines are kept. What a node of the tree of projects has used is the sum of the lines of
// it and of all projects below it, so the sum of the children is always the parent's.
//
// The stores keep the lines; this package adds them up, and has no clock and no I/O.
package books

import (
	"strings"
	"unicode/utf8"

	"dappco.re/go/core/go-ratelimit/internal/kind"
)

// Unit is what the books count.
type Unit int

// The units of a line.
const (
	Requests    Unit = iota // calls that were sent to a provider
	Input                   // tokens of prompts, including Cached and CacheWrite
	Cached                  // the part of Input that was read from a cache
	CacheWrite              // the part of Input that was written to a cache
	Output                  // tokens of answers, including Reasoning
	Reasoning               // the part of Output that is reasoning
	Nanodollars             // the price, in billionths of a dollar
	Denied                  // calls that were denied, and are not among Requests
	Waited                  // the part of Requests that has waited in line
	WaitTime                // how long these have waited, in nanoseconds

	Beside // the first of those that calls use beside tokens, which are in the order of llm.Units

	Units = Beside + Unit(len(kind.Beside)) // the number of units
)

var unitNames = func() (names [Units]string) {
	copy(names[:], []string{"requests", "input", "cached", "cache_write", "output", "reasoning", "nanodollars", "denied", "waited", "wait_time"})
	for i, u := range kind.Beside {
		names[int(Beside)+i] = u.Name()
	}
	return names
}()

// String returns the name of the unit, which is also the name of its column in SQLite.
func (u Unit) String() string { return unitNames[u] }

// Amounts is how much was used of each unit.
type Amounts [Units]int64

// IsShort reports whether the units from [Beside] on are all zero: stores keep such a line in its short form.
func (a *Amounts) IsShort() bool { return [Units - Beside]int64(a[Beside:]) == [Units - Beside]int64{} }

// MaxAmount is the largest amount of a line. Larger sums stay there.
const MaxAmount = 1 << 62

// maxEntry is the largest amount of one entry: far beyond any call, and far below MaxAmount.
const maxEntry = 1 << 50

// Add adds other to a. Negative amounts count as zero.
func (a *Amounts) Add(other *Amounts) {
	for u, n := range other {
		a[u] += min(max(n, 0), MaxAmount-a[u])
	}
}

// Owner says whose line it is: of which project, model and virtual key. Key is the id of the
// virtual key, or empty if the call had none.
type Owner struct{ Project, Model, Key string }

// Other stands for models and keys, or also projects, that have no line of their own because
// there are too many lines.
const Other = "(other)"

// Entry is what is entered on a line.
type Entry struct {
	Owner
	Amounts
}

// Line is what its owner has used in an hour, or in a day if Day is set.
type Line struct {
	At  int64 // when the hour or day began, in Unix seconds
	Day bool
	Entry
}

// Seconds of an hour and a day. Both are those of UTC, and have no leap seconds.
const (
	Hour = 3600
	Day  = 24 * Hour
)

// HourOf returns the beginning of the hour of a time. Both are Unix times: nanoseconds give seconds.
func HourOf(now int64) int64 { return floor(floor(now, 1e9)/1e9, Hour) }

// floor returns the largest multiple of period that is not above t.
func floor(t, period int64) int64 {
	return t - (t%period+period)%period
}

// maxName is how many bytes of a name are kept.
const maxName = 255

// Clean returns the entry with names and amounts that every store can keep: names are valid
// UTF-8 without NUL and have at most 255 bytes, and amounts are not negative.
func (e Entry) Clean() Entry {
	e.Project, e.Model, e.Key = cleanName(e.Project), cleanName(e.Model), cleanName(e.Key)
	for u := range e.Amounts {
		e.Amounts[u] = min(max(e.Amounts[u], 0), maxEntry)
	}
	return e
}

func cleanName(s string) string {
	if len(s) <= maxName && utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	for len(s) > maxName {
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
	return s
}
