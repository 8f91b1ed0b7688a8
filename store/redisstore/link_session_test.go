package redisstore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
)

// A batch runs once, however often and however late it comes.
func TestLinkSession(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	marker, key := "test:{0}:last:client", linkKey("key")
	serverDo(t, server, "SET", "test:{0}:born", "then")
	name, text := library(counting)
	serverDo(t, server, "FUNCTION", "LOAD", text)
	for _, step := range []struct {
		number string
		sent   int // seconds ago
		want   string
		born   string
	}{
		{"1", 0, "1", "then"},
		{"1", 0, "1", "then"},     // again
		{"1", 3600, "1", "then"},  // a remembered answer is given at any time
		{"9", 0, "2", "then"},     // a later one
		{"10", 0, "3", "then"},    // by number, not by text
		{"9", 0, "STALE", "then"}, // an earlier one
		{"1", 3600, "STALE", "then"},
		{"11", 45, "4", "then"},    // sent again and again
		{"12", 52, "LATE", "then"}, // its marker may have expired
		{"12", -7, "LATE", "then"}, // by a wrong clock
		{"12", -3, "5", "then"},
		{"", 3600, "6 of nobody", "then"}, // reads, so it says
		{"", 0, "6 of nobody", "then"},
		{"13", 0, "BORN then", ""},     // a caller that is new
		{"", 0, "BORN then", "before"}, // a server that has forgotten
	} {
		now, err := server.Do("TIME")
		if err != nil {
			t.Fatal(err)
		}
		sec, err := strconv.Atoi(now.([]any)[0].(string))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := server.Do("FCALL", name, "3", marker, "test:{0}:born", key,
			step.number, strconv.Itoa(sec-step.sent), "", "\x00\x01", step.born, "count")
		if all, ok := answer.(string); ok && err == nil {
			_, got, _ := strings.Cut(all, "\n")
			if step.number == "" {
				got += " of nobody"
			}
			if got != step.want {
				t.Errorf("%+v: %s", step, got)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), step.want) {
			t.Errorf("%+v: %v, %v", step, answer, err)
		}
	}
	if got, err := server.Do("GET", key); got != "5" || err != nil {
		t.Error(got, err)
	}
	if left, err := server.Do("PTTL", marker); err != nil || left.(int64) <= 0 || left.(int64) > 60_000 {
		t.Error(left, err)
	}
}

// A link with a wrong idea of the server's clock learns the right time, and nothing is lost.
func TestLinkWrongClock(t *testing.T) {
	t.Parallel()
	for _, wrong := range []time.Duration{-time.Hour, time.Hour} {
		t.Run(fmt.Sprint(wrong), func(t *testing.T) {
			t.Parallel()
			x := newLinkTest(t, patient)
			x.link.server.observe(time.Now().Add(wrong).UnixNano(), 0)
			x.count("key", 1)
			x.count("key", 2)
			o := countOp("key")
			if err := x.do(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			if x.now() < o.at {
				t.Error("the clock went back")
			}
			if len(x.changes) > 0 {
				t.Error("lost")
			}
		})
	}
}

// Reads leave nothing behind in Redis.
func TestLinkReads(t *testing.T) {
	t.Parallel()
	x := newLinkTest(t, patient)
	for range 10 {
		x.proxy.DropAnswer()
		o := countOp("key")
		o.body, o.reads = []byte("read"), true
		if err := x.do(t.Context(), o); err != nil || string(o.answer) != "0" {
			t.Fatal(string(o.answer), err)
		}
	}
	if keys, err := x.server.Do("KEYS", "*"); err != nil || len(keys.([]any)) > 0 {
		t.Error(keys, err)
	}
	x.count("key", 1)
	keys, err := x.server.Do("KEYS", "*")
	if err != nil || len(keys.([]any)) != 3 || !slices.Contains(keys.([]any), any("test:{0}:last:"+x.id)) {
		t.Error(keys, err)
	}
}
