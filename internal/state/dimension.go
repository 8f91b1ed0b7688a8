package state

import (
	"cmp"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/limit"
)

// Dimension is one of the ways in which a quota limits a model. If several of them deny a call, the
// first of these decides.
type Dimension int

const (
	RPD Dimension = iota
	RPM
	TPM
	InputTPM
	OutputTPM
	TPD
	Concurrent
	Dimensions
)

var dimensions = [Dimensions]struct {
	unit engine.Unit
	name string
}{
	RPD:        {engine.Requests, "rpd"},
	RPM:        {engine.Requests, "rpm"},
	TPM:        {engine.Tokens, "tpm"},
	InputTPM:   {engine.Input, "input_tpm"},
	OutputTPM:  {engine.Output, "output_tpm"},
	TPD:        {engine.Tokens, "tpd"},
	Concurrent: {engine.Slots, "concurrent"},
}

// Unit returns what the dimension counts.
func (d Dimension) Unit() engine.Unit { return dimensions[d].unit }

// String returns the name of the dimension's limit.
func (d Dimension) String() string { return dimensions[d].name }

// OfDay reports whether the dimension counts by the day, and not in a sliding window.
func (d Dimension) OfDay() bool { return d == RPD || d == TPD }

// OfMinute reports whether the dimension counts by the minute.
func (d Dimension) OfMinute() bool { return !d.OfDay() && d != Concurrent }

// AtProvider is added to a dimension for the ID of a second limit, which counts what the provider
// counts: its windows have no margin. That limit denies nothing.
const AtProvider = int(Dimensions)

// Paced is added to a dimension for the ID of the limit that paces it.
const Paced = 2 * int(Dimensions)

// PaceEnd ends the name of a limit that paces a dimension.
const PaceEnd = "_pace"

// Max returns a pointer to the quota's maximum in a dimension. A maximum of 0 means unlimited.
func (q *Quota) Max(d Dimension) *int {
	return [Dimensions]*int{&q.MaxRPD, &q.MaxRPM, &q.MaxTPM, &q.MaxInputTPM, &q.MaxOutputTPM, &q.MaxTPD, &q.MaxConcurrent}[d]
}

// Limits returns the limits of a valid quota. Requests and tokens are counted even if they are not
// limited, so that users can see them.
func (q *Quota) Limits() (list []engine.Limit) {
	for d := range Dimensions {
		most := *q.Max(d)
		if d <= TPM || most > 0 {
			list = append(list, engine.Limit{Name: d.String(), ID: int(d), Unit: d.Unit(), Limit: q.limit(d), Free: most == 0})
		}
		if q.Margin > 0 && most > 0 && d.OfMinute() {
			minute := limit.New(engine.Boundless, time.Minute).Using(limit.SlidingLog)
			list = append(list, engine.Limit{ID: int(d) + AtProvider, Unit: d.Unit(), Limit: minute, Free: true})
		}
		if q.Pace == PaceEven && most > 0 && d.OfMinute() {
			paced := limit.New(int64(most), q.minute()).WithBurst(q.Burst(d))
			list = append(list, engine.Limit{Name: d.String() + PaceEnd, ID: int(d) + Paced, Unit: d.Unit(), Limit: paced, Pace: true})
		}
	}
	return list
}

// Burst returns how much of a dimension may pass at once, if the quota is paced: at least one.
func (q *Quota) Burst(d Dimension) int64 {
	percent := cmp.Or(q.PaceBurst, DefaultPaceBurst)
	return max(int64(float64(*q.Max(d))*float64(percent)/100), 1)
}

// limit returns the limit of a dimension.
func (q *Quota) limit(d Dimension) limit.Limit {
	most := int64(*q.Max(d))
	if most == 0 {
		most = engine.Boundless
	}
	switch {
	case d.OfDay():
		day, _ := q.Day(most)
		return day
	case d == Concurrent:
		return engine.AtATime(most)
	default:
		return limit.New(most, q.minute()).Using(limit.SlidingLog)
	}
}

// minute returns the length of the quota's windows by the minute: a minute and the margin.
func (q *Quota) minute() time.Duration { return time.Minute + q.Margin }
