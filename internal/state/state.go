// Package state has what a limiter keeps about each model, its quota and its usage: as values for
// files and tables, and as limits and accounts for the engine that counts.
package state

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/internal/modelname"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
)

// Quota is what one model may use. It has the fields of ratelimit.ModelQuota, which explains them.
type Quota struct {
	MaxRPM int
	MaxTPM int
	MaxRPD int

	MaxInputTPM   int
	MaxOutputTPM  int
	MaxTPD        int
	MaxConcurrent int

	MaxTokensInFlight int
	MaxEnqueuedTokens int

	DayResetsAt string
	Auto        bool
	Margin      time.Duration
	Reserve     limit.Percent

	ReserveTokens engine.Reserve
	OnOverrun     engine.OnOverrun

	Pace      string
	PaceBurst limit.Percent
	Count     llm.TokenWeights
}

// Max returns a pointer to the quota's maximum of a kind. A maximum of 0 means unlimited.
func (q *Quota) Max(k kind.Kind) *int {
	return [kind.Models]*int{
		kind.MaxRPM:        &q.MaxRPM,
		kind.MaxTPM:        &q.MaxTPM,
		kind.MaxRPD:        &q.MaxRPD,
		kind.MaxInputTPM:   &q.MaxInputTPM,
		kind.MaxOutputTPM:  &q.MaxOutputTPM,
		kind.MaxTPD:        &q.MaxTPD,
		kind.MaxConcurrent: &q.MaxConcurrent,

		kind.MaxTokensInFlight: &q.MaxTokensInFlight,
		kind.MaxEnqueuedTokens: &q.MaxEnqueuedTokens,
	}[k]
}

// Usage is what a model has used. It has the fields of ratelimit.UsageStats, which explains them.
type Usage struct {
	Requests []time.Time
	Tokens   []Entry
	DayStart time.Time
	DayCount int

	InputTokens  []Entry
	OutputTokens []Entry
	DayTokens    *Entry
}

// Entry is how many tokens were used at a time.
type Entry struct {
	Time  time.Time
	Count int
}

const (
	// MaxQuota is the largest maximum that a quota can have: more than any provider grants in a
	// day, and small enough for sums of usage to be exact.
	MaxQuota = 1 << 53

	// MaxMargin is the largest margin of a quota.
	MaxMargin = 30 * time.Second

	// PaceEven is the pace of a quota that lets its minutes out evenly.
	PaceEven = "even"

	// DefaultPaceBurst is the part of a minute that may pass at once by default.
	DefaultPaceBurst limit.Percent = 10

	// MaxCount is the largest usage: more counts as this.
	MaxCount = min(1<<62, math.MaxInt)
)

// A Maximum is one of the maxima that a quota has.
type Maximum struct {
	Name  string // its name in files
	Value *int   // 0 means unlimited
}

// Maxima returns the maxima of the quota, in the order of files.
func (q *Quota) Maxima() (list []Maximum) {
	for k := range kind.Models {
		list = append(list, Maximum{k.Setting(), q.Max(k)})
	}
	return list
}

// A Kind is a kind of tokens that may have a weight of its own.
type Kind struct {
	Name  string // its name in files
	Value *llm.Weight
}

// Weights returns the weights of the quota, in the order of files.
func (q *Quota) Weights() []Kind {
	return []Kind{
		{"cached_input", &q.Count.CachedInput}, {"cache_write", &q.Count.CacheWrite},
		{"output", &q.Count.Output}, {"reasoning", &q.Count.Reasoning},
	}
}

// Check returns an error that says what is wrong with the name of a model or with its quota, or nil.
func Check(model string, q Quota) error {
	if err := modelname.Check(model); err != nil {
		return err
	}
	if err := q.Validate(); err != nil {
		return fmt.Errorf("ratelimit: quota of %q: %s", model, message.Plain(err))
	}
	return nil
}

