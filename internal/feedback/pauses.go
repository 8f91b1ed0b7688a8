// Package feedback is what a provider says about its own limits: that it takes no calls of a model for
// a while, and that less is left than the quota has, because others use the same account.
package feedback

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// Pauses is the models whose providers take no calls.
type Pauses struct {
	spans atomic.Pointer[map[string]Pause] // replaced, never changed; nil: none
	mu    sync.Mutex                       // held while it is replaced
	turns int64                            // how many probes were let through, and refusals heard
}

// Pause is one model's pause. Times are Unix nanoseconds of the limiter's clock.
//
// until is at most the limiter's bound after the provider's last word. Where the word
// is longer than the bound, the pause goes on after until, but a single call is let
// through as a probe, which finds out whether the model is back. In a pause of more
// than a minute probes are let through earlier, each after twice the time of the one
// before.
type Pause struct {
	From  int64     // when the pause began
	Heard int64     // when the provider's last word was heard
	Own   bool      // this limiter has heard a word itself
	Word  int64     // when the pause ends by the provider's word
	Until int64     // when it ends as far as calls are told
	Probe int64     // when the next probe is let through
	Step  int64     // nanoseconds from a refusal to the next probe
	Turn  int64     // the number of the last probe or refusal
	Most  int64     // nanoseconds: the bound
	Cause llm.Cause // empty: another limiter has heard the provider's word
}

const (
	MostPaused = 4096           // models
	Longest    = 24 * time.Hour // that a provider's word is believed
	samePause  = 250 * time.Millisecond

	// FirstProbe is when a pause is probed for the first time. Most limits of
	// providers are by the minute, and a provider that asks for less knows why.
	FirstProbe = time.Minute

	// ProbeRest is how long no call passes after a probe that its provider has refused for
	// what it is. Or else a client with malformed calls could send as many as it likes.
	ProbeRest = time.Second
)

// Get returns the pause of a model, which may have ended.
func (p *Pauses) Get(model string) (s Pause, ok bool) {
	if spans := p.spans.Load(); spans != nil {
		s, ok = (*spans)[model]
	}
	return s, ok
}

// update replaces the pause of a model by what change makes of it. change returns
// whether to keep the pause; there may be none, which is the zero Pause.
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
	if spans := p.spans.Load(); spans != nil {
		maps.Copy(all, *spans)
	}
	if delete(all, model); s != (Pause{}) {
		if len(all) >= MostPaused {
			maps.DeleteFunc(all, func(_ string, s Pause) bool { return s.Word <= now })
		}
		if len(all) < MostPaused {
			all[model] = s
		}
	}
	p.spans.Store(&all)
}

// Refusal is a provider's word that it takes no calls of a model.
type Refusal struct {
	At     int64         // when it was heard, by this limiter or by another one
	Length time.Duration // of the pause that the provider asks for
	Most   time.Duration // of the pause, as far as calls are told
	Cause  llm.Cause     // empty: another limiter has heard it
}

// Extend pauses a model for as long as its provider has said, unless it is paused for
// longer. It reports whether a pause has begun, and whether others have to be told: it
// ends later than it did, or this limiter had only been told of it.
func (p *Pauses) Extend(model string, now int64, said Refusal) (began, news bool) {
	length := min(said.Length, Longest)
	if length <= 0 {
		return false, false
	}
	p.update(model, now, func(s *Pause) bool {
		if began = s.Word <= now; began {
			*s = Pause{From: now, Step: int64(FirstProbe), Cause: said.Cause}
		}
		was := max(s.Until, now)
		s.Heard = max(s.Heard, said.At)
		s.Most = int64(said.Most)
		s.Word = max(s.Word, now+int64(length))
		s.Until = max(s.Until, min(s.Word, now+s.Most))
		s.Probe = now + min(s.Step, s.Most)
		s.Turn = p.nextTurn()
		if said.Cause != "" {
			news = s.Until-was > int64(samePause) || !s.Own
			s.Own = true
		}
		return true
	})
	return began, news
}

// nextTurn returns a number that no other turn of any model has. The caller holds mu.
func (p *Pauses) nextTurn() int64 {
	p.turns++
	return p.turns
}

// Admit lets a call of a paused model pass as the probe, if one is due. It returns the
// number of the probe, or else the pause that denies the call; neither if the pause was
// ended meanwhile.
func (p *Pauses) Admit(model string, now int64) (probe int64, denying Pause) {
	p.update(model, now, func(s *Pause) bool {
		switch {
		case now >= s.Word:
		case now < s.Probe:
			denying = *s
		default:
			s.Step = min(2*s.Step, s.Most)
			s.Probe = now + s.Step
			s.Until = max(s.Until, min(s.Word, s.Probe))
			s.Turn = p.nextTurn()
			probe = s.Turn
		}
		return s.Word != 0
	})
	return probe, denying
}

// GiveBack lets another call be the probe, after a rest, in place of one that has found out
// nothing, unless the provider was heard meanwhile.
func (p *Pauses) GiveBack(model string, now, probe int64, rest time.Duration) {
	p.update(model, now, func(s *Pause) bool {
		if s.Turn == probe {
			s.Probe, s.Step = min(s.Probe, now+int64(rest)), max(s.Step/2, int64(FirstProbe)) // as before it
		}
		return s.Word != 0
	})
}

// End ends the pause of a model if it is one that was meant. It returns the pause.
func (p *Pauses) End(model string, now int64, meant func(s Pause) bool) (ended Pause, ok bool) {
	p.update(model, now, func(s *Pause) bool {
		if s.Word == 0 || !meant(*s) {
			return s.Word != 0
		}
		ended, ok = *s, true
		return false
	})
	return ended, ok
}
