package main

import (
	"bytes"
	"regexp"
	"testing"
)

// shown is what the example shows: to the token, but not to the millisecond.
var shown = regexp.MustCompile(`^A stream\..*
  admitted: reserved \d+ tokens, waited 0s
  settled: used 7 and 16 tokens
  the model says: .+

Twelve calls at once, .*
(  (admitted: reserved \d+ tokens, waited \d+m?s|settled: used 7 and 16 tokens)
){24}
The provider throttles a call, .*
  admitted: reserved \d+ tokens, waited 0s
  paused for 1s: rate limit
  settled: used 0 and 0 tokens
  OpenAI API error: 429 Too Many Requests
  admitted: reserved \d+ tokens, waited (1s|9\d\dms|1\.\d+s)
  settled: used 4 and 16 tokens

A prompt that the quota can never give is not sent\.
  OpenAI API error: 400 Bad Request

The limiter has counted 319 tokens in 15 requests\. The provider has: 319 tokens in 14 requests, and throttled 1\.
$`)

func TestShow(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if !shown.MatchString(out.String()) {
		t.Errorf("it shows:\n%s", &out)
	}
}
