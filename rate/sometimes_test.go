package rate

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestSometimes(t *testing.T) {
	cases := []struct {
		s    Sometimes
		want []int // of ten calls, one a second
	}{
		{Sometimes{}, []int{0}},
		{Sometimes{First: 3}, []int{0, 1, 2}},
		{Sometimes{First: -1}, []int{0}},
		{Sometimes{Every: 1}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
		{Sometimes{Every: 4}, []int{0, 4, 8}},
		{Sometimes{Every: -1}, []int{0}},
		{Sometimes{Interval: 2 * time.Second}, []int{0, 2, 4, 6, 8}},
		{Sometimes{Interval: 2500 * time.Millisecond}, []int{0, 3, 6, 9}},
		{Sometimes{Interval: math.MaxInt64}, []int{0}},
		{Sometimes{Interval: -1}, []int{0}},
		{Sometimes{First: 2, Every: 5, Interval: 3 * time.Second}, []int{0, 1, 4, 5, 8}},
	}
	for i := range cases {
		s := &cases[i].s
		t.Run(fmt.Sprintf("First %d, Every %d, Interval %v", s.First, s.Every, s.Interval), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ran []int
				for call := range 10 {
					s.Do(func() { ran = append(ran, call) })
					time.Sleep(time.Second)
				}
				if !slices.Equal(ran, cases[i].want) {
					t.Errorf("calls %v ran, want %v", ran, cases[i].want)
				}
			})
		})
	}
}

// The interval runs from when f returns, not from when it is called.
func TestSometimesSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ran := Sometimes{Interval: time.Second}, 0
		for range 2 {
			s.Do(func() { ran++; time.Sleep(2 * time.Second) })
		}
		if ran != 1 {
			t.Errorf("%d runs, want 1", ran)
		}
	})
}

func TestSometimesPanic(t *testing.T) {
	var s Sometimes
	for range 2 {
		func() {
			defer func() { recover() }()
			s.Do(func() { panic("oh") })
		}()
	}
	ran := 0
	for range 2 {
		s.Do(func() { ran++ })
	}
	if ran != 1 {
		t.Errorf("%d runs, want 1: the calls that panicked do not count", ran)
	}
}

func TestSometimesConcurrent(t *testing.T) {
	s, ran := Sometimes{Every: 10}, 0
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				s.Do(func() { ran++ })
			}
		})
	}
	wg.Wait()
	if ran != 800 {
		t.Errorf("%d runs, want 800", ran)
	}
}
