package call

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/admission"
	"dappco.re/go/core/go-ratelimit/internal/numeral"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
)

// shortage is the limit on requests or tokens that has denied a call, in numbers.
type shortage struct {
	owner     string // the project or the model, as messages name it
	unit      string // such as "tokens a minute"
	tokens    bool   // the limit counts tokens, and not requests
	max, left int64
	needs     llm.Tokens // the call's tokens that count for the limit
}

// shortage returns the limit that has denied the call, itself or by the project's share of it,
// or nil where there are no such numbers: a pause, a limit on calls at a time, or a decision that says only when to try
// again.
func (c *Call) shortage(d *ratelimit.Decision) *shortage {
	for _, s := range d.Project.Windows() {
		if s.Window.Name == d.Limit {
			return &shortage{c.owner(), unitOf(s.Window), s.Window.Tokens, s.Window.Count, max(s.Remaining, 0), llm.Tokens{Input: c.estimated.Input, Output: c.estimated.Output}}
		}
	}
	if d.Code == ratelimit.DecisionShareLimit && d.Share.Projects == 0 {
		return nil // other calls of the project wait for the share
	}
	q, _ := c.Limits.Models.Quota(c.Quota)
	input, output := q.Count.Count(c.estimated)
	counted := llm.Tokens{Input: int(input), Output: int(output)}
	of := func(unit string, maximum, used int, needs llm.Tokens) *shortage {
		if maximum == 0 {
			return nil
		}
		return &shortage{c.model(), unit, needs != llm.Tokens{}, int64(maximum), max(int64(maximum-used-d.Elsewhere), 0), needs}
	}
	switch s := &d.Stats; strings.TrimSuffix(d.Limit, admission.ShareEnd) {
	case "rpm":
		return of("requests a minute", s.MaxRPM, s.RPM, llm.Tokens{})
	case "rpd":
		return of("requests a day", s.MaxRPD, s.RPD, llm.Tokens{})
	case "tpm":
		return of("tokens a minute", s.MaxTPM, s.TPM, counted)
	case "tpd":
		return of("tokens a day", s.MaxTPD, s.TPD, counted)
	case "input_tpm":
		return of("input tokens a minute", s.MaxInputTPM, s.InputTPM, llm.Tokens{Input: counted.Input})
	case "output_tpm":
		return of("output tokens a minute", s.MaxOutputTPM, s.OutputTPM, llm.Tokens{Output: counted.Output})
	}
	return nil
}

// unitOf returns the unit of a project's window, such as "tokens a month".
func unitOf(w *project.Window) string {
	counted, article := "requests", "a"
	period, tokens := strings.CutPrefix(w.Name, "tokens-")
	if tokens {
		counted = "tokens"
	}
	if period == "hour" {
		article = "an"
	}
	return counted + " " + article + " " + period
}

// String says how much of the limit is left, and what the call needs.
func (s *shortage) String() string {
	text := fmt.Sprintf("%s has %s of its %s %s left", s.owner, numeral.Grouped(s.left), numeral.Grouped(s.max), s.unit)
	switch needs := int64(s.needs.Input + s.needs.Output); {
	case s.tokens && needs > s.left:
		return text + ", and this call needs " + s.needText()
	case s.tokens || s.left > 0:
		return text + ", and calls that came earlier wait for it"
	}
	return text
}

// neverText says that the call needs more than the limit ever gives.
func (s *shortage) neverText() string {
	return fmt.Sprintf("%s may use %s %s, and this call needs %s: it can never pass", s.owner, numeral.Grouped(s.max), s.unit, s.needText())
}

// needText says what the call needs, with prompt and answer apart.
func (s *shortage) needText() string {
	all := numeral.Grouped(int64(s.needs.Input + s.needs.Output))
	switch {
	case s.needs.Output == 0:
		return all + " for its prompt"
	case s.needs.Input == 0:
		return "up to " + all
	}
	return fmt.Sprintf("%s (prompt %s, answer up to %s)", all, numeral.Grouped(int64(s.needs.Input)), numeral.Grouped(int64(s.needs.Output)))
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
	return fmt.Sprintf("%s %s a share of %s %s of %s%s, and %s used %s", owner, verb, numeral.Grouped(int64(d.Share.Max)), unit, c.model(), others, verb, numeral.Grouped(int64(d.Share.Used)))
}

// busyOrPaused says that a limit on calls at a time denies the call, or that the provider
// has paused the model. It is empty where neither is the reason.
func (c *Call) busyOrPaused(d *ratelimit.Decision) string {
	switch {
	case d.Limit == project.Concurrent:
		return fmt.Sprintf("%s has %s calls under way, as many as it may", c.owner(), numeral.Grouped(d.Project.Concurrent))
	case d.Limit == "concurrent" && d.Stats.MaxConcurrent > 0:
		return fmt.Sprintf("%s has %s calls under way, as many as it may", c.model(), numeral.Grouped(int64(d.Stats.MaxConcurrent)))
	case d.Code == ratelimit.DecisionPaused:
		return fmt.Sprintf("the provider takes no calls of %s for now", c.model())
	}
	return ""
}

func (c *Call) owner() string { return fmt.Sprintf("project %q", c.Project) }

func (c *Call) model() string { return fmt.Sprintf("model %q", cmp.Or(c.Request.Model, c.Quota)) }

// roundedUp returns a wait in whole seconds, or in milliseconds below one second. It is
// never shorter than the wait.
func roundedUp(d time.Duration) time.Duration {
	unit := time.Second
	if d < unit {
		unit = time.Millisecond
	}
	return (d + unit - 1).Truncate(unit)
}
