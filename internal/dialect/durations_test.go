package dialect

import (
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// limitsNow is the time of the responses in these tests.
var limitsNow = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

func TestStrictestCount(t *testing.T) {
	for _, test := range []struct {
		values []string
		least  int64
		want   int64
	}{
		{nil, 0, -1},
		{[]string{""}, 0, -1},
		{[]string{"0"}, 0, 0},
		{[]string{"0"}, 1, -1},
		{[]string{"60"}, 1, 60},
		{[]string{" 60\t"}, 1, 60},
		{[]string{"007"}, 1, 7},
		{[]string{"9007199254740992"}, 1, 1 << 53},
		{[]string{"9007199254740993"}, 1, -1},
		{[]string{"18446744073709551616"}, 1, -1},
		{[]string{"-1"}, 0, -1},
		{[]string{"+5"}, 0, -1},
		{[]string{"1.5"}, 0, -1},
		{[]string{"1e3"}, 0, -1},
		{[]string{"1_000"}, 0, -1},
		{[]string{"1,000"}, 0, -1},
		{[]string{"0x10"}, 0, -1},
		{[]string{"NaN"}, 0, -1},
		{[]string{"unlimited"}, 0, -1},
		{[]string{"60", "50"}, 0, 50},
		{[]string{"50", "60"}, 0, 50},
		{[]string{"unlimited", "60"}, 0, 60},
		{[]string{"60", "-1"}, 0, 60},
		{[]string{"0", "60"}, 1, 60},
	} {
		if got := strictestCount(test.values, test.least); got != test.want {
			t.Errorf("strictestCount(%q, %d) = %d; want %d", test.values, test.least, got, test.want)
		}
	}
}

var waitTests = []struct {
	text string
	want time.Duration
}{
	{"1s", time.Second},
	{"6m0s", 6 * time.Minute},
	{"12ms", 12 * time.Millisecond},
	{"2m59.56s", 179560 * time.Millisecond},
	{"7.66s", 7660 * time.Millisecond},
	{"1h2m", 62 * time.Minute},
	{"350µs", 350 * time.Microsecond},
	{" 1s ", time.Second},
	{"24h", llm.Day},
	{"24h0m1s", llm.Day},
	{"2562047h47m16.854775807s", llm.Day},
	{"1d", llm.Day},
	{"1d2h", llm.Day},
	{"0d2h", 2 * time.Hour},
	{"0d", 0},
	{"99999999999999d", 0},
	{"-1d", 0},
	{"d", 0},
	{"1d-5h", 0},
	{"0s", 0},
	{"-5s", 0},
	{"1y", 0},
	{"s", 0},
	{"1 s", 0},

	{"20", 20 * time.Second},
	{"20.", 20 * time.Second},
	{"0.5", 500 * time.Millisecond},
	{".25", 250 * time.Millisecond},
	{"7.66", 7660 * time.Millisecond},
	{"86400", llm.Day},
	{"99999999", llm.Day},
	{"0", 0},
	{"0.0", 0},
	{"-1", 0},
	{"-0.5", 0},
	{"+5", 0},
	{"1e3", 0},
	{"NaN", 0},
	{"nan", 0},
	{"inf", 0},
	{"Infinity", 0},
	{"", 0},
	{".", 0},
	{"1.2.3", 0},
	{strings.Repeat("9", 400), 0},
	{strings.Repeat("9", 17), 0},

	{"1794744020", 20 * time.Second}, // limitsNow is 1794744000
	{"1794744020.5", 20 * time.Second},
	{"1794744020000", 20 * time.Second},
	{"1794743999", 0},
	{"1794743999000", 0},
	{"1795744000", llm.Day},

	{"2026-11-15T12:00:20Z", 20 * time.Second},
	{"2026-11-15T12:00:20.25Z", 20250 * time.Millisecond},
	{"2026-11-15T13:00:20+01:00", 20 * time.Second},
	{"2026-11-15T04:00:20-08:00", 20 * time.Second},
	{"2026-11-15T11:59:59Z", 0},
	{"0001-01-01T00:00:00Z", 0},
	{"9999-12-31T23:59:59Z", llm.Day},
	{"2026-11-15T25:00:00Z", 0},
	{"2026-11-15 12:00:20", 0},
	{"Sun, 15 Nov 2026 12:00:20 GMT", 20 * time.Second},
	{"Sunday, 15-Nov-26 12:00:20 GMT", 20 * time.Second},
	{"Sun, 15 Nov 2026 11:00:00 GMT", 0},
	{"Sun, 15 Nov 2026", 0},
	{":", 0},
}

func TestParseWait(t *testing.T) {
	for _, test := range waitTests {
		if got := parseWait(test.text, limitsNow); got != test.want {
			t.Errorf("parseWait(%.40q) = %v; want %v", test.text, got, test.want)
		}
	}
}

func TestLongestWait(t *testing.T) {
	for _, test := range []struct {
		values []string
		want   time.Duration
	}{
		{nil, 0},
		{[]string{"1s", "2s"}, 2 * time.Second},
		{[]string{"2s", "1s"}, 2 * time.Second},
		{[]string{"never", "1s", "-3"}, time.Second},
	} {
		if got := longestWait(test.values, limitsNow); got != test.want {
			t.Errorf("longestWait(%q) = %v; want %v", test.values, got, test.want)
		}
	}
}

func TestParseMilli(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"250": 250 * time.Millisecond, " 250 ": 250 * time.Millisecond, "0.5": 500 * time.Microsecond,
		"86400001": llm.Day, "1794744020000": llm.Day, "0": 0, "-1": 0, "1s": 0, "NaN": 0, "": 0, "1.2.3": 0,
	} {
		if got := parseMilli(text); got != want {
			t.Errorf("parseMilli(%q) = %v; want %v", text, got, want)
		}
	}
}

