package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
)

const want = `
A limit of 2/s, burst 3, for each user: a denial says when the call passes
  ann's call 1           passes, 2 left
  ann's call 2           passes, 1 left
  ann's call 3           passes, 0 left
  ann's call 4           denied by 2/s burst 3, passes in 500ms
  ann's call 5           denied by 2/s burst 3, passes in 500ms
  bob's call 1           passes, 2 left
  ann's, 500ms later     passes, 0 left

3/min for each user and 1000 tokens/min for the team, as one: all or nothing
  ann, 600 tokens        passes
  bob, 600 tokens        denied; bob still has 3 calls
  bob, 400 tokens        passes

Waiting for 4/s: first come, first served, and a cancelled wait takes nothing
  waiter 1 after    0ms: passes
  waiter 3 after   30ms: ratelimit: waiting for limit 4/s burst 1: context canceled
  waiter 2 after  250ms: passes
  waiter 4 after  500ms: passes

1000 tokens/min: reserve an estimate, call, then settle what it cost
  reserved 800, 200 left
  settled at 150, 850 left

A queue of 3 that drains at 10/s, and five at once
  after   0ms: passes
  after   0ms: ratelimit: the queue is full
  after 100ms: passes
  after 200ms: passes
  after 300ms: passes
`

func TestShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		show(&out)
		if got := out.String(); sorted(got) != sorted(want) {
			t.Errorf("got:%s\nwant:%s", got, want)
		}
	})
}

// sorted sorts the two lines that are printed at the same instant.
func sorted(s string) string {
	return strings.Replace(s,
		"  after   0ms: ratelimit: the queue is full\n  after   0ms: passes\n",
		"  after   0ms: passes\n  after   0ms: ratelimit: the queue is full\n", 1)
}
