package main

import (
	"bytes"
	"testing"
)

const want = `10 requests and 3,000 tokens a minute: 300 calls at once, about 360 tokens each
  8 pass, for 2880 tokens

An estimate is reserved, and corrected when the call has ended
  2000 tokens reserved             next: tpm_exceeded, come back in 1m0s        2000 of 3000 tokens used
  850 of them used                 next: passes                                  850 of 3000 tokens used
  2900 where 2000 were reserved    next: tpm_exceeded, come back in 1m0s        3750 of 3000 tokens used
  a call larger than the quota     next: never passes: tpm_exceeded             3750 of 3000 tokens used
  a wait of 50ms for 100 tokens    deadline exceeded: true

Two limiters, one SQLite file, one quota
  5 pass through one, 5 through the other
`

func TestShow(t *testing.T) {
	var out bytes.Buffer
	if err := show(&out); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
