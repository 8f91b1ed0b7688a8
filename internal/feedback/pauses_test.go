package feedback

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// A limiter that knows of a pause only from other limiters informs them when one of its own calls
// is throttled: the pause that they know of may have ended.
func TestOwnThrottleIsNews(t *testing.T) {
	var p Pauses
	const now = int64(time.Hour)
	others := Throttle{At: now, Length: time.Minute, Max: time.Hour}
	own := others
	own.Cause = llm.RateLimited
	for i, step := range []struct {
		said Throttle
		news bool
	}{{others, false}, {own, true}, {own, false}, {others, false}} {
		if _, news := p.Extend("m", now, step.said); news != step.news {
			t.Errorf("step %d: news is %v", i, news)
		}
	}
}

// At most MaxPaused models are paused at a time, however many are throttled. The pause of a
// model that is paused can become longer.
func TestPausedModelsAreBounded(t *testing.T) {
	var p Pauses
	now := int64(time.Hour)
	throttle := func(model string, pause time.Duration) {
		p.Extend(model, now, Throttle{At: now, Length: pause, Max: time.Hour, Cause: llm.Overloaded})
	}
	want := func(model string, left time.Duration) {
		t.Helper()
		if s, _ := p.Get(model); s.Until-now != int64(left) && !(left == 0 && s == (Pause{})) {
			t.Errorf("%s is paused for %v; want %v", model, time.Duration(s.Until-now), left)
		}
	}
	throttle("0", time.Second)
	full := maps.Clone(*p.byModel.Load())
	for i := range MaxPaused - 2 { // each one by throttle would copy the map each time
		full[fmt.Sprint(i+1)] = Pause{From: now, Ends: now + int64(2*time.Minute), Until: now + int64(2*time.Minute), Step: int64(FirstProbe)}
	}
	p.byModel.Store(&full)
	before := p.byModel.Load()
	throttle("last", time.Minute)
	throttle("one too many", time.Minute)
	want("last", time.Minute)
	want("one too many", 0)
	throttle("1", 3*time.Minute)
	want("1", 3*time.Minute)
	now += int64(time.Second)
	throttle("another", time.Minute) // there is room for it, because a pause has ended
	throttle("one too many", time.Minute)
	want("another", time.Minute)
	want("one too many", 0)
	if n := len(*p.byModel.Load()); n != MaxPaused {
		t.Errorf("%d are paused; want %d", n, MaxPaused)
	}
	if len(*before) != MaxPaused-1 || (*before)["1"].Until != int64(time.Hour+2*time.Minute) {
		t.Error("a map that others may be reading was changed")
	}
}
