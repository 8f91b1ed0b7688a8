package fleettests

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

var scriptCalls = regexp.MustCompile(`cmdstat_evalsha:calls=(\d+)`)

// scripts returns how often a server was asked to run a script.
func scripts(t *testing.T, server *redistest.Server) int {
	t.Helper()
	info, err := server.Do("INFO", "commandstats")
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(scriptCalls.FindStringSubmatch(fmt.Sprint(info))[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A call that waits because its share denies it looks ten times a second whether it may pass, and asks
// the store once in some seconds.
func TestWaitingForAShareRarelyAsksTheStore(t *testing.T) {
	server := redistest.New(t)
	rules := func() *engine.Rules {
		log := limit.New(100, time.Minute).Using(limit.SlidingLog)
		return &engine.Rules{Limits: []engine.Limit{{Name: "requests", Unit: engine.Requests, Limit: log}}}
	}
	open := func() (store.Store, error) {
		return redisstore.New(redisstore.Config{URL: server.URL(), Timeout: 20 * time.Second})
	}
	list := newNodes(t, open, 2, rules, map[string]int{"a": 1, "b": 1})
	take := func(ctx context.Context, at *node, project string, n int) error {
		_, err := at.acquireN(ctx, project, n)
		return err
	}
	for k, project := range []string{"b", "a", "b"} { // until both nodes know both projects
		if err := take(t.Context(), list[k%2], project, 10); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- take(ctx, list[1], "a", 80) }() // gathers what it needs
	for list[1].model.Waiting() == 0 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond) // so that the other node knows of it
	go func() { ended <- take(ctx, list[0], "b", 62) }()
	for list[0].model.Waiting() == 0 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(200 * time.Millisecond) // it has asked in its turn
	const seconds = 2
	before := scripts(t, server)
	time.Sleep(seconds * time.Second)
	if asked := scripts(t, server) - before; asked > 2*seconds {
		t.Errorf("the store was asked %d times in %d s", asked, seconds)
	} else {
		t.Logf("the store was asked %d times in %d s", asked, seconds)
	}
	cancel()
	for range cap(ended) {
		if err := <-ended; err == nil {
			t.Error("a call has passed that should have waited")
		}
	}
}
