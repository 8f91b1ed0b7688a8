package call

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/numeral"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
)

// shortage is the limit that has denied a call, in numbers.
type shortage struct {
	whose      string // the project, or the model
	what       string // is limited, such as "tokens a minute"
	tokens     bool   // and not requests
	most, left int64
	needs      llm.Tokens // of a limit of tokens: the part that counts for it
}

// shortage returns the limit that has denied the call. It is nil for a limit that has no
// numbers: a pause, calls at a time, or a decision that says no more than when to come back.
func (c *Call) shortage(d *project.Decision) *shortage {
	for _, s := range d.Windows() {
		if s.Window.Name == d.Exceeded {
			return &shortage{c.owner(), unitOf(s.Window), s.Window.Tokens, s.Window.Count, max(s.Remaining, 0), llm.Tokens{Input: c.asked.Input, Output: c.asked.Output}}
		}
	}
	if d.Model == nil {
		return nil
	}
	counted := llm.Tokens{Input: c.asked.Input - c.asked.FreeInput, Output: c.asked.Output - c.asked.FreeOutput}
	of := func(what string, most, used int, needs llm.Tokens) *shortage {
		if most == 0 {
			return nil
		}
		return &shortage{c.model(), what, needs != llm.Tokens{}, int64(most), max(int64(most-used-d.Model.Elsewhere), 0), needs}
	}
	switch s := &d.Model.Stats; d.Model.Limit {
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

// unitOf returns what a project's window limits: tokens a month, requests a minute.
func unitOf(w *project.Window) string {
	if per, tokens := strings.CutPrefix(w.Name, "tokens-"); tokens {
		return "tokens " + article(per) + per
	}
	return "requests " + article(w.Name) + w.Name
}

func article(of string) string {
	if of == "hour" {
		return "an "
	}
	return "a "
}

// String says what is left, and what the call needs.
func (s *shortage) String() string {
	text := fmt.Sprintf("%s has %s of its %s %s left", s.whose, numeral.Grouped(s.left), numeral.Grouped(s.most), s.what)
	switch needs := int64(s.needs.Input + s.needs.Output); {
	case s.tokens && needs > s.left:
		return text + ", and this call needs " + s.parts()
	case s.tokens || s.left > 0:
		return text + ", and calls that came earlier wait for it"
	}
	return text
}

// never says that the call needs more than there ever is.
func (s *shortage) never() string {
	return fmt.Sprintf("%s may use %s %s, and this call needs %s: it can never pass", s.whose, numeral.Grouped(s.most), s.what, s.parts())
}

// parts says what the call needs, prompt and answer apart.
func (s *shortage) parts() string {
	all := numeral.Grouped(int64(s.needs.Input + s.needs.Output))
	switch {
	case s.needs.Output == 0:
		return all + " for its prompt"
	case s.needs.Input == 0:
		return "up to " + all
	}
	return fmt.Sprintf("%s (prompt %s, answer up to %s)", all, numeral.Grouped(int64(s.needs.Input)), numeral.Grouped(int64(s.needs.Output)))
}

// underWay says that as many calls are under way as may be at a time, or that the
// provider has paused the model; empty where neither denies.
func (c *Call) underWay(d *project.Decision) string {
	switch {
	case d.Exceeded == ratelimit.ConcurrentProject:
		return fmt.Sprintf("%s has %s calls under way, as many as it may", c.owner(), numeral.Grouped(d.Concurrent))
	case d.Model == nil:
		return ""
	case d.Model.Limit == "concurrent" && d.Model.Stats.MaxConcurrent > 0:
		return fmt.Sprintf("%s has %s calls under way, as many as it may", c.model(), numeral.Grouped(int64(d.Model.Stats.MaxConcurrent)))
	case d.Model.Code == ratelimit.DecisionPaused:
		return fmt.Sprintf("the provider takes no calls of %s for now", c.model())
	}
	return ""
}

func (c *Call) owner() string { return fmt.Sprintf("project %q", c.Project) }

func (c *Call) model() string { return fmt.Sprintf("model %q", cmp.Or(c.Asks.Model, c.Quota)) }

// told returns a wait as people are told it, never too short: in whole seconds, or in
// milliseconds below one.
func told(d time.Duration) time.Duration {
	unit := time.Second
	if d < unit {
		unit = time.Millisecond
	}
	return (d + unit - 1).Truncate(unit)
}
