package llmhttp_test

import (
	"bytes"
	"context"
	"io"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/alone"
	"dappco.re/go/core/go-ratelimit/internal/llmhttptest"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// A stream that is closed before its usage has come is read on for a moment: it is settled by its usage
// if that comes, and Close does not wait for long if it does not.
func TestCloseReadsOn(t *testing.T) {
	for name, c := range map[string]struct {
		reply mockprovider.Reply
		exact bool
	}{
		"at the last token":    {mockprovider.Reply{Reasoning: 30, Output: 1}, true},
		"a stream that stalls": {mockprovider.Reply{Reasoning: 5000, Output: 1, Fault: mockprovider.FaultStall, After: 2}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := llmhttptest.New(t, mockprovider.Config{Script: func(mockprovider.Call) mockprovider.Reply { return c.reply }}, ample)
				response, err := streams[0].send(t.Context(), w.Client)
				if err != nil {
					t.Fatal(err)
				}
				io.ReadFull(response.Body, make([]byte, 20))
				began := time.Now()
				response.Body.Close()
				if took := time.Since(began); took > time.Second {
					t.Errorf("Close has taken %v", took)
				}
				synctest.Wait()
				if charged, used := w.Limiter.Stats(model).TPM, w.Server.Totals()[model]; c.exact && int64(charged) != int64(used.Input+used.Output) {
					t.Errorf("%d tokens are charged for %+v", charged, used)
				}
			})
		})
	}
}

// 10,000 streams (3,000 with -short), a thousand at a time, that end in every way leave nothing behind: no
// concurrency slot, no goroutine, no memory.
func TestTenThousandStreams(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	const atATime = 1000
	batches := testkit.Rounds(2, 10)
	synctest.Test(t, func(t *testing.T) {
		w := llmhttptest.New(t, mockprovider.Config{Script: func(c mockprovider.Call) mockprovider.Reply {
			switch c.Number % 4 {
			case 0:
				return mockprovider.Reply{Fault: mockprovider.FaultReset, After: 6, Output: 6}
			default:
				return mockprovider.Reply{Output: 6}
			}
		}}, ample)
		batch := func() {
			var opened, ended sync.WaitGroup
			opened.Add(atATime)
			goOn := make(chan struct{})
			for i := range atATime {
				ended.Go(func() {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					response, err := streams[i%len(streams)].send(ctx, w.Client)
					opened.Done()
					if err != nil {
						t.Error(err)
						return
					}
					<-goOn
					switch i % 3 {
					case 0:
						io.Copy(io.Discard, response.Body)
						response.Body.Close()
					case 1:
						io.ReadFull(response.Body, make([]byte, 50))
						response.Body.Close()
					case 2:
						cancel() // without closing the body
					}
				})
			}
			opened.Wait()
			if n := w.Limiter.Stats(model).Concurrent; n != atATime {
				t.Errorf("%d streams at a time, want %d", n, atATime)
			}
			close(goOn)
			ended.Wait()
			w.Direct.CloseIdleConnections()
			synctest.Wait()
		}
		batch()
		goroutines, heap := inBubble(), inUse()
		for range batches - 1 {
			batch()
		}
		w.Ended()
		if n := inBubble(); n > goroutines {
			t.Errorf("%d goroutines after a thousand streams, %d after all", goroutines, n)
		}
		// The events that the test has recorded take some memory, and so does the limiter's minute: half a megabyte for
		// a thousand streams. What the runtime keeps for as many goroutines as there ever were at once differs by up to
		// seven megabytes.
		if n := inUse(); n > heap+8<<20+uint64(batches-1)<<20 {
			t.Errorf("%d bytes after a thousand streams, %d after all", heap, n)
		}
		if n := w.Server.Totals()[model].Requests; n != batches*atATime {
			t.Errorf("%d streams", n)
		}
	})
}

// inBubble returns how many goroutines the test has, without those of the runtime, such as one that runs
// finalizers just now.
func inBubble() int {
	stacks := make([]byte, 1<<20)
	return bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte("synctest bubble"))
}

// inUse returns how many bytes of the heap are in use.
func inUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
