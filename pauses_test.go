package ratelimit

import (
	"encoding/json"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// A limiter may read a pause only after the pause was ended. The next end that it reads ends
// the pause, whichever limiters have written the two. Otherwise it would be paused for as long
// as the provider had demanded, and would not write later pauses.
func TestPauseIsHeardAfterItsEnd(t *testing.T) {
	rl := memLimiter(t, ModelQuota{MaxRPM: 10})
	clock := memClock(rl)
	hear := func(p storedPause) {
		t.Helper()
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		rl.loadPauses(map[string]string{pausePrefix + memModel: string(text)})
	}
	began := storedPause{From: clock.now, Until: clock.now + int64(5*time.Minute)}
	clock.pass(time.Second)
	ended := storedPause{Ended: clock.now}
	clock.pass(time.Second)

	hear(began)
	if rl.Paused(memModel) == 0 {
		t.Fatal("it has not heard of the pause")
	}
	hear(ended)
	if left := rl.Paused(memModel); left > 0 {
		t.Errorf("the pause has ended, and goes on for %v", left)
	}

	hear(began)
	rl.Heed(t.Context(), memModel, llm.Limits{Cause: llm.RateLimited, Pause: 5 * time.Minute})
	hear(ended)
	if rl.Paused(memModel) == 0 {
		t.Error("a later refusal is forgotten")
	}
}