func TestWaitIn(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"please try again in 7m12s. visit https://platform.openai.com": 7*time.Minute + 12*time.Second,
		"please try again in 20ms.":                                    20 * time.Millisecond,
		"please try again in 1.2s":                                     1200 * time.Millisecond,
		"please try again in 6ms. contact us":                          6 * time.Millisecond,
		"please try again in 1h2m3.5s, or pay":                         time.Hour + 2*time.Minute + 3500*time.Millisecond,
		"please retry in 22.345678901s.":                               22345678901,
		"please retry after 45 seconds. please go":                     45 * time.Second,
		"please retry after 1 second.":                                 time.Second,
		"please retry after 86400 seconds.":                            llm.Day,
		"try again in 2 minutes.":                                      2 * time.Minute,
		"try again in 1 hour":                                          time.Hour,
		"try again in 1 day":                                           llm.Day,
		"try again in 300 ms":                                          300 * time.Millisecond,
		"try again in 300 milliseconds":                                300 * time.Millisecond,
		"try again in 30.":                                             30 * time.Second,
		"try again in 30. please":                                      30 * time.Second,
		"try again in 30":                                              30 * time.Second,
		"(try again in 30s)":                                           30 * time.Second,
		"try again in a while; then try again in 5s":                   5 * time.Second,
		"retry after a while, or try again in 5s":                      5 * time.Second,
		"try again in 2 months":                                        0,
		"try again in 0s":                                              0,
		"try again in -5s":                                             0,
		"try again in ":                                                0,
		"try again in":                                                 0,
		"try again later":                                              0,
		"":                                                             0,
	} {
		if got := waitIn(text); got != want {
			t.Errorf("waitIn(%q) = %v; want %v", text, got, want)
		}
	}
}

func TestUntilMidnight(t *testing.T) {
	for _, test := range []struct {
		now  string
		zone *time.Location
		want time.Duration
	}{
		{"2026-11-15T12:00:00Z", pacific(), 20 * time.Hour}, // winter: UTC-8
		{"2026-07-15T12:00:00Z", pacific(), 19 * time.Hour}, // summer: UTC-7
		{"2026-11-16T07:59:59Z", pacific(), time.Second},
		{"2026-11-16T08:00:00Z", pacific(), llm.Day},
		{"2026-11-01T07:00:00Z", pacific(), llm.Day},        // a day of 25 hours
		{"2026-03-08T08:00:00Z", pacific(), 23 * time.Hour}, // a day of 23 hours
		{"2026-12-31T12:00:00+05:00", pacific(), time.Hour},
		{"2026-11-15T12:00:00Z", zoneOr("No/Where", -8*time.Hour), 20 * time.Hour},
		{"2026-07-15T12:00:00Z", zoneOr("No/Where", -8*time.Hour), 20 * time.Hour},
	} {
		now, err := time.Parse(time.RFC3339, test.now)
		if err != nil {
			t.Fatal(err)
		}
		if got := untilMidnight(now, test.zone); got != test.want {
			t.Errorf("at %s it is %v until midnight in %v; want %v", test.now, got, test.zone, test.want)
		}
	}
}

// naiveLimitCount parses a whole number with strconv alone.
func naiveLimitCount(text string, least int64) int64 {
	text = strings.TrimSpace(text)
	if !regexp.MustCompile(`^[0-9]+$`).MatchString(text) {
		return -1
	}
	n, _ := new(big.Int).SetString(text, 10)
	if n.Cmp(big.NewInt(least)) < 0 || n.Cmp(big.NewInt(1<<53)) > 0 {
		return -1
	}
	return n.Int64()
}

