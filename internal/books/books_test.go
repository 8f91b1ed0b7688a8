package books

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestHours(t *testing.T) {
	for _, at := range []string{"2026-11-16T15:59:59.999999999Z", "2026-11-16T15:00:00Z", "1969-12-31T23:59:59Z", "1969-12-31T23:00:00.5Z"} {
		now, err := time.Parse(time.RFC3339Nano, at)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := HourOf(now.UnixNano()), now.Truncate(time.Hour).Unix(); got != want {
			t.Errorf("%s is in the hour of %d; want %d", at, got, want)
		}
		if got, want := DayOf(now.Unix()), now.Truncate(24*time.Hour).Unix(); got != want {
			t.Errorf("%s is on the day of %d; want %d", at, got, want)
		}
	}
}

func TestAmountsDoNotOverflow(t *testing.T) {
	var sum Amounts
	for range 3 {
		sum.Add(&Amounts{Input: MaxAmount, Output: math.MaxInt64, Cached: -5, Requests: 1})
	}
	if want := (Amounts{Input: MaxAmount, Output: MaxAmount, Requests: 3}); sum != want {
		t.Errorf("%v; want %v", sum, want)
	}
}

func TestClean(t *testing.T) {
	long := strings.Repeat("ä", 1000)
	e := Entry{Owner: Owner{"a\x00b", "\xff", long}, Amounts: Amounts{Input: -1, Output: math.MaxInt64, Requests: 1}}.Clean()
	want := Entry{Owner: Owner{"a\uFFFDb", "\uFFFD", long[:254]}, Amounts: Amounts{Output: maxEntry, Requests: 1}}
	if e != want {
		t.Errorf("%+v", e)
	}
}

// Calls share lines only when there are too many, and share them as late as possible.
func TestPlace(t *testing.T) {
	own := Owner{"acme/a/x", "m", "k"}
	for _, test := range []struct {
		lines int
		has   string
		want  Owner
	}{
		{9, "", own},
		{10, "acme/a/x m k", own},
		{99, "acme/a/x m k", own},
		{10, "", Owner{"acme/a/x", Other, Other}},
		{19, "", Owner{"acme/a/x", Other, Other}},
		{99, "acme/a/x (other) (other)", Owner{"acme/a/x", Other, Other}},
		{20, "", Owner{"acme/(other)", Other, Other}},
		{29, "", Owner{"acme/(other)", Other, Other}},
		{99, "acme/(other) (other) (other)", Owner{"acme/(other)", Other, Other}},
		{30, "", Owner{Other, Other, Other}},
	} {
		has := func(o Owner) bool { return fmt.Sprint(o.Project, " ", o.Model, " ", o.Key) == test.has }
		if got := Place(own, test.lines, 10, has); got != test.want {
			t.Errorf("%d lines, among them %q: %q; want %q", test.lines, test.has, got, test.want)
		}
	}
	if got := Place(Owner{"acme", "m", "k"}, 25, 10, func(Owner) bool { return false }); got != (Owner{"acme", Other, Other}) {
		t.Errorf("a root: %q", got)
	}
}

func TestBadQueries(t *testing.T) {
	for want, q := range map[string]Query{
		`by "weather": it can be grouped by project, model, key, hour, day`: {By: []Dimension{"weather"}},
		"by model, twice": {By: []Dimension{ByModel, ByKey, ByModel}},
		"by hour and by day: it can be grouped by one of them": {By: []Dimension{ByHour, ByDay}},
		"a depth of -1: it must be 1 or more":                  {By: []Dimension{ByProject}, Depth: -1},
		"the usage is not grouped by project":                  {By: []Dimension{ByModel}, Depth: 1},
		"until must be later than since":                       {Since: 5, Until: 5},
	} {
		if err := q.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v; want %q", q, err, want)
		}
	}
}

