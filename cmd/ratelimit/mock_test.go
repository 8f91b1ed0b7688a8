package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// The mock provider answers until Ctrl-C, and then says what it has counted.
func TestMock(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stdout, stderr, code := new(testkit.Log), new(testkit.Log), make(chan int, 1)
	go func() {
		code <- Main(ctx, []string{"mock", "--listen", "127.0.0.1:0", "--limit", "m=requests:2,tokens:9_000", "--output", "7"}, nil, stdout, stderr)
	}()
	base := stderr.Await(t, `serves (http\S+)`)
	statuses := []int{}
	for range 3 {
		resp, err := http.Post(base+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		statuses = append(statuses, resp.StatusCode)
		if resp.StatusCode == 200 && !strings.Contains(string(text), `"completion_tokens":7`) {
			t.Errorf("%s", text)
		}
	}
	if statuses[0] != 200 || statuses[1] != 200 || statuses[2] != 429 {
		t.Errorf("statuses %v", statuses)
	}
	stop()
	if got := <-code; got != exitFine {
		t.Errorf("code %d: %s", got, stderr)
	}
	stdout.Await(t, `(?m)^model +answered +refused +input +cached +output +reasoning\nm +2 +1 +\d+ +0 +14 +0$`)
}

func TestMockRefusesNonsense(t *testing.T) {
	for _, args := range []string{"--limit m", "--limit m=calls:5", "--limit =tokens:5", "--limit m=tokens:0", "--output 0", "--delay -1s"} {
		if got := run(t, append([]string{"mock", "--listen", "127.0.0.1:0"}, strings.Fields(args)...)...); got.code != exitUsage || !strings.Contains(got.stderr, "must be") {
			t.Errorf("%s: %+v", args, got)
		}
	}
	if got := run(t, "mock", "--listen", "nowhere"); got.code != exitFailed || !strings.Contains(got.stderr, "cannot listen at nowhere") {
		t.Errorf("%+v", got)
	}
}
