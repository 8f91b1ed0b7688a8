package llmhttp_test

import (
	"bytes"
	"context"
	"io"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"dappco.re/go/core/go-ratelimit/internal/alone"
	"dappco.re/go/core/go-ratelimit/internal/llmhttptest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/mockprovider"
)

// 10,000 streams (3,000 with -short), a thousand at a time, that end in every way leave nothing behind: no
// concurrency slot, no goroutine, no memory.
func TestTenThousandStreams(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	const atATime = 1000
	batches := testkit.Rounds(3, 10)
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
		// The events that the test has recorded take some memory, and so does the limiter's minute.
		if n := inUse(); n > heap+uint64(batches-1)*4<<20 {
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
