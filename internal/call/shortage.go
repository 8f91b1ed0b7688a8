package call

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/internal/numeral"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// shortage is the limit on requests, tokens or dollars that has denied a call, in numbers.
type shortage struct {
	has, may string // what is left of the limit and what it allows, in words: project "p" has 0 of its 5 requests a day left
	unit     string // such as "tokens a minute"; empty for limits that projects do not share
	left     int64
	needs    llm.Tokens   // the call's tokens that count for the limit
	units    int64        // what the call uses beside tokens, if the limit counts that
	dollars  price.Amount // the price of the call, if the limit counts dollars
	parts    llm.Tokens   // the tokens that cost so much, if the limit reserves the most of a call
	total    bool         // the limit has no window, so what was used of it stays used
	run      bool         // the limit is a run's
	batch    bool         // a batch was denied
	advice   string       // how it may cost less, or empty

	// Of limits that reserve the most of a call:
	most     bool   // the limit does, and that is known
	held     bool   // it denies the call only because of what calls under way have reserved
	reserved string // how much of what is used these calls hold, in words; empty: nothing
	fit      string // with which bound on its answers the call would pass, in words, or that it would not; empty: neither is known
}

// shortage returns the limit that has denied the call, itself or by the project's share of it,
// or nil where there are no such numbers: a pause, a limit on calls at a time, or a decision that says only when to try
// again.
func (c *Call) shortage(d *ratelimit.Decision) *shortage {
	if s := denying(d); s != nil {
		return c.shortageOf(d, s)
	}
	if d.Code == ratelimit.DecisionShareLimit && d.Share.Projects == 0 {
		return nil // other calls of the project wait for the share
	}
	q, _ := c.Limits.Models.Quota(c.Model)
	input, output := q.Count.Count(c.Tokens)
	counted := llm.Tokens{Input: int(input), Output: int(output)}
	of := d.Stats.Of(strings.TrimSuffix(d.Limit, kind.ShareEnd))
	k, _ := kind.Named(of.Name)
	if of.Max == 0 || k == kind.MaxConcurrent {
		return nil
	}
	needs := map[kind.Unit]llm.Tokens{kind.Tokens: counted, kind.Input: {Input: counted.Input}, kind.Output: {Output: counted.Output}, kind.TokensInFlight: c.Tokens}
	left, may := max(int64(of.Max-of.Used-d.Elsewhere), 0), numeral.Grouped(int64(of.Max))
	return &shortage{
		has: fmt.Sprintf("%s has %s of its %s %s left", c.model(), numeral.Grouped(left), may, k.Words()),
		may: fmt.Sprintf("%s may use %s %s", c.model(), may, k.Words()), unit: k.Words(), left: left, needs: needs[k.Unit()],
	}
}

// denying returns the window of the call's project, of one above it, of its key or of its run that
// denies the call or that earlier calls wait for, or nil.
func denying(d *ratelimit.Decision) *project.Standing {
	for i, s := range d.Windows() {
		if s.Window.Name == d.Limit && (s.Owner == d.Owner || d.Owner == "") {
			return &d.Windows()[i]
		}
	}
	return nil
}

// shortageOf returns the shortage of a window that denies the call.
func (c *Call) shortageOf(d *ratelimit.Decision, s *project.Standing) *shortage {
	short := &shortage{
		has: s.Left(), may: s.May(), left: s.Remaining, total: s.Window.Total(), run: s.Window.Run, batch: c.batch,
		most: s.Window.Most && c.bound.Input > 0, held: s.Held, reserved: s.ReservedText(),
	}
	tokens := llm.Tokens{Input: c.Tokens.Input, Output: c.Tokens.Output}
	if short.most {
		tokens, short.fit = llm.Tokens{Input: c.bound.Input, Output: c.bound.Output}, c.fitText(c.fitting(d))
	}
	if s.Window.Cut && c.bound.Input > 0 {
		tokens = c.stream.first
		if tokens == (llm.Tokens{}) {
			tokens = c.bound
		}
	}
	k, _ := kind.Named(s.Window.Name)
	if i := slices.IndexFunc(kind.Beside[:], func(u kind.BesideUnit) bool { return u.Unit == k.Unit() }); i >= 0 {
		short.units = c.Request.Units[i]
	}
	switch s.Window.Unit {
	case project.Tokens:
		short.needs = tokens
	case kind.EnqueuedTokens.Name():
		short.needs = llm.Tokens{Input: c.Tokens.Input}
	case project.Dollars:
		short.dollars, short.advice = c.reserved, c.advice()
		if short.most {
			short.parts = tokens
		}
	}
	return short
}

// advice says how less would have to be reserved for the call, or is empty.
func (c *Call) advice() string {
	switch {
	case c.unbounded:
		return "set max_tokens in its calls"
	case c.Request.Background && c.Request.MaxOutput == 0:
		return "set max_output_tokens"
	}
	return ""
}

