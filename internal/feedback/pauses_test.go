package feedback

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// A limiter that was told of a pause, and then hears the provider's word itself, tells
// others: what it was told of may have ended.
func TestOwnRefusalIsNews(t *testing.T) {
	var p Pauses
	const now = int64(time.Hour)
	told := Refusal{At: now, Length: time.Minute, Most: time.Hour}
	own := told
	own.Cause = llm.RateLimited
	for i, step := range []struct {
		said Refusal
		news bool
	}{{told, false}, {own, true}, {own, false}, {told, false}} {
		if _, news := p.Extend("m", now, step.said); news != step.news {
			t.Errorf("step %d: news is %v", i, news)
		}
	}
}

// However many names are refused, so many are paused at a time. The pauses of those that
// are may become longer.
func TestPausedModelsAreBounded(t *testing.T) {
	var p Pauses
	now := int64(time.Hour)
	refuse := func(model string, pause time.Duration) {
		p.Extend(model, now, Refusal{At: now, Length: pause, Most: time.Hour, Cause: llm.Overloaded})
	}
	want := func(model string, left time.Duration) {
		t.Helper()
		if s, _ := p.Get(model); s.Until-now != int64(left) && !(left == 0 && s == (Pause{})) {
			t.Errorf("%s is paused for %v; want %v", model, time.Duration(s.Until-now), left)
		}
	}
	refuse("0", time.Second)
	full := maps.Clone(*p.spans.Load())
	for i := range MostPaused - 2 { // each one by refuse would copy the map each time
		full[fmt.Sprint(i+1)] = Pause{From: now, Word: now + int64(2*time.Minute), Until: now + int64(2*time.Minute), Step: int64(FirstProbe)}
	}
	p.spans.Store(&full)
	before := p.spans.Load()
	refuse("last", time.Minute)
	refuse("one too many", time.Minute)
	want("last", time.Minute)
	want("one too many", 0)
	refuse("1", 3*time.Minute)
	want("1", 3*time.Minute)
	now += int64(time.Second)
	refuse("another", time.Minute) // in the place of the one that has ended
	refuse("one too many", time.Minute)
	want("another", time.Minute)
	want("one too many", 0)
	if n := len(*p.spans.Load()); n != MostPaused {
		t.Errorf("%d are paused; want %d", n, MostPaused)
	}
	if len(*before) != MostPaused-1 || (*before)["1"].Until != int64(time.Hour+2*time.Minute) {
		t.Error("a map that others may be reading was changed")
	}
}
