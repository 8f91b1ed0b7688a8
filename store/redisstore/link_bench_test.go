package redisstore

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"github.com/redis/rueidis"
)

// trivial is an arithmetic that does next to nothing.
const trivial = `
local function run(sec, ns, base, body) return body end
local function flush() end
`

// BenchmarkLink compares ops that share calls with one call an op, by as many goroutines as a busy
// program has.
func BenchmarkLink(b *testing.B) {
	for _, goroutines := range []int{1, 64} {
		b.Run("alone/"+strconv.Itoa(goroutines), func(b *testing.B) {
			client := dial(b, redistest.New(b).Addr)
			script := rueidis.NewLuaScript("return ARGV[1]")
			inParallel(b, goroutines, func(i int) error {
				return script.Exec(b.Context(), client, []string{"key:{0}"}, []string{"body"}).Error()
			})
		})
		b.Run("link/"+strconv.Itoa(goroutines), func(b *testing.B) {
			l := newLink(dial(b, redistest.New(b).Addr), linkConfig{namespace: "bench", timeout: 5 * time.Second, script: trivial})
			defer l.close()
			keys, body := []string{"key:{0}"}, []byte("body")
			inParallel(b, goroutines, func(i int) error {
				return l.do(b.Context(), &op{keys: keys, body: body})
			})
		})
	}
}

// inParallel does something b.N times.
func inParallel(b *testing.B, goroutines int, do func(i int) error) {
	b.ReportAllocs()
	b.ResetTimer()
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for i := g; i < b.N; i += goroutines {
				if err := do(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}
