package state

import (
	"cmp"
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/limit"
)

// inOrder has the kinds of a model's limits in the order of their codes: if several of them deny a call, the code is that
// of the first. Requests a day come before all others.
var inOrder = append([]kind.Kind{kind.MaxRPD}, slices.DeleteFunc(kind.Of(kind.Model), func(k kind.Kind) bool { return k == kind.MaxRPD })...)

// AtProvider is added to a kind for the ID of a second limit, which counts what the provider
// counts: its windows have no margin. That limit denies nothing.
const AtProvider = int(kind.Models)

// Paced is added to a kind for the ID of the limit that paces it.
const Paced = 2 * int(kind.Models)

// isCounted reports whether what a kind limits is counted even if it is not limited, so that users can see it.
func isCounted(k kind.Kind) bool { return k == kind.MaxRPM || k == kind.MaxTPM || k == kind.MaxRPD }

// Limits returns the limits of a valid quota.
func (q *Quota) Limits() (list []engine.Limit) {
	for _, k := range inOrder {
		most := *q.Max(k)
		if isCounted(k) || most > 0 {
			free := most == 0 || k == kind.MaxEnqueuedTokens // which denies batches alone: see [engine.Engine.SetQueue]
			list = append(list, engine.Limit{Name: k.Name(), ID: int(k), Unit: k.Unit(), Limit: q.limit(k), Free: free})
		}
		if q.Margin > 0 && most > 0 && k.Window() == kind.Minute {
			minute := limit.New(engine.Boundless, time.Minute).Using(limit.SlidingLog)
			list = append(list, engine.Limit{ID: int(k) + AtProvider, Unit: k.Unit(), Limit: minute, Free: true})
		}
		if q.Pace == PaceEven && most > 0 && k.IsPaced() {
			paced := limit.New(int64(most), q.minute()).WithBurst(q.Burst(k))
			list = append(list, engine.Limit{Name: k.Name() + kind.PaceEnd, ID: int(k) + Paced, Unit: k.Unit(), Limit: paced, Pace: true})
		}
	}
	return list
}

// Burst returns how much of a kind may pass at once, if the quota is paced: at least one.
func (q *Quota) Burst(k kind.Kind) int64 {
	percent := cmp.Or(q.PaceBurst, DefaultPaceBurst)
	return max(int64(float64(*q.Max(k))*float64(percent)/100), 1)
}

// limit returns the limit of a kind.
func (q *Quota) limit(k kind.Kind) limit.Limit {
	most := int64(*q.Max(k))
	if most == 0 {
		most = engine.Boundless
	}
	switch {
	case k == kind.MaxEnqueuedTokens:
		return engine.Enqueued(engine.Boundless)
	case k.Window() == kind.Day:
		day, _ := q.Day(most)
		return day
	case k.Window() == kind.AtATime:
		return engine.AtATime(most)
	default:
		return limit.New(most, k.Window().Period()+q.Margin).Using(limit.SlidingLog)
	}
}

// minute returns the length of the quota's windows by the minute: a minute and the margin.
func (q *Quota) minute() time.Duration { return time.Minute + q.Margin }
