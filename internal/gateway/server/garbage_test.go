package server

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/alone"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

func TestPercentFor(t *testing.T) {
	for inUse, want := range map[uint64]int{0: 4000, 1 << 20: 4000, 8 << 20: 500, 40 << 20: 100, 1 << 30: 100} {
		if got := percentFor(inUse); got != want {
			t.Errorf("%d bytes: %d%%", inUse, got)
		}
	}
}

// Each collection adjusts when the next one starts, until tuning stops.
func TestTuneGC(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	t.Setenv("GOGC", "")
	_, stop := tuneGC()
	kept := make([]byte, 128<<20)
	for deadline := time.Now().Add(testkit.Patience); gcPercent() != defaultPercent; {
		runtime.GC()
		if time.Now().After(deadline) {
			t.Fatalf("with much in use, it is still %d%%", gcPercent())
		}
	}
	runtime.KeepAlive(kept)
	kept = nil
	for deadline := time.Now().Add(testkit.Patience); gcPercent() == defaultPercent; {
		runtime.GC()
		if time.Now().After(deadline) {
			t.Fatal("with little in use, it is as usual")
		}
	}
	stop()
	runtime.GC()
	if got := gcPercent(); got != defaultPercent {
		t.Errorf("it is %d%% at the end", got)
	}
}

func gcPercent() int {
	percent := debug.SetGCPercent(defaultPercent)
	debug.SetGCPercent(percent)
	return percent
}