func TestTooManyRows(t *testing.T) {
	s := NewSum(Query{By: []Dimension{ByProject}})
	for i := range MaxRows + 1 {
		if i == MaxRows {
			if all, err := s.Summary(); err != nil || len(all.Rows) != MaxRows {
				t.Errorf("%d rows: %v", MaxRows, err)
			}
		}
		s.Add(Line{Entry: Entry{Owner{fmt.Sprint(i), "", ""}, Amounts{Requests: 1}}})
	}
	if _, err := s.Summary(); err == nil || !strings.Contains(err.Error(), "more than 100000: group by less") {
		t.Error(err)
	}
}

func TestParseTime(t *testing.T) {
	now := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"2026-11-01":                "2026-11-01T00:00:00Z",
		"2026-11-01T15:00:00+02:00": "2026-11-01T13:00:00Z",
		"24h":                       "2026-11-15T12:00:00Z",
		"90m":                       "2026-11-16T10:30:00Z",
		"7d":                        "2026-11-09T12:00:00Z",
		"0d":                        "2026-11-16T12:00:00Z",
	} {
		if got, err := ParseTime(text, now); err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%s is %v, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "yesterday", "2026-13-01", "2026-02-30", "-1h", "-7d", "7", "70000d", "2026-11-01 15:00", strings.Repeat("9", 100)} {
		if got, err := ParseTime(text, now); err == nil || !strings.Contains(err.Error(), "is no time: it must be a date such as 2026-11-01") {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
}

// An entry of an earlier version has 21 amounts and does not say so; one of a newer version may have more than this one.
func TestEntriesOfOtherVersions(t *testing.T) {
	amounts := func(n int) (b []byte) {
		for i := range n {
			b = append(b, byte(i+1))
		}
		return b
	}
	names := []byte{1, 'p', 0, 0}
	for what, entry := range map[string][]byte{
		"earlier": slices.Concat(binary.AppendUvarint(nil, 256), names, amounts(21)),
		"newer":   slices.Concat(binary.AppendUvarint(nil, 256+19), names, amounts(40)),
	} {
		var j Journal
		if err := j.Add(append(entry, AppendEntry(nil, &Entry{Owner{Project: "p"}, Amounts{Requests: 1}})...)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		j.Each(func(e *Entry) error {
			if e.Amounts[Requests] != 2 || e.Amounts[20] != 21 {
				t.Errorf("%s: %v", what, e)
			}
			return nil
		})
	}
	written := AppendEntry(nil, &Entry{Owner{}, Amounts{Beside: 1}})
	if n, _ := binary.Uvarint(written); n != 256+uint64(Units)-21 {
		t.Errorf("%d comes before %d amounts", n, Units) // a gateway of an earlier version that folds the journal knows 256
	}
}

// A journal has the sums of the entries that were added to it, by their owners.
func TestJournal(t *testing.T) {
	entries := []Entry{{}, {Owner{"acme/ä", "m", ""}, Amounts{Requests: 1, Nanodollars: MaxAmount}}, {Owner{"", strings.Repeat("x", 255), "k"}, Amounts{Input: 300}}}
	want := map[Owner]Amounts{
		{}: {}, entries[1].Owner: {Requests: 3, Nanodollars: MaxAmount}, entries[2].Owner: {Input: 900},
	}
	var j Journal
	for range 3 {
		var b []byte
		for i := range entries {
			b = AppendEntry(b, &entries[i])
		}
		if err := j.Add(b); err != nil {
			t.Fatal(err)
		}
	}
	got := map[Owner]Amounts{}
	if err := j.Each(func(e *Entry) error { got[e.Owner] = e.Amounts; return nil }); err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	stop := errors.New("stop")
	if err := j.Each(func(*Entry) error { return stop }); err != stop {
		t.Errorf("%v; want the error of the function", err)
	}
	whole := AppendEntry(nil, &entries[2])
	for n := range len(whole) - 1 {
		if err := new(Journal).Add(whole[:n+1]); err == nil {
			t.Errorf("%d bytes are an entry", n+1)
		}
	}
	if err := j.Add(bytes.Repeat([]byte{0xff}, 50)); err == nil {
		t.Error("a name of more bytes than there can be")
	}
}
