package limit

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func modelZone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func TestParse(t *testing.T) {
	pacific := modelZone(t, "America/Los_Angeles")
	for _, test := range []struct {
		text string
		want Limit
		form string // as String writes it, if not as text
	}{
		{text: "100/min", want: PerMinute(100)},
		{text: "1000/h", want: PerHour(1000)},
		{text: "3/s", want: PerSecond(3)},
		{text: "7/day", want: PerDay(7)},
		{text: "10/s burst 20", want: PerSecond(10).WithBurst(20)},
		{text: "60/1m30s", want: New(60, 90*time.Second)},
		{text: "60/1m30s log", want: New(60, 90*time.Second).Using(SlidingLog)},
		{text: "1/1ns", want: New(1, 1)},
		{text: "4611686018427387904/1ns", want: New(1<<62, 1)},
		{text: "1/8760h0m0s", want: New(1, modelYear)},
		{text: "5/1.000000007s", want: New(5, 1_000_000_007)},
		{text: "1/640511h56m49.213693952s", want: New(1, maxPeriod)},
		{text: "10/s gcra", want: PerSecond(10), form: "10/s"},
		{text: "10/s token", want: PerSecond(10).Using(TokenBucket)},
		{text: "10/s leaky burst 3", want: PerSecond(10).Using(LeakyBucket).WithBurst(3)},
		{text: "10/s burst 3 leaky", want: PerSecond(10).Using(LeakyBucket).WithBurst(3), form: "10/s leaky burst 3"},
		{text: "10/s counter", want: PerSecond(10).Using(SlidingCounter)},
		{text: "1000/day fixed", want: PerDay(1000).Using(FixedWindow)},
		{text: "1000/day fixed anchored", want: PerDay(1000).Anchored()},
		{text: "1000/day anchored fixed", want: PerDay(1000).Anchored(), form: "1000/day fixed anchored"},
		{text: "1000/day fixed at 00:00 America/Los_Angeles", want: PerDay(1000).ResetAt(0, pacific)},
		{text: "1000/24h at 7:05 UTC fixed", want: PerDay(1000).ResetAt(7*time.Hour+5*time.Minute, nil), form: "1000/day fixed at 07:05 UTC"},
		{text: "1000/week", want: PerWeek(1000)},
		{text: "1000/month", want: PerMonth(1000)},
		{text: "1000/h fixed at 00:15 UTC", want: PerHour(1000).ResetHourly(15*time.Minute, nil)},
		{text: "1000/week fixed on sunday at 06:30 America/Los_Angeles", want: PerWeek(1000).ResetWeekly(time.Sunday, 6*time.Hour+30*time.Minute, pacific)},
		{text: "1000/month at 00:00 UTC on 31 fixed", want: PerMonth(1000).ResetMonthly(31, 0, nil), form: "1000/month fixed on 31 at 00:00 UTC"},
		{text: "1000/day fixed at 23:59 UTC", want: PerDay(1000).ResetAt(24*time.Hour-time.Minute, time.UTC)},
		{text: " 100/60s \t log\n", want: PerMinute(100).Using(SlidingLog), form: "100/min log"},
		{text: "10/s burst 10", want: PerSecond(10), form: "10/s"},
		{text: "10/s fixed burst 10", want: PerSecond(10).Using(FixedWindow), form: "10/s fixed"},
	} {
		got, err := Parse(test.text)
		if err != nil || got != test.want {
			t.Errorf("Parse(%q) = %+v, %v; want %+v", test.text, got, err, test.want)
		}
		form := test.form
		if form == "" {
			form = test.text
		}
		if got.String() != form {
			t.Errorf("Parse(%q) is written %q; want %q", test.text, got, form)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	const (
		aCount  = "from 1 to 2^62"
		aPeriod = "s, min, h, day, week, month or a duration"
		aWord   = "gcra|token|leaky|fixed|log|counter"
		aTime   = "from 00:00 to 23:59"
		aZone   = "time zone database"
	)
	for _, test := range []struct{ text, wrong, allowed string }{
		{"", "", "COUNT/PERIOD"},
		{"   ", "", "COUNT/PERIOD"},
		{"100", `"100"`, "COUNT/PERIOD"},
		{"min", `"min"`, "COUNT/PERIOD"},
		{"100 /min", `"100"`, "COUNT/PERIOD"},
		{"/min", `""`, aCount},
		{"x/min", `"x"`, aCount},
		{"0/min", `"0"`, aCount},
		{"+5/min", `"+5"`, aCount},
		{"-1/min", `"-1"`, aCount},
		{"1.5/min", `"1.5"`, aCount},
		{"1e3/min", `"1e3"`, aCount},
		{"1_000/min", `"1_000"`, aCount},
		{"4611686018427387905/s", `"4611686018427387905"`, aCount},
		{"99999999999999999999/s", `"99999999999999999999"`, aCount},
		{"100/", `""`, aPeriod},
		{"100/minute", `"minute"`, aPeriod},
		{"100/fortnight", `"fortnight"`, aPeriod},
		{"100/60", `"60"`, aPeriod},
		{"100/min/h", `"min/h"`, aPeriod},
		{"100/0s", "0s", "from 1ns to"},
		{"100/0", "0s", "from 1ns to"},
		{"100/-1s", "-1s", "from 1ns to"},
		{"1/700000h", "700000h", "from 1ns to"},
		{"1/9999999999h", `"9999999999h"`, aPeriod},
		{"100/min fast", `"fast"`, aWord},
		{"100/min 200", `"200"`, aWord},
		{"100/min LOG", `"LOG"`, aWord},
		{"100/min log log", `"log"`, aWord},
		{"100/min log fixed", `"fixed"`, aWord},
		{"100/min burst 5 burst 5", `"burst"`, aWord},
		{"100/day fixed anchored anchored", `"anchored"`, aWord},
		{"100/day fixed anchored at 00:00 UTC", `"at"`, aWord},
		{"100/min burst", "burst", "burst N"},
		{"100/min burst x", `"x"`, aCount},
		{"100/min burst 0", `"0"`, aCount},
		{"100/min burst -3", `"-3"`, aCount},
		{"100/min burst 4611686018427387905", `"4611686018427387905"`, aCount},
		{"1/h burst 1000000", "1000000", "must refill within"},
		{"100/min fixed burst 5", "5", "only gcra, token and leaky"},
		{"100/min log burst 200", "200", "only gcra, token and leaky"},
		{"100/min anchored", "anchored", "fixed anchored"},
		{"100/day log anchored", "anchored", "fixed anchored"},
		{"100/day at 00:00 UTC", "only fixed", "at HH:MM"},
		{"100/day fixed at", "at", "HH:MM ZONE"},
		{"100/day fixed at 00:00", "at", "HH:MM ZONE"},
		{"100/day fixed at 24:00 UTC", `"24:00"`, aTime},
		{"100/day fixed at 00:60 UTC", `"00:60"`, aTime},
		{"100/day fixed at noon UTC", `"noon"`, aTime},
		{"100/day fixed at 00:00:00 UTC", `"00:00:00"`, aTime},
		{"100/day fixed at 00:00 Nowhere/Atoll", `"Nowhere/Atoll"`, aZone},
		{"100/day fixed at 00:00 ../UTC", `"../UTC"`, aZone},
		{"100/48h fixed at 00:00 UTC", "48h0m0s", "only an hour, a day, a week or a month"},
		{"100/h fixed at 01:00 UTC", `"01:00"`, "from 00:00 to 00:59"},
		{"100/week fixed at 00:00 UTC", "no day", "on DAY"},
		{"100/month fixed at 00:00 UTC", "no day", "on DAY"},
		{"100/day fixed on 1 at 00:00 UTC", "only a week or a month", "on DAY"},
		{"100/month fixed on 1", "only a week or a month", "on DAY"},
		{"100/month fixed on 1 on 2 at 00:00 UTC", "second on", "on DAY"},
		{"100/month fixed at 00:00 UTC on", "on without a day", "on DAY"},
		{"100/month fixed on 0 at 00:00 UTC", `"0"`, "from 1 to 31"},
		{"100/month fixed on 32 at 00:00 UTC", `"32"`, "from 1 to 31"},
		{"100/month fixed on monday at 00:00 UTC", `"monday"`, "from 1 to 31"},
		{"100/week fixed on 1 at 00:00 UTC", `"1"`, "monday to sunday"},
		{"100/week fixed on Monday at 00:00 UTC", `"Monday"`, "monday to sunday"},
	} {
		_, err := Parse(test.text)
		if err == nil {
			t.Errorf("Parse(%q) is not refused", test.text)
			continue
		}
		for _, part := range []string{"ratelimit: ", test.wrong, test.allowed} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("Parse(%q): %q does not say %q", test.text, err, part)
			}
		}
	}
}