// ofTokens reports whether the limit counts tokens.
func (s *shortage) ofTokens() bool { return s.needs != llm.Tokens{} }

// String says how much of the limit is left, and what the call needs.
func (s *shortage) String() string {
	switch needs := max(int64(s.needs.Input+s.needs.Output), int64(s.dollars), s.units); {
	case needs > s.left:
		return s.has + s.reserved + ", and " + s.what() + s.needText() + s.fit
	case needs > 0 || s.left > 0:
		return s.has + ", and calls that came earlier wait for it"
	}
	return s.has
}

// neverText says that the call needs more than the limit ever gives.
func (s *shortage) neverText() string {
	text := s.may + ", and " + s.what() + s.needText() + ": it can never pass"
	switch {
	case s.fit != "":
		text += " as it is" + s.fit
	case s.advice != "":
		text += " as it is: " + s.advice
	}
	return text
}

// what names what was denied.
func (s *shortage) what() string {
	if s.batch {
		return "this batch "
	}
	return "this call "
}

// needText says what the call needs, with prompt and answer apart.
func (s *shortage) needText() string {
	all := numeral.Grouped(int64(s.needs.Input + s.needs.Output))
	switch {
	case s.dollars > 0:
		return "may cost up to " + s.dollars.Ceil().String() + s.partsText()
	case s.units > 0:
		return "needs " + numeral.Grouped(s.units)
	case s.most:
		return "may use up to " + all + s.mostText(s.needs)
	case s.needs.Output == 0:
		return "needs " + all + " for its prompt"
	case s.needs.Input == 0:
		return "needs up to " + all
	}
	return fmt.Sprintf("needs %s (prompt %s, answer up to %s)", all, numeral.Grouped(int64(s.needs.Input)), numeral.Grouped(int64(s.needs.Output)))
}

// partsText says which tokens cost as much as the call may, if the limit reserves the most of a call.
func (s *shortage) partsText() string {
	if s.parts == (llm.Tokens{}) {
		return ""
	}
	return s.mostText(s.parts)
}

// mostText says how many tokens the prompt and the answer can have.
func (s *shortage) mostText(t llm.Tokens) string {
	if t.Output == 0 {
		return fmt.Sprintf(" (prompt up to %s tokens)", numeral.Grouped(int64(t.Input)))
	}
	return fmt.Sprintf(" (prompt up to %s tokens, answer up to %s)", numeral.Grouped(int64(t.Input)), numeral.Grouped(int64(t.Output)))
}

// fitText says with which bound on each answer a call that was denied would pass. tokens is what fitting returns.
func (c *Call) fitText(tokens int) string {
	name := c.Request.MaxOutputName()
	switch {
	case c.batch || tokens < 0:
		return ""
	case tokens == 0:
		return "; it would not pass with any " + name
	}
	return fmt.Sprintf("; it would pass with %s of at most %s", name, numeral.Grouped(int64(tokens)))
}

// shareText says how much the project may use of a limit of the model that it shares with others.
func (c *Call) shareText(d *ratelimit.Decision, unit string) string {
	owner, verb, others := c.owner(), "has", ""
	if c.Project == "" {
		owner, verb = "calls without a project", "have"
	}
	if d.Share.Projects > 1 {
		others = fmt.Sprintf(" while %s projects use it", numeral.Grouped(int64(d.Share.Projects)))
	}
	return fmt.Sprintf("%s %s a share of %s %s of %s%s, and %s used %s", owner, verb, numeral.Grouped(d.Share.Max), unit, c.model(), others, verb, numeral.Grouped(d.Share.Used))
}

// busyOrPaused says that a limit on calls at a time denies the call, or that the provider
// has paused the model. It is empty where neither is the reason.
func (c *Call) busyOrPaused(d *ratelimit.Decision) string {
	switch {
	case d.Limit == project.Concurrent && d.Owner != "":
		return d.Busy()
	case d.Limit == project.Concurrent:
		return fmt.Sprintf("%s has %s calls under way, as many as it may", c.owner(), numeral.Grouped(d.Concurrent))
	case d.Limit == kind.MaxConcurrent.Name() && d.Stats.MaxConcurrent > 0:
		return fmt.Sprintf("%s has %s calls under way, as many as it may", c.model(), numeral.Grouped(int64(d.Stats.MaxConcurrent)))
	case d.Code == ratelimit.DecisionPaused:
		return fmt.Sprintf("the provider takes no calls of %s for now", c.model())
	}
	return ""
}

func (c *Call) owner() string { return fmt.Sprintf("project %q", c.Project) }

func (c *Call) model() string { return fmt.Sprintf("model %q", cmp.Or(c.Request.Model, c.Model)) }

// roundedUp returns a wait in whole seconds, or in milliseconds below one second. It is
// never shorter than the wait.
func roundedUp(d time.Duration) time.Duration {
	unit := time.Second
	if d < unit {
		unit = time.Millisecond
	}
	return (d + unit - 1).Truncate(unit)
}
