package limit

import (
	"math"
	"testing"
	"time"
)

// stepRow is one request and its answer. The time is counted from stepStart.
type stepRow struct {
	at        time.Duration
	n         int64
	allowed   bool
	remaining int64
	retry     time.Duration
	reset     time.Duration
}

// answer returns what the row wants of a limit. Where nothing remains it takes what
// was used from got, which may be a debt, as it takes the start of the window.
func (r stepRow) answer(l Limit, got modelAnswer) modelAnswer {
	want := modelAnswer{r.allowed, l.Burst() - r.remaining, r.remaining, r.retry, r.reset, got.since}
	if r.remaining == 0 {
		want.used = max(want.used, got.used)
	}
	return want
}

// stepStart is a whole hour, minute and second, so aligned windows begin there.
const stepStart = int64(472_222 * time.Hour)

func TestSteps(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	for _, test := range []struct {
		name  string
		limit Limit
		rows  []stepRow
	}{
		{"three a second, at once and then one by one", PerSecond(3), []stepRow{
			{0, 1, true, 2, 0, 333333334},
			{0, 1, true, 1, 0, 666666667},
			{0, 1, true, 0, 0, s},
			{0, 1, false, 0, 333333334, s},
			{333333333, 1, false, 0, 1, 666666667},
			{333333334, 1, true, 0, 0, s},
			{333333334, 1, false, 0, 333333333, s},
			{666666666, 1, false, 0, 1, 666666668},
			{666666667, 1, true, 0, 0, s},
			{s, 1, true, 0, 0, s},
			{s, 1, false, 0, 333333334, s},
		}},
		{"a burst that is smaller than the count", PerSecond(10).WithBurst(2), []stepRow{
			{0, 3, false, 2, Never, 0},
			{0, 2, true, 0, 0, 200 * ms},
			{50 * ms, 1, false, 0, 50 * ms, 150 * ms},
			{100 * ms, 1, true, 0, 0, 200 * ms},
			{s, 2, true, 0, 0, 200 * ms},
		}},
		{"a burst that is larger than the count", PerSecond(2).Using(TokenBucket).WithBurst(5), []stepRow{
			{0, 5, true, 0, 0, 2500 * ms},
			{0, 5, false, 0, 2500 * ms, 2500 * ms},
			{499 * ms, 1, false, 0, ms, 2001 * ms},
			{500 * ms, 1, true, 0, 0, 2500 * ms},
			{10 * s, 6, false, 5, Never, 0},
			{10 * s, 0, true, 5, 0, 0},
		}},
		{"nothing, and what cannot be", PerMinute(2).Using(LeakyBucket), []stepRow{
			{0, 0, true, 2, 0, 0},
			{0, -1, false, 2, Never, 0},
			{0, math.MinInt64, false, 2, Never, 0},
			{0, 3, false, 2, Never, 0},
			{0, math.MaxInt64, false, 2, Never, 0},
			{0, 2, true, 0, 0, 60 * s},
			{0, 0, true, 0, 0, 60 * s},
			{0, 3, false, 0, Never, 60 * s},
			{15 * s, 0, true, 0, 0, 45 * s},
			{15 * s, 2, false, 0, 45 * s, 45 * s},
			{15 * s, -7, false, 0, Never, 45 * s},
		}},
		{"one a year", New(1, modelYear), []stepRow{
			{0, 1, true, 0, 0, modelYear},
			{modelYear - 1, 1, false, 0, 1, 1},
			{modelYear, 1, true, 0, 0, modelYear},
			{2*modelYear + 17, 1, true, 0, 0, modelYear},
		}},
		{"2^62 a nanosecond", New(1<<62, 1), []stepRow{
			{0, 1 << 62, true, 0, 0, 1},
			{0, 1, false, 0, 1, 1},
			{1, 1<<62 - 1, true, 1, 0, 1},
			{1, 2, false, 1, 1, 1},
			{1, 1, true, 0, 0, 1},
			{1, 1<<62 + 1, false, 0, Never, 1},
			{2, 1, true, 1<<62 - 1, 0, 1},
		}},
		{"a bucket when the clock goes back, and jumps", PerSecond(2), []stepRow{
			{10 * s, 2, true, 0, 0, s},
			{9 * s, 1, false, 0, 500 * ms, s}, // grants nothing
			{9*s + 499*ms, 1, false, 0, ms, 501 * ms},
			{9*s + 500*ms, 1, true, 0, 0, s}, // freezes nothing
			{9*s + 400*ms, 0, true, 0, 0, s},
			{1000 * time.Hour, 2, true, 0, 0, s},
			{1000 * time.Hour, 1, false, 0, 500 * ms, s},
		}},
		{"an aligned window", PerMinute(3).Using(FixedWindow), []stepRow{
			{59 * s, 3, true, 0, 0, s},
			{59 * s, 1, false, 0, s, s},
			{60*s - 1, 1, false, 0, 1, 1},
			{60 * s, 3, true, 0, 0, 60 * s}, // as much again
			{61 * s, 1, false, 0, 59 * s, 59 * s},
			{61 * s, 0, true, 0, 0, 59 * s},
			{61 * s, 4, false, 0, Never, 59 * s},
			{61 * s, -4, false, 0, Never, 59 * s},
			{125 * s, 0, true, 3, 0, 0},
			{125 * s, 1, true, 2, 0, 55 * s},
			{126 * s, 3, false, 2, 54 * s, 54 * s},
		}},
		{"an aligned window when the clock goes back, and jumps", PerMinute(3).Using(FixedWindow), []stepRow{
			{10*time.Minute + 30*s, 3, true, 0, 0, 30 * s},
			{10*time.Minute + 10*s, 1, false, 0, 50 * s, 50 * s},
			{9*time.Minute + 50*s, 1, false, 0, 70 * s, 70 * s}, // a step back over a boundary grants nothing,
			{10 * time.Minute, 1, false, 0, 60 * s, 60 * s},     // not even at the boundary
			{11 * time.Minute, 3, true, 0, 0, 60 * s},
			{5*time.Minute + s, 1, false, 0, 119 * s, 119 * s}, // a jump freezes it until the end of the next window at most
			{7 * time.Minute, 3, true, 0, 0, 60 * s},
			{1000 * time.Hour, 3, true, 0, 0, 60 * s},
		}},
		{"an anchored window", PerMinute(3).Anchored(), []stepRow{
			{7 * s, 0, true, 3, 0, 0}, // asks for nothing, so it opens none
			{17 * s, 2, true, 1, 0, 60 * s},
			{76 * s, 2, false, 1, s, s},
			{76 * s, 1, true, 0, 0, s},
			{77*s - 1, 1, false, 0, 1, 1},
			{77 * s, 0, true, 3, 0, 0},
			{100 * s, 1, true, 2, 0, 60 * s},
			{160 * s, 3, true, 0, 0, 60 * s},
		}},
		{"an anchored window when the clock goes back", PerMinute(3).Anchored(), []stepRow{
			{100 * s, 3, true, 0, 0, 60 * s},
			{40 * s, 1, false, 0, 60 * s, 60 * s},
			{100*s - 1, 1, false, 0, 1, 1},
			{100 * s, 3, true, 0, 0, 60 * s},
		}},
		{"a window of 2^62 a nanosecond", New(1<<62, 1).Using(FixedWindow), []stepRow{
			{0, 1 << 62, true, 0, 0, 1},
			{0, 1, false, 0, 1, 1},
			{1, 1 << 62, true, 0, 0, 1},
		}},
		{"a counter", PerMinute(10).Using(SlidingCounter), []stepRow{
			{59 * s, 10, true, 0, 0, 61 * s},
			{59 * s, 1, false, 0, s + 1, 61 * s},
			{60 * s, 1, false, 0, 1, 60 * s},
			{60*s + 1, 1, true, 0, 0, 120*s - 1}, // a little less than 10, which is below the limit
			{60*s + 1, 1, false, 0, 6 * s, 120*s - 1},
			{66 * s, 1, false, 0, 1, 114 * s},
			{66 * s, 11, false, 0, Never, 114 * s},
			{66 * s, -1, false, 0, Never, 114 * s},
			{90 * s, 0, true, 4, 0, 90 * s}, // 10 half past, and 1
			{90 * s, 5, false, 4, 1, 90 * s},
			{90 * s, 4, true, 0, 0, 90 * s},
			{90 * s, 6, false, 0, 30*s + 1, 90 * s},
			{90 * s, 10, false, 0, 30*s + 48*s + 1, 90 * s},
			{168 * s, 10, false, 9, 1, 12 * s},
			{168*s + 1, 10, true, 0, 0, 72*s - 1},
		}},
		{"a counter rounds down what the window before weighs", New(3, 8).Using(SlidingCounter), []stepRow{
			{0, 1, true, 2, 0, 16},
			{8, 2, true, 0, 0, 16},
			{8, 1, false, 0, 1, 16},
			{9, 1, true, 0, 0, 15}, // 2 and 7/8 are below 3
			{9, 1, false, 0, 8, 15},
			{16, 1, false, 0, 1, 8},
			{17, 1, true, 0, 0, 15},
		}},
		{"a counter of one", PerMinute(1).Using(SlidingCounter), []stepRow{
			{0, 1, true, 0, 0, 120 * s},
			{30 * s, 1, false, 0, 30*s + 1, 90 * s},
			{60 * s, 1, false, 0, 1, 60 * s},
			{60*s + 1, 1, true, 0, 0, 120*s - 1},
			{60*s + 1, 1, false, 0, 60 * s, 120*s - 1},
		}},
		{"a counter when the clock goes back, and jumps", PerMinute(10).Using(SlidingCounter), []stepRow{
			{10 * time.Minute, 4, true, 6, 0, 120 * s},
			{11 * time.Minute, 6, true, 0, 0, 120 * s},
			{9*time.Minute + 30*s, 0, true, 0, 0, 90 * s}, // both windows count whole, as if they had passed now
			{9*time.Minute + 30*s, 3, false, 0, 42*s + 1, 90 * s},
			{10 * time.Minute, 1, false, 0, 1, 60 * s},
			{10*time.Minute + 18*s, 3, true, 0, 0, 102 * s},
			{5*time.Minute + s, 1, false, 0, 59*s + 60*s - 46153846153, 119 * s}, // a jump freezes it until the end of the next window at most
			{1000 * time.Hour, 10, true, 0, 0, 120 * s},
		}},
		{"a counter when the clock goes back and forth over a boundary", PerMinute(20).Using(SlidingCounter), []stepRow{
			{57 * s, 20, true, 0, 0, 63 * s},
			{61*s + s/2, 1, true, 0, 0, 118*s + s/2}, // of 20 as many have left as do in 1.5 s
			{57 * s, 1, false, 0, 3*s + 60*s - 57142857142, 63 * s},
			{61*s + s/2, 1, false, 0, 58*s + s/2 - 57142857142, 58*s + s/2}, // there is no second turn
			{57 * s, 1, false, 0, 3*s + 60*s - 57142857142, 63 * s},
			{69 * s, 3, true, 0, 0, 111 * s},
		}},
		{"a counter of 2^62 a nanosecond when the clock goes back", New(1<<62, 2).Using(SlidingCounter), []stepRow{
			{0, 1 << 62, true, 0, 0, 4},
			{3, 1 << 61, true, 0, 0, 3},
			{1, 1, false, 0, 2, 3},
			{2, 1, false, 0, 1, 2},
			{3, 1 << 61, true, 0, 0, 3},
		}},
		{"a counter of 2^62 a nanosecond", New(1<<62, 1).Using(SlidingCounter), []stepRow{
			{0, 1 << 62, true, 0, 0, 2},
			{1, 1, false, 0, 1, 1},
			{2, 1 << 62, true, 0, 0, 2},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var counter state
			for i, row := range test.rows {
				next, v := test.limit.take(counter, stepStart+int64(row.at), row.n)
				got := modelAnswerOf(v)
				if want := row.answer(test.limit, got); got != want {
					t.Fatalf("row %d, take %d at %v: %+v; want %+v", i, row.n, row.at, got, want)
				}
				counter = next
			}
		})
	}
}

