package main

import (
	"fmt"
	"runtime"
	"runtime/metrics"
)

const (
	maxBytesPerKey = 32
	// maxScannedPerKey is in bytes: far from a pointer a key, which would be 8.
	maxScannedPerKey = 0.5
)

// footprint is what the heap holds, in bytes, and how much of it the collector looks through.
type footprint struct {
	heap, scanned float64
}

// perKey is what has been added since before, for each of n keys.
func (f footprint) perKey(before footprint, n int) footprint {
	return footprint{(f.heap - before.heap) / float64(n), (f.scanned - before.scanned) / float64(n)}
}

// measureHeap collects twice, so that finalizers' garbage is gone too.
func measureHeap() footprint {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	scan := []metrics.Sample{{Name: "/gc/scan/heap:bytes"}}
	metrics.Read(scan)
	return footprint{float64(m.HeapAlloc), float64(scan[0].Value.Uint64())}
}

// memory measures what a limiter keeps for each of a million keys. The keys' own bytes are there
// before and not counted.
func memory(b *bench) (result, error) {
	n := b.sized(1_000_000)
	keys := newKeys(2 * n)
	var (
		rows   []row
		checks []check
	)
	for _, c := range keyed() {
		b.step(c.name)
		used := heapPerKey(c, keys[:n])
		rows = append(rows, row{c.name, c.kind, used.heap, []string{
			fmt.Sprintf("%.1f", used.heap), fmt.Sprintf("%.1f", used.scanned), c.retains,
		}})
		if c.kind == ours {
			checks = append(checks, memoryChecks(c, used)...)
		}
	}
	b.step("other sizes")
	rows = append(rows, memoryWorst(keys, n))
	return result{
		reports: []report{{
			name:    "memory",
			title:   "heap a key, 1M string keys of 16 bytes, one limit each; the keys themselves are not counted; measured once",
			columns: []string{"bytes/key", "of them scanned by the collector", "keeps"},
			rows:    rows,
		}},
		checks: checks,
	}, nil
}

func heapPerKey(c contestant, keys []string) footprint {
	before := measureHeap()
	in := c.build(yearly)
	in.decide(keys)
	used := measureHeap().perKey(before, len(keys))
	in.stop()
	runtime.KeepAlive(in)
	return used
}

func memoryChecks(c contestant, used footprint) []check {
	return []check{{
		figure:   "memory: " + c.name + ", heap a key",
		required: fmt.Sprintf("at most %d bytes", maxBytesPerKey),
		measured: fmt.Sprintf("%.1f", used.heap),
		pass:     used.heap <= maxBytesPerKey,
	}, {
		figure:   "memory: " + c.name + ", scanned by the collector",
		required: fmt.Sprintf("less than %.1f bytes a key", maxScannedPerKey),
		measured: fmt.Sprintf("%.2f", used.scanned),
		pass:     used.scanned < maxScannedPerKey,
	}}
}

// memoryWorst looks at ours at other sizes, because tables grow in steps: the figure at exactly a
// million keys may be a lucky one.
func memoryWorst(keys []string, n int) row {
	const steps = 20
	var (
		worst footprint
		at    int
	)
	before := measureHeap()
	in := limitLimiter(yearly)
	for from, i := 0, 0; i <= steps; i++ {
		to := n + i*n/steps
		in.decide(keys[from:to])
		from = to
		if used := measureHeap().perKey(before, to); used.heap > worst.heap {
			worst, at = used, to
		}
	}
	runtime.KeepAlive(in)
	return row{nameLimit + ", worst size", ours, worst.heap, []string{
		fmt.Sprintf("%.1f", worst.heap), fmt.Sprintf("%.1f", worst.scanned), fmt.Sprintf("a hash; of 1M to 2M keys, worst at %d", at),
	}}
}
