package main

import (
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/storetest"
)

// A store that somebody else writes is held to the promises of every store by one call.
func TestMapStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T, clock func() int64) store.Store {
		s := newMapStore(clock)
		t.Cleanup(func() { s.Close() })
		return s
	})
}

func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(&out); err != nil {
		t.Fatal(err)
	}
	want := "request 1: allowed true\nrequest 2: allowed true\nrequest 3: allowed false\nthe store counts project/acme/requests\n"
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", out.String(), want)
	}
}
