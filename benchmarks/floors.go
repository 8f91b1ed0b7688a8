package main

import (
	"sync/atomic"
	"time"
)

// floors are the costs that limiters are made of. Their results are counted as admissions, so that
// the compiler must compute them.
func floors() []contestant {
	return []contestant{
		{name: "time.Now", kind: floor, build: timeNow},
		{name: nameSince, kind: floor, build: timeSince},
		{name: "a CAS", kind: floor, build: cas},
		{name: "a map, no lock", kind: floor, keyed: true, retains: "the key", build: mapLookup},
	}
}

func timeNow(quota) instance {
	return instance{decide: func(keys []string) (n int) {
		for range keys {
			if !time.Now().IsZero() {
				n++
			}
		}
		return n
	}}
}

func timeSince(quota) instance {
	base := time.Now()
	return instance{decide: func(keys []string) (n int) {
		for range keys {
			if time.Since(base) >= 0 {
				n++
			}
		}
		return n
	}}
}

// cas is one successful compare-and-swap, with the retries that others force on it.
func cas(quota) instance {
	var word atomic.Int64
	return instance{decide: func(keys []string) (n int) {
		for range keys {
			for old := word.Load(); !word.CompareAndSwap(old, old+1); old = word.Load() {
			}
			n++
		}
		return n
	}}
}

// mapLookup writes only keys it has not seen: once they are filled in by one goroutine, it reads.
func mapLookup(quota) instance {
	m := make(map[string]int64)
	return instance{decide: func(keys []string) (n int) {
		for _, key := range keys {
			if _, ok := m[key]; !ok {
				m[key] = 1
			}
			n++
		}
		return n
	}}
}
