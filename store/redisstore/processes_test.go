package redisstore

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/limit"
)

// asChild is set in a process that the tests have started: to its orders.
const asChild = "RATELIMIT_REDISSTORE_CHILD"

func init() {
	text := os.Getenv(asChild)
	if text == "" {
		return
	}
	if err := child(text); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// orders are what a child process does.
type orders struct {
	URL   string
	Shift time.Duration // by which its clock is wrong
	Names []string      // of the limits that it takes from
	Kinds [][]byte      // these limits
}

// child reports that it is ready, and takes from all limits once its input ends, until they deny.
// It prints how many have passed of each.
func child(text string) error {
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	s, err := New(Config{URL: o.URL, Timeout: time.Minute})
	if err != nil {
		return err
	}
	defer s.Close()
	linkOf(s).server.shift(o.Shift)
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	limits := make([]limit.Limit, len(o.Kinds))
	for i := range limits {
		if err := limits[i].UnmarshalBinary(o.Kinds[i]); err != nil {
			return err
		}
	}
	passed, err := exhaust(s, o.Names, limits)
	if err != nil {
		return err
	}
	for i := range passed {
		fmt.Println(passed[i].Load())
	}
	return nil
}

// shift makes the clock show, before the first answer, the time of a machine whose clock is so much
// ahead.
func (c *serverClock) shift(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	here := time.Now()
	c.readTime, c.readAt = here.Add(d).UnixNano(), here
}

// exhaust takes one of each key in turn, in a few goroutines, until all are denied, and returns how
// many have passed of each.
func exhaust(s *Store, keys []string, limits []limit.Limit) ([]atomic.Int64, error) {
	passed := make([]atomic.Int64, len(keys))
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for some := true; some; {
				some = false
				for i, key := range keys {
					r, _, err := s.Take(context.Background(), one(key, limits[i], 1))
					if err != nil {
						failed.Store(&err)
						return
					}
					if r != nil {
						passed[i].Add(1)
						some = true
					}
				}
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return nil, *err
	}
	return passed, nil
}

// process is a child, and its output after it was ready.
type process struct {
	*exec.Cmd
	input  io.WriteCloser
	output io.Reader
}

func begin(t *testing.T, o orders) *process {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.Command(program)}
	p.Env = append(os.Environ(), asChild+"="+string(text))
	p.Stderr = os.Stderr
	p.input, err = p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.output, err = p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Process.Kill()
		p.Wait()
	})
	return p
}

// Eight processes whose clocks are an hour apart admit exactly the limit, of every kind.
func TestProcesses(t *testing.T) {
	t.Parallel()
	const quota, processes = 500, 8
	server := redistest.New(t)
	kinds := everyKind(quota)
	o := orders{URL: server.URL()}
	for name, l := range kinds {
		bytes, err := l.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		o.Names, o.Kinds = append(o.Names, name), append(o.Kinds, bytes)
	}
	var all []*process
	for i := range processes {
		o.Shift = time.Duration(i-processes/2) * time.Hour
		all = append(all, begin(t, o))
	}
	for _, p := range all {
		var said string
		if _, err := fmt.Fscanln(p.output, &said); err != nil || said != "ready" {
			rest, _ := io.ReadAll(p.output)
			t.Fatalf("%s %s: %v", said, rest, err)
		}
	}
	for _, p := range all {
		p.input.Close()
	}
	passed := make([]int64, len(o.Names))
	took := 0 // processes that were admitted anything
	for _, p := range all {
		before := passed[0]
		for i := range passed {
			var n int64
			if _, err := fmt.Fscanln(p.output, &n); err != nil {
				rest, _ := io.ReadAll(p.output)
				t.Fatalf("%s: %v", strings.TrimSpace(string(rest)), err)
			}
			passed[i] += n
		}
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
		if passed[0] > before {
			took++
		}
	}
	if took < 2 {
		t.Error("one process was faster than all others together")
	}
	s := opened(t, server.URL(), Config{Timeout: time.Minute})
	for i, name := range o.Names {
		if passed[i] != quota {
			t.Errorf("%s: %d have passed; want %d", name, passed[i], quota)
		}
		wantLeft(t, s, name, kinds[name], 0)
	}
}
