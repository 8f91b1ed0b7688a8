package main

import (
	"fmt"
	"math/rand/v2"
)

const keySize = 16 // bytes

// newRand is the same sequence in every run and for every contestant.
func newRand() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// newKeys returns n different keys.
func newKeys(n int) []string {
	r := newRand()
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("%016x", r.Uint64())
	}
	return keys
}

// accesses is the order in which n requests come in, each with a key of its own memory, as if just
// parsed: finding the key in a limiter's memory is part of a decision, reading the request is not.
func accesses(keys []string, n int, pick func() int) []string {
	arena := make([]byte, 0, n*keySize)
	for range n {
		arena = append(arena, keys[pick()]...)
	}
	all := string(arena)
	out := make([]string, n)
	for i := range out {
		out[i] = all[i*keySize : (i+1)*keySize]
	}
	return out
}

func uniform(n int) func() int {
	r := newRand()
	return func() int { return r.IntN(n) }
}

// zipf is the skew of real traffic: exponent 1.1, so that few keys make up most requests.
func zipf(n int) func() int {
	z := rand.NewZipf(newRand(), 1.1, 1, uint64(n-1))
	return func() int { return int(z.Uint64()) }
}