func FuzzStrictestCount(f *testing.F) {
	for _, text := range []string{"", "0", "60", " 60 ", "-1", "+1", "1.0", "1e3", "9007199254740992", "9007199254740993", "99999999999999999999", "١", "0x1", "1_0", "NaN"} {
		f.Add(text, "7")
		f.Add("12", text)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, least := range []int64{0, 1} {
			want := naiveLimitCount(a, least)
			if other := naiveLimitCount(b, least); want < 0 || other >= 0 && other < want {
				want = other
			}
			if got := strictestCount([]string{a, b}, least); got != want {
				t.Fatalf("strictestCount(%q, %q, from %d) = %d; want %d", a, b, least, got, want)
			}
		}
	})
}

// naiveWait parses a wait with the parsers of package time, and numbers without any rounding. ok is
// false for a text that these do not parse.
func naiveWait(text string, now time.Time) (wait time.Duration, ok bool) {
	text = strings.TrimSpace(text)
	bound := func(d time.Duration) (time.Duration, bool) { return min(max(d, 0), llm.Day), true }
	if regexp.MustCompile(`^([0-9]+\.?[0-9]*|\.[0-9]+)$`).MatchString(text) {
		n, _ := new(big.Rat).SetString(text)
		whole := new(big.Int).Quo(n.Num(), n.Denom())
		switch {
		case whole.Cmp(big.NewInt(1<<53)) > 0:
			return 0, true
		case whole.Cmp(big.NewInt(100_000_000_000)) >= 0:
			return bound(time.UnixMilli(whole.Int64()).Sub(now))
		case whole.Cmp(big.NewInt(100_000_000)) >= 0:
			return bound(time.Unix(whole.Int64(), 0).Sub(now))
		}
		n.Mul(n, big.NewRat(1e9, 1))
		return bound(time.Duration(new(big.Int).Quo(n.Num(), n.Denom()).Int64()))
	}
	if d, err := time.ParseDuration(text); err == nil {
		return bound(d)
	}
	for _, layout := range []string{time.RFC3339, time.RFC1123, time.RFC850, time.ANSIC} {
		at, err := time.Parse(strings.Replace(layout, "MST", "GMT", 1), text)
		if err == nil {
			return bound(at.Sub(now))
		}
	}
	return 0, false
}

func FuzzParseWait(f *testing.F) {
	for _, test := range waitTests {
		f.Add(test.text, int64(0))
	}
	f.Add("1794744020", int64(time.Hour))
	f.Fuzz(func(t *testing.T, text string, ahead int64) {
		now := limitsNow.Add(time.Duration(ahead))
		got := parseWait(text, now)
		if got < 0 || got > llm.Day {
			t.Fatalf("parseWait(%q) = %v, which is not from 0 to a day", text, got)
		}
		// A fraction of a nanosecond may be lost either way.
		if want, ok := naiveWait(text, now); ok && (got-want).Abs() > 1 {
			t.Fatalf("parseWait(%q) = %v; want %v", text, got, want)
		}
		if again := parseWait(got.String(), now); again != got {
			t.Fatalf("parseWait(%q) = %v, and that is read as %v", text, got, again)
		}
		if milli := parseMilli(text); milli < 0 || milli > llm.Day {
			t.Fatalf("parseMilli(%q) = %v, which is not from 0 to a day", text, milli)
		}
	})
}

func FuzzWaitIn(f *testing.F) {
	for _, text := range []string{"7m12s.", "45 seconds.", "1 day", "30", "300 ms", "", "-5s", "2 months", "try again in 5s"} {
		f.Add("please ", text)
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		for _, phrase := range []string{"try again in ", "retry in ", "retry after "} {
			text := before + phrase + after
			got := waitIn(text)
			if got < 0 || got > llm.Day {
				t.Fatalf("waitIn(%q) = %v, which is not from 0 to a day", text, got)
			}
			if got > 0 && waitIn(fmt.Sprintf("%s%v", phrase, got)) != got {
				t.Fatalf("waitIn(%q) = %v, and that is not read as itself", text, got)
			}
			d, err := time.ParseDuration(after)
			if err == nil && d > 0 && len(after) < 60 && waitIn(phrase+after+". then") != min(d, llm.Day) && !isPlain(after) {
				t.Fatalf("waitIn(%q) = %v; want %v", phrase+after+". then", waitIn(phrase+after+". then"), d)
			}
		}
	})
}
