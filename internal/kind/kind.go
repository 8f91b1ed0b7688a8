// Package kind has the one table of the kinds of limits. Configuration, admin API, commands, metrics, events, reasons
// and documents read it, so that a limit has one name everywhere, and a new kind is a row here and a field of the
// public struct that it is set with.
package kind

import (
	"slices"
	"strings"
	"time"
)

// Kind is a kind of limit: its place in the table.
type Kind uint8

// Those of a model come first, and MaxEnqueuedTokens is the last of them.
const (
	MaxRPM Kind = iota
	MaxTPM
	MaxRPD
	MaxInputTPM
	MaxOutputTPM
	MaxTPD
	MaxConcurrent
	MaxTokensInFlight
	MaxEnqueuedTokens

	RequestsPerMinute
	RequestsPerHour
	RequestsPerDay
	TokensPerMinute
	TokensPerHour
	TokensPerDay
	TokensPerMonth
	DollarsPerHour
	DollarsPerDay
	DollarsPerWeek
	DollarsPerMonth
	DollarsInTotal
	firstBeside // limits of the units beside tokens, in the order of [Beside]
)

const (
	ProjectConcurrent = firstBeside + Kind(len(Beside)*len(besideWindows)) + iota
	ProjectTokensInFlight

	RunCalls
	RunTokens
	RunDollars

	kinds
)

// besideWindows are the windows of which each unit beside tokens has a limit.
var besideWindows = [...]Window{Day, Month}

// Models is how many kinds of limits a model has.
const Models = MaxEnqueuedTokens + 1

// row is what is known of a kind.
type row struct {
	name   string
	unit   Unit
	window Window
	owner  Owner
	key    string // what stores know the limit by, if that is not its name
}

// table has the kinds in the order in which they are shown, and written to files. The rows of units beside tokens are made
// from [Beside].
var table = [kinds]row{
	MaxRPM:            {"max_rpm", Requests, Minute, Model, ""},
	MaxTPM:            {"max_tpm", Tokens, Minute, Model, ""},
	MaxRPD:            {"max_rpd", Requests, Day, Model, ""},
	MaxInputTPM:       {"max_input_tpm", Input, Minute, Model, ""},
	MaxOutputTPM:      {"max_output_tpm", Output, Minute, Model, ""},
	MaxTPD:            {"max_tpd", Tokens, Day, Model, ""},
	MaxConcurrent:     {"max_concurrent", Slots, AtATime, Model, ""},
	MaxTokensInFlight: {"max_tokens_in_flight", TokensInFlight, AtATime, Model, ""},
	MaxEnqueuedTokens: {"max_enqueued_tokens", EnqueuedTokens, AtATime, Model, ""},

	RequestsPerMinute: {"requests_per_minute", Requests, Minute, Project, ""},
	RequestsPerHour:   {"requests_per_hour", Requests, Hour, Project, "hour"},
	RequestsPerDay:    {"requests_per_day", Requests, Day, Project, "day"},
	TokensPerMinute:   {"tokens_per_minute", AllTokens, Minute, Project, ""},
	TokensPerHour:     {"tokens_per_hour", AllTokens, Hour, Project, "tokens-hour"},
	TokensPerDay:      {"tokens_per_day", AllTokens, Day, Project, "tokens-day"},
	TokensPerMonth:    {"tokens_per_month", AllTokens, Month, Project, "tokens-month"},
	DollarsPerHour:    {"dollars_per_hour", Dollars, Hour, Project, "dollars-hour"},
	DollarsPerDay:     {"dollars_per_day", Dollars, Day, Project, "dollars-day"},
	DollarsPerWeek:    {"dollars_per_week", Dollars, Week, Project, "dollars-week"},
	DollarsPerMonth:   {"dollars_per_month", Dollars, Month, Project, "dollars-month"},
	DollarsInTotal:    {"dollars", Dollars, Total, Project, ""},

	ProjectConcurrent:     {"projects.max_concurrent", Slots, AtATime, Project, ""},
	ProjectTokensInFlight: {"projects.max_tokens_in_flight", TokensInFlight, AtATime, Project, ""},

	RunCalls:   {"runs.calls", Requests, Total, Run, "run-calls"},
	RunTokens:  {"runs.tokens", AllTokens, Total, Run, "run-tokens"},
	RunDollars: {"runs.dollars", Dollars, Total, Run, "run-dollars"},
}

// Owner is what has limits of a kind.
type Owner string

const (
	Model   Owner = "model"
	Project Owner = "project" // and users and keys, which have the same kinds
	Run     Owner = "run"
)

// Of returns the kinds of limits that an owner has.
func Of(owner Owner) (list []Kind) {
	for k := range kinds {
		if table[k].owner == owner {
			list = append(list, k)
		}
	}
	return list
}

// Named returns the kind of limit with a name.
func Named(name string) (Kind, bool) {
	i := slices.IndexFunc(table[:], func(r row) bool { return r.name == name })
	return Kind(max(i, 0)), i >= 0
}

// Reported returns the kind of a model's limit for what a provider calls it: tokens, say, in a time.
func Reported(unit string, per time.Duration) (Kind, bool) {
	for k := range Models {
		if k.Window().Period() == per && per > 0 && k.Unit().Words() == unit {
			return k, true
		}
	}
	return 0, false
}

// Name returns the limit's name, which is that of the setting. Where a model has a setting of the same name, or
// a project, the section of the configuration stands before it: "runs.dollars".
func (k Kind) Name() string { return table[k].name }

// String returns the name.
func (k Kind) String() string { return k.Name() }

// Setting returns the name of the field that sets the limit, in the configuration and in JSON.
func (k Kind) Setting() string {
	return k.Name()[strings.IndexByte(k.Name(), '.')+1:]
}

// Flag returns the name of the flag that sets the limit.
func (k Kind) Flag() string { return strings.ReplaceAll(k.Setting(), "_", "-") }

// Unit returns what the limit counts.
func (k Kind) Unit() Unit { return table[k].unit }

// Window returns the time in which the limit counts.
func (k Kind) Window() Window { return table[k].window }

// Owner returns what has limits of the kind.
func (k Kind) Owner() Owner { return table[k].owner }

// Words returns what the limit limits, for sentences: "tokens a minute".
func (k Kind) Words() string { return k.Unit().Words() + " " + k.Window().Per() }

// Label returns what the limit limits, for a narrow column: "tokens/min".
func (k Kind) Label() string { return k.Unit().Words() + k.Window().Short() }

// IsShared reports whether those who share an owner divide the limit among them: every limit of a model or a project
// that comes back within a day, or when calls end.
func (k Kind) IsShared() bool {
	return k.Owner() != Run && (k.Window() <= Day || k.Unit().InFlight())
}

// IsPaced reports whether the limit may be let out evenly over its window.
func (k Kind) IsPaced() bool { return k.Owner() == Model && k.Window() == Minute }

// The ends of the names of what is made from a limit: a share of it, and its pace.
const (
	ShareEnd = "_share"
	PaceEnd  = "_pace"
)

// Names returns all names that a denial may name: of each limit, of its shares and of its pace.
func Names() (list []string) {
	for k := range kinds {
		list = append(list, k.Name())
		if k.IsShared() {
			list = append(list, k.Name()+ShareEnd)
		}
		if k.IsPaced() {
			list = append(list, k.Name()+PaceEnd)
		}
	}
	return list
}

// Key returns what the keys of stores call the limit with a name. Stores keep the names that limits had when these
// keys were first written.
func Key(name string) string {
	if k, ok := Named(name); ok && table[k].key != "" {
		return table[k].key
	}
	return name
}
