package project

import (
	"fmt"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/limit"
)

// Limit is what a project may use. Zero in any field is unlimited.
type Limit struct {
	RequestsPerMinute int `json:"requests_per_minute,omitempty"`
	RequestsPerHour   int `json:"requests_per_hour,omitempty"`
	RequestsPerDay    int `json:"requests_per_day,omitempty"`

	// Tokens are those of prompt and output together.
	TokensPerMinute int `json:"tokens_per_minute,omitempty"`
	TokensPerHour   int `json:"tokens_per_hour,omitempty"`
	TokensPerDay    int `json:"tokens_per_day,omitempty"`

	// Weight is the project's share of a model's quota when several wait for
	// it: one of weight 3 has three times the turns of one of weight 1, by what
	// its calls take of the quota. Zero is 1.
	Weight int `json:"weight,omitempty"`
}

// DefaultLimit is that of [New] without a limit.
var DefaultLimit = &Limit{RequestsPerMinute: 60, RequestsPerHour: 1_000, RequestsPerDay: 10_000}

const (
	maxAmount = 1 << 53
	maxWeight = 1 << 20
)

// Validate returns what is wrong with the limit and what is allowed, or nil.
func (l Limit) Validate() error {
	for _, f := range l.fields() {
		if f.most < 0 || int64(f.most) > maxAmount {
			return fmt.Errorf("ratelimit: %s is %d: it must be from 0, which is unlimited, to %d", f.field, f.most, int64(maxAmount))
		}
	}
	if l.Weight < 0 || l.Weight > maxWeight {
		return fmt.Errorf("ratelimit: Weight is %d: it must be from 0, which is 1, to %d", l.Weight, maxWeight)
	}
	return nil
}

// field is one of the limits in a Limit.
type field struct {
	field  string
	name   string
	of     string
	tokens bool
	most   int
	period time.Duration
}

const windows = 6

func (l *Limit) fields() [windows]field {
	return [windows]field{
		{"RequestsPerMinute", "minute", "requests/minute", false, l.RequestsPerMinute, time.Minute},
		{"RequestsPerHour", "hour", "requests/hour", false, l.RequestsPerHour, time.Hour},
		{"RequestsPerDay", "day", "requests/day", false, l.RequestsPerDay, 24 * time.Hour},
		{"TokensPerMinute", "tokens-minute", "tokens/minute", true, l.TokensPerMinute, time.Minute},
		{"TokensPerHour", "tokens-hour", "tokens/hour", true, l.TokensPerHour, time.Hour},
		{"TokensPerDay", "tokens-day", "tokens/day", true, l.TokensPerDay, 24 * time.Hour},
	}
}

// Window is one of a project's limits: so much in any period.
type Window struct {
	// Name is "minute", "hour", "day", "tokens-minute", "tokens-hour" or
	// "tokens-day".
	Name   string
	Tokens bool // it limits tokens, and not requests
	Count  int64
	Period time.Duration
}

// plan is a limit made ready.
type plan struct {
	limit    Limit
	windows  []Window // of requests, then of tokens
	exceeded []error  // what Allow says of each
	limits   ratelimit.ProjectLimits
	requests ratelimit.ProjectLimits // limits without those on tokens
}

func newPlan(l Limit, maxWaiting int) (*plan, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	p := &plan{limit: l, limits: ratelimit.ProjectLimits{Weight: max(l.Weight, 1), MaxWaiting: maxWaiting}}
	for _, f := range l.fields() {
		if f.most == 0 {
			continue
		}
		p.windows = append(p.windows, Window{f.name, f.tokens, int64(f.most), f.period})
		p.exceeded = append(p.exceeded, fmt.Errorf("%w: %d %s", ErrExceeded, f.most, f.of))
		p.limits.Names = append(p.limits.Names, f.name)
		log := limit.New(int64(f.most), f.period).Using(limit.SlidingLog)
		if f.tokens {
			p.limits.Tokens = append(p.limits.Tokens, log)
		} else {
			p.limits.Requests = append(p.limits.Requests, log)
		}
	}
	p.requests = p.limits
	p.requests.Tokens, p.requests.Names = nil, p.limits.Names[:len(p.limits.Requests)]
	return p, nil
}
