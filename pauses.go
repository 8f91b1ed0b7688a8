package ratelimit

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// pauses is the models whose providers take no calls.
type pauses struct {
	spans atomic.Pointer[map[string]span] // replaced, never changed; nil: none
	mu    sync.Mutex                      // held while it is replaced
	turns int64                           // how many probes were let through, and refusals heard
}

// span is one model's pause. Times are Unix nanoseconds of the limiter's clock.
//
// until is at most the limiter's bound after the provider's last word. Where the word
// is longer than the bound, the pause goes on after until, but a single call is let
// through as a probe, which finds out whether the model is back. In a pause of more
// than a minute probes are let through earlier, each after twice the time of the one
// before.
type span struct {
	from  int64     // when the pause began
	heard int64     // when the provider's last word was heard
	own   bool      // this limiter has heard a word itself
	word  int64     // when the pause ends by the provider's word
	until int64     // when it ends as far as calls are told
	probe int64     // when the next probe is let through
	step  int64     // nanoseconds from a refusal to the next probe
	turn  int64     // the number of the last probe or refusal
	most  int64     // nanoseconds: the bound
	cause llm.Cause // empty: another limiter has heard the provider's word
}

const (
	mostPaused = 4096           // models
	longest    = 24 * time.Hour // that a provider's word is believed
	samePause  = 250 * time.Millisecond

	// firstProbe is when a pause is probed for the first time. Most limits of
	// providers are by the minute, and a provider that asks for less knows why.
	firstProbe = time.Minute

	// probeRest is how long no call passes after a probe that its provider has refused for
	// what it is. Or else a client with malformed calls could send as many as it likes.
	probeRest = time.Second
)

// get returns the pause of a model, which may have ended.
func (p *pauses) get(model string) (s span, ok bool) {
	if spans := p.spans.Load(); spans != nil {
		s, ok = (*spans)[model]
	}
	return s, ok
}

// update replaces the pause of a model by what change makes of it. change returns
// whether to keep the pause; there may be none, which is the zero span.
func (p *pauses) update(model string, now int64, change func(s *span) (keep bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was, ok := p.get(model)
	s := was
	if keep := change(&s); keep == ok && s == was {
		return
	} else if !keep {
		s = span{}
	}
	all := map[string]span{}
	if spans := p.spans.Load(); spans != nil {
		maps.Copy(all, *spans)
	}
	if delete(all, model); s != (span{}) {
		if len(all) >= mostPaused {
			maps.DeleteFunc(all, func(_ string, s span) bool { return s.word <= now })
		}
		if len(all) < mostPaused {
			all[model] = s
		}
	}
	p.spans.Store(&all)
}

// refusal is a provider's word that it takes no calls of a model.
type refusal struct {
	at     int64         // when it was heard, by this limiter or by another one
	length time.Duration // of the pause that the provider asks for
	most   time.Duration // of the pause, as far as calls are told
	cause  llm.Cause     // empty: another limiter has heard it
}

// extend pauses a model for as long as its provider has said, unless it is paused for
// longer. It reports whether a pause has begun, and whether others have to be told: it
// ends later than it did, or this limiter had only been told of it.
func (p *pauses) extend(model string, now int64, said refusal) (began, news bool) {
	length := min(said.length, longest)
	if length <= 0 {
		return false, false
	}
	p.update(model, now, func(s *span) bool {
		if began = s.word <= now; began {
			*s = span{from: now, step: int64(firstProbe), cause: said.cause}
		}
		was := max(s.until, now)
		s.heard = max(s.heard, said.at)
		s.most = int64(said.most)
		s.word = max(s.word, now+int64(length))
		s.until = max(s.until, min(s.word, now+s.most))
		s.probe = now + min(s.step, s.most)
		s.turn = p.nextTurn()
		if said.cause != "" {
			news = s.until-was > int64(samePause) || !s.own
			s.own = true
		}
		return true
	})
	return began, news
}

// nextTurn returns a number that no other turn of any model has. The caller holds mu.
func (p *pauses) nextTurn() int64 {
	p.turns++
	return p.turns
}

// admit lets a call of a paused model pass as the probe, if one is due. It returns the
// number of the probe, or else the pause that denies the call; neither if the pause was
// ended meanwhile.
func (p *pauses) admit(model string, now int64) (probe int64, denying span) {
	p.update(model, now, func(s *span) bool {
		switch {
		case now >= s.word:
		case now < s.probe:
			denying = *s
		default:
			s.step = min(2*s.step, s.most)
			s.probe = now + s.step
			s.until = max(s.until, min(s.word, s.probe))
			s.turn = p.nextTurn()
			probe = s.turn
		}
		return s.word != 0
	})
	return probe, denying
}

// giveBack lets another call be the probe, after a rest, in place of one that has found out
// nothing, unless the provider was heard meanwhile.
func (p *pauses) giveBack(model string, now, probe int64, rest time.Duration) {
	p.update(model, now, func(s *span) bool {
		if s.turn == probe {
			s.probe, s.step = min(s.probe, now+int64(rest)), max(s.step/2, int64(firstProbe)) // as before it
		}
		return s.word != 0
	})
}

// end ends the pause of a model if it is one that was meant. It returns the pause.
func (p *pauses) end(model string, now int64, meant func(s span) bool) (ended span, ok bool) {
	p.update(model, now, func(s *span) bool {
		if s.word == 0 || !meant(*s) {
			return s.word != 0
		}
		ended, ok = *s, true
		return false
	})
	return ended, ok
}