// validLimit draws any valid limit: every algorithm, burst and windowing.
func validLimit(t *rapid.T) Limit {
	src := rapidSource{t}
	zones := []string{"UTC", "America/Los_Angeles", "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu", "Local"}
	switch kind := rapid.IntRange(0, int(algorithms)+1).Draw(t, "kind"); kind {
	case int(algorithms):
		return New(historyCount(src), historyPeriod(src)).Anchored()
	case int(algorithms) + 1:
		z, err := time.LoadLocation(rapid.SampledFrom(zones).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		at := time.Duration(rapid.IntRange(0, 24*60-1).Draw(t, "minute")) * time.Minute
		n := historyCount(src)
		return historyOneOf(src, PerDay(n).ResetAt(at, z), PerHour(n).ResetHourly(at%time.Hour, z),
			PerWeek(n).ResetWeekly(time.Weekday(src.pick(7)), at, z), PerMonth(n).ResetMonthly(1+src.pick(31), at, z))
	default:
		return historyLimit(src, Algorithm(kind))
	}
}

func TestParseReadsWhatStringWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := validLimit(t)
		if err := l.Validate(); err != nil {
			t.Fatalf("%+v: %v", l, err)
		}
		got, err := Parse(l.String())
		if err != nil || got != l {
			t.Fatalf("%+v is written %q and read %+v, %v", l, l, got, err)
		}
	})
}

func TestLimitInJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type file struct {
			Limit Limit
			More  []Limit `json:",omitempty"`
			ByKey map[Limit]int
		}
		l := validLimit(t)
		written := file{Limit: l, More: []Limit{l, PerDay(3)}, ByKey: map[Limit]int{l: 1}}
		text, err := json.Marshal(written)
		if err != nil {
			t.Fatal(err)
		}
		var read file
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if read.Limit != l || read.More[0] != l || read.More[1] != PerDay(3) || read.ByKey[l] != 1 {
			t.Fatalf("%s is read %+v", text, read)
		}
	})
}

func TestLimitInJSONRefused(t *testing.T) {
	l := PerSecond(5)
	for text, allowed := range map[string]string{
		`"0/s"`:     "from 1 to 2^62",
		`"5/s now"`: "gcra|token|leaky",
		`""`:        "COUNT/PERIOD",
		`5`:         "",
		`{}`:        "",
	} {
		if err := json.Unmarshal([]byte(text), &l); err == nil || !strings.Contains(err.Error(), allowed) {
			t.Errorf("%s: %v, which does not say %q", text, err, allowed)
		}
		if l != PerSecond(5) {
			t.Fatalf("%s was refused and left %v behind", text, l)
		}
	}
	for _, l := range []Limit{{}, PerSecond(0), PerSecond(5).WithBurst(-1)} {
		if text, err := json.Marshal(l); err == nil {
			t.Errorf("%+v is not valid, and written %s", l, text)
		}
	}
}

