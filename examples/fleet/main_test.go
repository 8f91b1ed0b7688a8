package main

import (
	"bytes"
	"errors"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

const want = `Two machines, one Redis, 10 requests a minute: 300 calls at once
  10 pass
One of them sets the quota to 15, and both follow: 300 more
  5 pass
  the next call: rpm_exceeded, 15 of 15 used
`

func TestShow(t *testing.T) {
	url := redistest.New(t).URL()
	for range 2 { // the second run must forget the first
		var out bytes.Buffer
		if err := show(&out, url); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != want {
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		}
	}
}

func TestShowWithoutRedis(t *testing.T) {
	var out bytes.Buffer
	if err := show(&out, "redis://127.0.0.1:1"); !errors.Is(err, redisstore.ErrLost) || out.Len() > 0 {
		t.Errorf("%v, and\n%s", err, &out)
	}
}