// Validate returns an error that says what is wrong with the quota and what is allowed, or nil.
func (q Quota) Validate() error {
	for _, m := range q.Maxima() {
		if *m.Value < 0 || int64(*m.Value) > MaxQuota {
			return fmt.Errorf("ratelimit: %s of %d: it must be from 1 to %d, or 0 for unlimited", m.Name, *m.Value, int64(MaxQuota))
		}
	}
	if q.Margin < 0 || q.Margin > MaxMargin {
		return fmt.Errorf("ratelimit: margin of %v: it must be from 0s to %v", q.Margin, MaxMargin)
	}
	if !(q.Reserve >= 0 && q.Reserve < 100) {
		return fmt.Errorf("ratelimit: reserve of %v: it must be from 0%%, which is none, to less than 100%%", q.Reserve)
	}
	if err := q.ReserveTokens.Validate(); err != nil {
		return fmt.Errorf("ratelimit: reserve_tokens: %s", message.Plain(err))
	}
	if err := q.OnOverrun.Validate(); err != nil {
		return fmt.Errorf("ratelimit: on_overrun: %s", message.Plain(err))
	}
	if err := q.CheckPace(); err != nil {
		return err
	}
	for _, k := range q.Weights() {
		if err := k.Value.Validate(); err != nil {
			return fmt.Errorf("ratelimit: count of %s: %s", k.Name, message.Plain(err))
		}
	}
	if _, err := q.Day(1); err != nil {
		return fmt.Errorf("ratelimit: day_resets_at of %.80q: it must be a time of day and a time zone, such as 00:00 America/Los_Angeles: %w", q.DayResetsAt, err)
	}
	return nil
}

// CheckPace returns an error that says what is wrong with the quota's pace, or nil.
func (q Quota) CheckPace() error {
	switch {
	case q.Pace != "" && q.Pace != PaceEven:
		return fmt.Errorf("ratelimit: pace of %.80q: it must be %s, or nothing", q.Pace, PaceEven)
	case !(q.PaceBurst >= 0 && q.PaceBurst <= 100):
		return fmt.Errorf("ratelimit: burst of %v: it must be from 0%%, which is %v, to 100%%", q.PaceBurst, DefaultPaceBurst)
	case q.PaceBurst > 0 && q.Pace == "":
		return fmt.Errorf("ratelimit: burst of %v without a pace: pace must be %s", q.PaceBurst, PaceEven)
	case q.Pace != "" && !q.Auto:
		return q.checkPaced()
	}
	return nil
}

// checkPaced returns an error if the quota has no maximum that can be paced.
func (q *Quota) checkPaced() error {
	var names []string
	for k := range kind.Models {
		switch {
		case k.IsPaced() && *q.Max(k) > 0:
			return nil
		case k.IsPaced():
			names = append(names, k.Setting())
		}
	}
	return fmt.Errorf("ratelimit: a pace without a maximum by the minute: one of %s must be more than 0", strings.Join(names, ", "))
}

// Day returns a limit of n a day. The day begins when DayResetsAt says, or with the first request.
func (q Quota) Day(n int64) (limit.Limit, error) {
	if q.DayResetsAt == "" {
		return limit.New(n, 24*time.Hour+q.Margin).Anchored(), nil
	}
	fields := strings.Fields(q.DayResetsAt)
	if len(fields) != 2 || len(q.DayResetsAt) > 100 || fields[1] == "Local" { // Local is a different zone on each machine
		return limit.Limit{}, errors.New("it has no such two parts")
	}
	at, err := time.Parse("15:04", fields[0])
	if err != nil {
		return limit.Limit{}, err
	}
	zone, err := time.LoadLocation(fields[1])
	if err != nil {
		return limit.Limit{}, err
	}
	midnight := at.Truncate(24 * time.Hour)
	l := limit.PerDay(n).ResetAt(at.Sub(midnight), zone)
	return l, l.Validate()
}

// CheckTime returns an error for a time that RFC 3339 cannot express.
func CheckTime(t time.Time) error {
	if year := t.UTC().Year(); year < 0 || year > 9999 {
		return fmt.Errorf("a time in the year %d: it must be from 0 to 9999", year)
	}
	return nil
}
