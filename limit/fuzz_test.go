package limit

import "testing"

// Each of these is a property of this package's tests, driven by bytes.

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"100/min", "10/s burst 20", "60/1m30s log", "1000/day fixed anchored", "1000/day fixed at 00:00 America/Los_Angeles",
		"1/1ns", "4611686018427387904/640511h56m49.213693952s", "0/s", "1/s at", "1/s burst", "+5/1.5h", "1/µs", "1/day at 7:5 UTC fixed",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := Parse(text)
		if err != nil {
			return
		}
		if err := l.Validate(); err != nil {
			t.Fatalf("%q is read and not valid: %v", text, err)
		}
		if again, err := Parse(l.String()); err != nil || again != l {
			t.Fatalf("%q is written %q and read %+v, %v", text, l, again, err)
		}
		var u Limit
		if err := u.UnmarshalText([]byte(text)); err != nil || u != l {
			t.Fatalf("%q is unmarshalled %+v, %v", text, u, err)
		}
	})
}

func FuzzBuckets(f *testing.F)        { historyFuzz(f, propertyBuckets) }
func FuzzBacklog(f *testing.F)        { historyFuzz(f, propertyBacklog) }
func FuzzBucketBound(f *testing.F)    { historyFuzz(f, propertyBucketBound) }
func FuzzBucketSettle(f *testing.F)   { historyFuzz(f, propertyBucketSettle) }
func FuzzWord(f *testing.F)           { historyFuzz(f, propertyWord) }
func FuzzWordSettle(f *testing.F)     { historyFuzz(f, propertyWordSettle) }
func FuzzWindows(f *testing.F)        { historyFuzz(f, propertyWindows) }
func FuzzWindowBound(f *testing.F)    { historyFuzz(f, propertyWindowBound) }
func FuzzWindowSettle(f *testing.F)   { historyFuzz(f, propertyWindowSettle) }
func FuzzAnchoredSettle(f *testing.F) { historyFuzz(f, propertyAnchoredSettle) }
func FuzzCalendar(f *testing.F)       { historyFuzz(f, propertyCalendar) }
func FuzzYears(f *testing.F)          { historyFuzz(f, propertyYears) }
func FuzzYearBound(f *testing.F)      { historyFuzz(f, propertyYearBound) }
func FuzzLog(f *testing.F)            { historyFuzz(f, propertyLog) }
func FuzzLogBound(f *testing.F)       { historyFuzz(f, propertyLogBound) }
func FuzzLogSettle(f *testing.F)      { historyFuzz(f, propertyLogSettle) }
func FuzzCounter(f *testing.F)        { historyFuzz(f, propertyCounter) }
func FuzzCounterSettle(f *testing.F)  { historyFuzz(f, propertyCounterSettle) }
func FuzzCounters(f *testing.F)       { historyFuzz(f, propertyCounters) }
func FuzzCountersFullAt(f *testing.F) { historyFuzz(f, propertyCountersFullAt) }
