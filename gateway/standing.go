package gateway

import (
	"net/http"
	"strconv"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// standing is where a call stands with a kind of limits by the minute: the scarcest of
// its model's and its project's.
type standing struct {
	most, left int64
	reset      time.Duration
}

// tellAsProvider tells where a call that was denied stands, in the fields that the SDKs
// of its provider know.
func (x *exchange) tellAsProvider(h http.Header) {
	requests, tokens := x.standings()
	write := tellOpenAI
	if x.endpoint.API == llm.Messages {
		write = tellAnthropic
	}
	write(h, "requests", requests)
	write(h, "tokens", tokens)
}

func (x *exchange) standings() (requests, tokens standing) {
	d := &x.decision
	quota, _ := x.g.limits.Models.Quota(x.Quota)
	reset := min(d.RetryAfter, time.Minute+quota.Margin) // it may be another limit's, or never
	left := func(of string, most, used int) int64 {
		if of == d.Limit {
			used += d.Elsewhere
		}
		return int64(most - used)
	}
	requests.consider(int64(d.Stats.MaxRPM), left("rpm", d.Stats.MaxRPM, d.Stats.RPM), reset)
	tokens.consider(int64(d.Stats.MaxTPM), left("tpm", d.Stats.MaxTPM, d.Stats.TPM), reset)
	if d.Project == nil {
		return requests, tokens
	}
	for _, s := range d.Project.Windows() {
		of := &requests
		if s.Window.Tokens {
			of = &tokens
		}
		of.consider(s.Window.Count, s.Remaining, s.ResetAfter)
	}
	return requests, tokens
}

// consider takes a limit into account; 0 is none.
func (s *standing) consider(most, left int64, reset time.Duration) {
	if most > 0 && (s.most == 0 || left < s.left) {
		*s = standing{most, max(left, 0), reset}
	}
}

func tellOpenAI(h http.Header, of string, s standing) {
	if s.most == 0 {
		return
	}
	h.Set("X-Ratelimit-Limit-"+of, strconv.FormatInt(s.most, 10))
	h.Set("X-Ratelimit-Remaining-"+of, strconv.FormatInt(s.left, 10))
	h.Set("X-Ratelimit-Reset-"+of, s.reset.Round(time.Millisecond).String())
}

func tellAnthropic(h http.Header, of string, s standing) {
	if s.most == 0 {
		return
	}
	h.Set("Anthropic-Ratelimit-"+of+"-Limit", strconv.FormatInt(s.most, 10))
	h.Set("Anthropic-Ratelimit-"+of+"-Remaining", strconv.FormatInt(s.left, 10))
	h.Set("Anthropic-Ratelimit-"+of+"-Reset", time.Now().Add(s.reset+time.Second-1).UTC().Format(time.RFC3339))
}