func TestLogSteps(t *testing.T) {
	const s = time.Second
	for _, test := range []struct {
		name  string
		limit Limit
		rows  []stepRow
	}{
		{"what passed counts for exactly a period", PerMinute(3).Using(SlidingLog), []stepRow{
			{0, 1, true, 2, 0, 60 * s},
			{10 * s, 1, true, 1, 0, 60 * s},
			{20 * s, 1, true, 0, 0, 60 * s},
			{30 * s, 1, false, 0, 30 * s, 50 * s},
			{30 * s, 2, false, 0, 40 * s, 50 * s},
			{30 * s, 3, false, 0, 50 * s, 50 * s},
			{30 * s, 4, false, 0, Never, 50 * s},
			{30 * s, -1, false, 0, Never, 50 * s},
			{30 * s, 0, true, 0, 0, 50 * s},
			{60*s - 1, 1, false, 0, 1, 20*s + 1},
			{60 * s, 1, true, 0, 0, 60 * s},
			{75 * s, 2, false, 1, 5 * s, 45 * s},
			{75 * s, 1, true, 0, 0, 60 * s},
			{1000 * time.Hour, 3, true, 0, 0, 60 * s},
		}},
		{"the clock goes back", PerMinute(3).Using(SlidingLog), []stepRow{
			{100 * s, 2, true, 1, 0, 60 * s},
			{40 * s, 2, false, 1, 60 * s, 60 * s}, // grants nothing
			{100*s - 1, 2, false, 1, 1, 1},
			{100 * s, 3, true, 0, 0, 60 * s}, // freezes nothing
		}},
		{"2^62 a nanosecond", New(1<<62, 1).Using(SlidingLog), []stepRow{
			{0, 1 << 61, true, 1 << 61, 0, 1},
			{0, 1 << 61, true, 0, 0, 1},
			{0, 1, false, 0, 1, 1},
			{1, 1 << 62, true, 0, 0, 1},
		}},
		{"one a year", New(1, modelYear).Using(SlidingLog), []stepRow{
			{0, 1, true, 0, 0, modelYear},
			{modelYear - 1, 1, false, 0, 1, 1},
			{modelYear, 1, true, 0, 0, modelYear},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var log history
			for i, row := range test.rows {
				now := stepStart + int64(row.at)
				got := modelAnswerOf(log.check(test.limit, now, row.n))
				if want := row.answer(test.limit, got); got != want {
					t.Fatalf("row %d, take %d at %v: %+v; want %+v", i, row.n, row.at, got, want)
				}
				if got.allowed && row.n > 0 {
					log.add(now, row.n)
				}
			}
		})
	}
}
