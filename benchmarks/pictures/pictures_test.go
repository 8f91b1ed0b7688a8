package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// The files that the documents show are what the code draws.
func TestPicturesAreCurrent(t *testing.T) {
	for name, draw := range pictures {
		kept, err := os.ReadFile(filepath.Join("..", folder, name))
		if err != nil || !bytes.Equal(kept, draw()) {
			t.Errorf("docs/pictures/%s is not what is drawn now (%v): run make pictures", name, err)
		}
	}
}

// Ours admits as many calls as fit into the limit, and not one more.
func TestOvershootIsZero(t *testing.T) {
	if got := admit(); got != tokensMinute/tokensOfCall {
		t.Errorf("%d calls of %d tokens pass: want %d", got, tokensOfCall, tokensMinute/tokensOfCall)
	}
}

// What the titles of the panels say is so.
func TestAlgorithmsAdmit(t *testing.T) {
	at := traffic()
	most := func(l limit.Limit) (highest int) {
		admitted := pass(l, at)
		for now := time.Duration(0); now < length; now += time.Second {
			highest = max(highest, lastMinute(at, admitted, now))
		}
		return highest
	}
	perMinute := limit.PerMinute(perMinute)
	for _, tt := range []struct {
		limit       limit.Limit
		least, most int
	}{
		{perMinute.Using(limit.SlidingLog), 20, 20},
		{perMinute.Using(limit.FixedWindow), 21, 40},
		{perMinute.WithBurst(1), 1, 21},
		{perMinute, 20, 40},
	} {
		if got := most(tt.limit); got < tt.least || got > tt.most {
			t.Errorf("%v: %d in a minute, want %d to %d", tt.limit, got, tt.least, tt.most)
		}
	}
}
