package ratelimit

import (
	"time"

	"dappco.re/go/core/go-ratelimit/internal/state"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/project"
)

// ModelQuota is what one model may use. Zero in any field is unlimited, and a
// model whose fields are all zero is not limited at all.
type ModelQuota struct {
	MaxRPM int `yaml:"max_rpm" json:"max_rpm"` // requests a minute
	MaxTPM int `yaml:"max_tpm" json:"max_tpm"` // tokens a minute, prompt and output together
	MaxRPD int `yaml:"max_rpd" json:"max_rpd"` // requests a day

	MaxInputTPM   int `yaml:"max_input_tpm,omitempty" json:"max_input_tpm,omitempty"`   // prompt tokens a minute
	MaxOutputTPM  int `yaml:"max_output_tpm,omitempty" json:"max_output_tpm,omitempty"` // output tokens a minute
	MaxTPD        int `yaml:"max_tpd,omitempty" json:"max_tpd,omitempty"`               // tokens a day, prompt and output together
	MaxConcurrent int `yaml:"max_concurrent,omitempty" json:"max_concurrent,omitempty"` // concurrent requests: reserved, and neither committed nor cancelled

	// MaxTokensInFlight is how many tokens all concurrent requests together may have reserved, for servers of one's own
	// whose limit is memory. It counts every token as one, also those of a prompt that is cached; of a call that
	// reserves the most tokens, or extends its reservation, the most that it can use.
	MaxTokensInFlight int `yaml:"max_tokens_in_flight,omitempty" json:"max_tokens_in_flight,omitempty"`

	// MaxEnqueuedTokens is how many tokens the prompts of all batches together may have that were submitted and have not
	// ended, as providers limit them: see Batch of a [Call]. A batch that is never settled counts for 48 hours. No other
	// maximum of the quota holds for batches.
	MaxEnqueuedTokens int `yaml:"max_enqueued_tokens,omitempty" json:"max_enqueued_tokens,omitempty"`

	// DayResetsAt is when a day begins: a time of day and a time zone, such
	// as "00:00 America/Los_Angeles". Empty, a day is the 24 hours from its
	// first request on. The zone must be known on this machine; a program
	// for machines without a zone database imports time/tzdata.
	DayResetsAt string `yaml:"day_resets_at,omitempty" json:"day_resets_at,omitempty"`

	// Auto lets the limits that the provider reports replace the maxima above: see
	// [RateLimiter.Heed]. Until it reports any, the maxima above count.
	Auto bool `yaml:"auto,omitempty" json:"auto,omitempty"`

	// Margin is by how much the windows of the quota are longer than the provider's:
	// a minute, and a day that begins with its first request. The provider counts
	// calls when they arrive, and some take longer to arrive than others. As long as
	// no call takes longer than Margin from when it is admitted to when it arrives, no
	// 60 seconds at the provider hold more than a maximum. It costs Margin/(60s +
	// Margin) of the throughput: 3.2% with 2 seconds. A day with DayResetsAt has no
	// margin. It is from 0, the default, to [MaxMargin]. In JSON it is nanoseconds.
	Margin time.Duration `yaml:"margin,omitempty" json:"margin,omitempty"`

	// Reserve is the part of every maximum, except MaxConcurrent, MaxTokensInFlight and MaxEnqueuedTokens, that is kept
	// for projects that have begun to call the model within the last period of that maximum: a minute, or a day. Such a
	// project has a share at once, and not only when others' usage comes back. Nobody else uses the reserve. It is
	// below 100%; the default is 0, no reserve.
	Reserve limit.Percent `yaml:"reserve,omitempty" json:"reserve,omitempty"`

	// ReserveTokens says whether calls reserve the most tokens that they can use, or what is expected of
	// them. By default, they reserve what the provider counts while a call is under way.
	ReserveTokens project.Reserve `yaml:"reserve_tokens,omitempty" json:"reserve_tokens,omitempty"`

	// OnOverrun says what becomes of a stream that uses more tokens than it has reserved, unless ReserveTokens is
	// the most. By default, it goes on, and what it uses is a debt.
	OnOverrun project.OnOverrun `yaml:"on_overrun,omitempty" json:"on_overrun,omitempty"`

	// Pace is [PaceEven] if the maxima by the minute are let out evenly over the minute, and
	// empty, the default, if all of them may pass at once. Calls wait, or are denied, that
	// would be more than PaceBurst of a maximum ahead of an even pace. A call that is
	// larger than that passes when no other is ahead, and later calls wait for it.
	Pace string `yaml:"pace,omitempty" json:"pace,omitempty"`

	// PaceBurst is the part of each maximum by the minute that may pass at once: at least one
	// request or token. 0 is [DefaultPaceBurst].
	PaceBurst limit.Percent `yaml:"burst,omitempty" json:"burst,omitempty"`

	// Count is as how many tokens each kind of token counts, in the maxima of tokens, for a
	// provider that does not count every token as one: with an Output of 5, a call of 100
	// tokens of prompt and 20 of output counts as 200. Without a weight, a token counts as one,
	// or not at all where CommitTokens says that it is free. A call's tokens are rounded up, those
	// of its prompt and those of its output. The limits of projects count every token as one.
	Count TokenWeights `yaml:"count,omitempty" json:"count,omitzero"`
}

// UsageStats is what a model has used: each request of the last minute (and of the
// quota's Margin) with its tokens, and the number of requests of the day. Requests lists
// the latest 131,072 at most.
type UsageStats struct {
	Requests []time.Time  `yaml:"requests"`
	Tokens   []TokenEntry `yaml:"tokens"`
	DayStart time.Time    `yaml:"day_start"`
	DayCount int          `yaml:"day_count"`

	// Only of models whose quota limits them:
	InputTokens  []TokenEntry `yaml:"input_tokens,omitempty"`
	OutputTokens []TokenEntry `yaml:"output_tokens,omitempty"`
	DayTokens    *TokenEntry  `yaml:"day_tokens,omitempty"` // since when, and how many
}

// TokenEntry is how many tokens were used at a time.
type TokenEntry struct {
	Time  time.Time `yaml:"time"`
	Count int       `yaml:"count"`
}

// Validate returns what is wrong with the quota and what is allowed, or nil.
func (q ModelQuota) Validate() error { return state.Quota(q).Validate() }

const (
	// PaceEven is the [ModelQuota.Pace] that lets a minute out evenly.
	PaceEven = state.PaceEven

	// DefaultPaceBurst is the [ModelQuota.PaceBurst] of a quota that says none.
	DefaultPaceBurst = state.DefaultPaceBurst
)

// MaxMargin is the largest [ModelQuota.Margin].
const MaxMargin = state.MaxMargin
