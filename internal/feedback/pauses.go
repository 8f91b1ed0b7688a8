// Package feedback keeps what a provider says about its own limits: that it takes no calls of a model
// for a while, and that less is left than the quota says, because others use the same account.
package feedback

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// Pauses are the pauses of models.
type Pauses struct {
	byModel atomic.Pointer[map[string]Pause] // the map is replaced, never changed; nil if there are no pauses
	mu      sync.Mutex                       // locked while the map is replaced
	numbers int64                            // the last number that nextNumber has returned
}

// Pause is the pause of one model. Times are Unix nanoseconds of the limiter's clock.
//
// Until is at most Max after the provider has last throttled a call. If the provider has asked for a
// longer pause, the pause goes on after Until, but a single call may pass as a probe, which finds out
// whether the provider takes calls again. In a pause of more than a minute, probes may pass earlier:
// each after twice the time of the one before.
type Pause struct {
	From   int64     // when the pause began
	Heard  int64     // when the provider has last throttled a call
	Own    bool      // a call of this limiter was throttled, not only calls of others
	Ends   int64     // when the pause ends, as the provider has reported
	Until  int64     // when to come back, as denied calls are answered
	Probe  int64     // when the next probe may pass
	Step   int64     // nanoseconds from a throttled call to the next probe
	Number int64     // the number of the last probe or throttled call
	Max    int64     // nanoseconds: the longest time for which no probe passes
	Cause  llm.Cause // why the call was throttled that began the pause; empty if it was a call of another limiter
}

const (
	MaxPaused = 4096                   // how many models may be paused
	MaxPause  = 24 * time.Hour         // the longest pause that a provider can ask for
	samePause = 250 * time.Millisecond // two pauses whose ends differ by less are the same

	// FirstProbe is the time after which a pause is probed for the first time. Most limits of
	// providers are by the minute, and a provider that asks for a shorter pause knows why.
	FirstProbe = time.Minute

	// ProbeRest is the time for which no call passes after a probe that the provider has refused as
	// invalid. Without it, a client with invalid calls could send any number of probes.
	ProbeRest = time.Second
)

// Get returns the pause of a model, which may have ended.
func (p *Pauses) Get(model string) (s Pause, ok bool) {
	if byModel := p.byModel.Load(); byModel != nil {
		s, ok = (*byModel)[model]
	}
	return s, ok
}

// update changes the pause of a model, which is the zero Pause if there is none. change returns false
// to remove the pause.
func (p *Pauses) update(model string, now int64, change func(s *Pause) (keep bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was, ok := p.Get(model)
	s := was
	if keep := change(&s); keep == ok && s == was {
		return
	} else if !keep {
		s = Pause{}
	}
	all := map[string]Pause{}
	if byModel := p.byModel.Load(); byModel != nil {
		maps.Copy(all, *byModel)
	}
	delete(all, model)
	if s != (Pause{}) {
		if len(all) >= MaxPaused {
			maps.DeleteFunc(all, func(_ string, s Pause) bool { return s.Ends <= now })
		}
		if len(all) < MaxPaused {
			all[model] = s
		}
	}
	p.byModel.Store(&all)
}

// Throttle is a provider's answer that it takes no calls of a model for a while.
type Throttle struct {
	At     int64         // when a call of this limiter or of another one was throttled
	Length time.Duration // the length of the pause that the provider asks for
	Max    time.Duration // the longest time for which no probe may pass
	Cause  llm.Cause     // empty if it was a call of another limiter
}

// Extend pauses a model for as long as its provider demands, unless the model is paused for longer
// already. began reports whether a pause has begun. news reports whether other limiters must be
// informed: because the pause ends later than before, or because until now only calls of other
// limiters were throttled.
func (p *Pauses) Extend(model string, now int64, said Throttle) (began, news bool) {
	length := min(said.Length, MaxPause)
	if length <= 0 {
		return false, false
	}
	p.update(model, now, func(s *Pause) bool {
		began = s.Ends <= now
		if began {
			*s = Pause{From: now, Step: int64(FirstProbe), Cause: said.Cause}
		}
		was := max(s.Until, now)
		s.Heard = max(s.Heard, said.At)
		s.Max = int64(said.Max)
		s.Ends = max(s.Ends, now+int64(length))
		s.Until = max(s.Until, min(s.Ends, now+s.Max))
		s.Probe = now + min(s.Step, s.Max)
		s.Number = p.nextNumber()
		if said.Cause != "" {
			news = s.Until-was > int64(samePause) || !s.Own
			s.Own = true
		}
		return true
	})
	return began, news
}

// nextNumber returns a number that no other probe or throttled call of any model has. The caller has
// locked mu.
func (p *Pauses) nextNumber() int64 {
	p.numbers++
	return p.numbers
}

// Admit lets a call of a paused model pass as the probe, if one is due, and returns the number of the
// probe. Otherwise it returns the pause that denies the call. If the pause has ended meanwhile, it
// returns neither.
func (p *Pauses) Admit(model string, now int64) (probe int64, denying Pause) {
	p.update(model, now, func(s *Pause) bool {
		switch {
		case now >= s.Ends:
		case now < s.Probe:
			denying = *s
		default:
			s.Step = min(2*s.Step, s.Max)
			s.Probe = now + s.Step
			s.Until = max(s.Until, min(s.Ends, s.Probe))
			s.Number = p.nextNumber()
			probe = s.Number
		}
		return s.Ends != 0
	})
	return probe, denying
}

// GiveBack lets another call pass as the probe, after a rest, because a probe has found out nothing.
// It does nothing if another probe has passed or another call was throttled since.
func (p *Pauses) GiveBack(model string, now, probe int64, rest time.Duration) {
	p.update(model, now, func(s *Pause) bool {
		if s.Number == probe {
			s.Probe, s.Step = min(s.Probe, now+int64(rest)), max(s.Step/2, int64(FirstProbe)) // the step before the probe
		}
		return s.Ends != 0
	})
}

// End ends the pause of a model if ends returns true for it, and returns the pause.
func (p *Pauses) End(model string, now int64, ends func(s Pause) bool) (ended Pause, ok bool) {
	p.update(model, now, func(s *Pause) bool {
		if s.Ends == 0 || !ends(*s) {
			return s.Ends != 0
		}
		ended, ok = *s, true
		return false
	})
	return ended, ok
}