func TestValidate(t *testing.T) {
	nowhere := time.FixedZone("Nowhere/Atoll", 3600)
	for _, l := range []Limit{
		New(1, 1), New(1<<62, 1), New(1, maxPeriod), New(1<<62, maxPeriod), New(1, modelYear),
		PerSecond(1).WithBurst(1 << 31), PerDay(1).ResetAt(0, nil), PerDay(1).ResetAt(23*time.Hour+59*time.Minute, time.Local),
		New(2, maxPeriod).WithBurst(2), New(2, maxPeriod).WithBurst(1), New(5, maxPeriod/2).WithBurst(10),
	} {
		if err := l.Validate(); err != nil {
			t.Errorf("%v: %v", l, err)
		}
	}
	for _, test := range []struct {
		limit   Limit
		allowed string
	}{
		{Limit{}, "from 1 to 2^62"},
		{PerSecond(0), "from 1 to 2^62"},
		{PerMinute(-1), "from 1 to 2^62"},
		{PerHour(math.MinInt64), "from 1 to 2^62"},
		{PerDay(1<<62 + 1), "from 1 to 2^62"},
		{New(math.MaxInt64, 1), "from 1 to 2^62"},
		{New(1, 0), "from 1ns to"},
		{New(1, -1), "from 1ns to"},
		{New(1, maxPeriod+1), "from 1ns to"},
		{New(1, math.MaxInt64), "from 1ns to"},
		{PerSecond(1).Using(algorithms), "gcra"},
		{PerSecond(1).Using(255), "gcra"},
		{PerSecond(1).WithBurst(0), "from 1 to 2^62"},
		{PerSecond(1).WithBurst(-5), "from 1 to 2^62"},
		{PerSecond(1).WithBurst(1<<62 + 1), "from 1 to 2^62"},
		{PerSecond(5).WithBurst(6).Using(FixedWindow), "only gcra, token and leaky"},
		{PerSecond(5).Using(SlidingLog).WithBurst(4), "only gcra, token and leaky"},
		{PerSecond(5).Using(SlidingCounter).WithBurst(4), "only gcra, token and leaky"},
		{PerSecond(5).Anchored().WithBurst(4), "only gcra, token and leaky"},
		{New(1, maxPeriod).WithBurst(2), "must refill within"},
		{New(5, maxPeriod/2).WithBurst(11), "must refill within"},
		{New(3, maxPeriod).WithBurst(1 << 62), "must refill within"},
		{PerHour(5).ResetAt(0, nil), "must be a day"},
		{New(5, 48*time.Hour).ResetAt(0, nil), "must be a day"},
		{PerDay(5).ResetAt(24*time.Hour, nil), "from 00:00 to 23:59"},
		{PerDay(5).ResetAt(-time.Minute, nil), "from 00:00 to 23:59"},
		{PerDay(5).ResetAt(90*time.Second, nil), "from 00:00 to 23:59"},
		{PerDay(5).ResetAt(0, nowhere), "time zone database"},
		{PerDay(5).ResetHourly(0, nil), "must be an hour"},
		{PerMonth(5).ResetWeekly(0, 0, nil), "ResetWeekly 7 days"},
		{PerWeek(5).ResetMonthly(1, 0, nil), "ResetMonthly 30"},
		{PerMonth(5).ResetAt(0, nil), "must be a day"},
		{PerHour(5).ResetHourly(time.Hour, nil), "from 0 to 59"},
		{PerHour(5).ResetHourly(time.Second, nil), "whole minutes"},
		{PerWeek(5).ResetWeekly(-1, 0, nil), "from Sunday to Saturday"},
		{PerWeek(5).ResetWeekly(7, 0, nil), "from Sunday to Saturday"},
		{PerWeek(5).ResetWeekly(time.Friday, 24*time.Hour, nil), "from 00:00 to 23:59"},
		{PerMonth(5).ResetMonthly(0, 0, nil), "from 1 to 31"},
		{PerMonth(5).ResetMonthly(32, 0, nil), "from 1 to 31"},
		{PerMonth(5).ResetMonthly(1, -time.Minute, nil), "from 00:00 to 23:59"},
		{PerMonth(5).ResetMonthly(1, 0, nowhere), "time zone database"},
	} {
		err := test.limit.Validate()
		if err == nil || !strings.Contains(err.Error(), test.allowed) || !strings.HasPrefix(err.Error(), "ratelimit: ") {
			t.Errorf("%+v: %v; want what is allowed: %q", test.limit, err, test.allowed)
		}
	}
}

// Changing the algorithm resets what belonged only to the algorithm before.
func TestUsingForgetsTheWindow(t *testing.T) {
	z := modelZone(t, "Europe/Berlin")
	for _, l := range []Limit{PerDay(5).Anchored(), PerDay(5).ResetAt(time.Hour, z), PerDay(5).ResetAt(time.Hour, z).Anchored()} {
		for a := range algorithms {
			if got := l.Using(a); got != PerDay(5).Using(a) {
				t.Errorf("%v by %v is %+v", l, a, got)
			}
		}
	}
	if got := PerDay(5).Anchored().ResetAt(time.Hour, z); got != PerDay(5).ResetAt(time.Hour, z) {
		t.Errorf("anchored, then reset at an hour: %+v", got)
	}
}

// Two limits of the same zone are the same limit, however the zone was loaded.
func TestLimitsAreComparable(t *testing.T) {
	a, b := PerDay(5).ResetAt(0, modelZone(t, "Europe/Berlin")), PerDay(5).ResetAt(0, modelZone(t, "Europe/Berlin"))
	if a != b {
		t.Errorf("%v != %v", a, b)
	}
	if c := PerDay(5).ResetAt(0, modelZone(t, "Europe/Paris")); a == c {
		t.Errorf("%v == %v", a, c)
	}
}
