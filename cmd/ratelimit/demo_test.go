package main

import (
	"context"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// Within seconds the demo shows waiting, shares by weight, denials, and no overshoot.
func TestDemo(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stdout, stderr, code := new(testkit.Log), new(testkit.Log), make(chan int, 1)
	go func() {
		code <- Main(ctx, []string{"demo", "--for", "1h", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, strings.NewReader(""), stdout, stderr)
	}()
	stdout.Await(t, `(?m)^ +([6-9]|\d\d+)s .*intern \d+ passed, \d+ wait, [1-9]`) // the last to reach its limit
	stop()
	if got := <-code; got != exitFine || stderr.String() != "" {
		t.Fatalf("code %d: %s", got, stderr)
	}
	got := stdout.String()
	if !strings.Contains(got, "In a browser: http://127.0.0.1:") {
		t.Errorf("it does not say where the dashboard is:\n%s", got)
	}
	for _, want := range []string{
		`(?m)^ +\d+s \| search \d+ passed, \d+ wait, `,
		`overshoot 0`,
		`Overshoot: 0, as the provider itself has counted.`,
		`(?m)^search .* [1-9]\d* .*%`,
		`(?m)^intern .* 20 +\d +[1-9]`,  // a call of each of its callers may be under way at the end
		`[0-6] / 6`,                     // slots: those of calls that have just ended are free for a moment
		`(?m)^search .*% +\d+ / 3\d\d `, // of 600 requests a minute
		`(?m)^batch .*% +\d+ / 1\d\d `,
		`(?m)^batch .* \d+ +\d+ +[1-9]\d* +0 +\d+ +[\d,]+ +\d+% `, // some calls wait, even at the end
		`reports +3,000 tokens a minute, waits .* / 3,000`,
	} {
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("there is no %s in\n%s", want, got)
		}
	}
	shares := regexp.MustCompile(`get (\d+)%, (\d+)% and (\d+)% of it`).FindStringSubmatch(got)
	if shares == nil {
		t.Fatalf("there are no shares in\n%s", got)
	}
	search, _ := strconv.Atoi(shares[1]) // about 60%: how close that is in seconds depends on what else the machine does
	chat, _ := strconv.Atoi(shares[2])
	batch, _ := strconv.Atoi(shares[3])
	if search <= chat || search <= batch {
		t.Errorf("search has not the most\n%s", got)
	}
	if strings.Contains(got, "\x1b") {
		t.Error("a terminal's codes are printed to what is none")
	}
}

// The demo ends after the time that it was given.
func TestDemoEnds(t *testing.T) {
	if got := run(t, "demo", "--for", "1s", "--listen", "127.0.0.1:0", "--admin", "off"); got.code != exitFine || !strings.Contains(got.stdout, "Overshoot: 0") {
		t.Errorf("%+v", got)
	}
}

// Ctrl-C ends the demo without an error.
func TestDemoEndsEarly(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stdout, code := new(testkit.Log), make(chan int, 1)
	go func() {
		code <- Main(ctx, []string{"demo", "--for", "1h", "--listen", "127.0.0.1:0", "--admin", "off"}, strings.NewReader(""), stdout, io.Discard)
	}()
	stdout.Await(t, `1s \| search`)
	stop()
	select {
	case got := <-code:
		if got != exitFine || !strings.Contains(stdout.String(), "Overshoot: 0") {
			t.Errorf("code %d\n%s", got, stdout)
		}
	case <-time.After(testkit.Patience):
		t.Fatal("it does not end")
	}
}

// Values of flags get into the demo's configuration unchanged.
func TestDemoConfig(t *testing.T) {
	cfg, err := demoConfig("http://127.0.0.1:1", config.Overrides{Listen: "127.0.0.1:0", Admin: "off", State: "/tmp/a \"b\".db"})
	if err != nil || cfg.State != "/tmp/a \"b\".db" || cfg.Admin.Listen != "" {
		t.Fatalf("%+v, %v", cfg, err)
	}
	for name, p := range cfg.Providers {
		for _, d := range p.Deployments {
			if d.BaseURL != "http://127.0.0.1:1" {
				t.Errorf("%s is not made up: %s", name, d.BaseURL)
			}
		}
	}
}

// The witness notices usage above a limit.
func TestWitnessSeesOvershoot(t *testing.T) {
	w := newWitness()
	if n := w.overshoot(); n != 0 {
		t.Errorf("at first it is %d", n)
	}
	for range largeConcurrent + 2 {
		w.count(demoCall{large, "search"}, 1)
	}
	for range largeConcurrent + 2 {
		w.count(demoCall{large, "search"}, -1)
	}
	if n := w.overshoot(); n != 2 {
		t.Errorf("two at a time too many are %d", n)
	}
	for range internRequests + 3 {
		w.record(demoCall{small, "intern"}, 1)
	}
	if n := w.overshoot(); n != 5 {
		t.Errorf("with three requests too many it is %d", n)
	}
	now := time.Now()
	s := &seen{}
	for _, at := range []time.Duration{0, time.Second, window, window + time.Second, window + time.Second + 1} {
		s.record(arrival{now.Add(at), 10})
	}
	if len(s.arrivals) != 3 || s.tokens != 30 || s.mostRequests != 3 || s.mostTokens != 30 {
		t.Errorf("%+v", s)
	}
}
