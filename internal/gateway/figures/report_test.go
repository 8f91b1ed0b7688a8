package figures

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// drawReport draws a report with any texts and numbers.
func drawReport(t *rapid.T) (r Report) {
	number, text := rapid.Int64(), rapid.StringN(0, 5, 20)
	fill := func(n *int64) { *n = number.Draw(t, "number") }
	r.Totals.each(fill)
	r.Active = rapid.Int().Draw(t, "active")
	for range rapid.IntRange(0, 3).Draw(t, "lots") {
		lot := Lot{Name: Name{text.Draw(t, "project"), text.Draw(t, "model"), text.Draw(t, "key")}}
		lot.each(fill)
		for range rapid.IntRange(0, 3).Draw(t, "limits") {
			lot.deny(text.Draw(t, "limit"), number.Draw(t, "denials"))
		}
		r.Lots = append(r.Lots, lot)
	}
	for range rapid.IntRange(0, 3).Draw(t, "waiting") {
		r.Waiting = append(r.Waiting, Waiting{text.Draw(t, "project"), text.Draw(t, "model"), rapid.Int().Draw(t, "count"), time.Duration(number.Draw(t, "longest"))})
	}
	return r
}

// A report is read as it was written, and a part of it is none.
func TestReportIsReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawReport(t)
		text := want.Bytes()
		got, err := ReadReport(text)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Fatalf("%v, %s", err, diff)
		}
		if _, err := ReadReport(text[:rapid.IntRange(0, len(text)-1).Draw(t, "part")]); err == nil {
			t.Error("a part is read")
		}
		if _, err := ReadReport(append(text, 0)); err == nil {
			t.Error("what follows the report is ignored")
		}
	})
}

// A report whose lists are longer than a gateway's is refused.
func TestReportIsBounded(t *testing.T) {
	many := Lot{Recent: Recent{ByLimit: map[string]int64{}}}
	for i := range maxLimits + 1 {
		many.ByLimit[fmt.Sprint(i)] = 1
	}
	for name, report := range map[string]Report{
		"lots":    {Lots: make([]Lot, MaxReported+1)},
		"waiting": {Waiting: make([]Waiting, MaxReported+1)},
		"limits":  {Lots: []Lot{many}},
	} {
		if _, err := ReadReport(report.Bytes()); err == nil {
			t.Errorf("too many %s are read", name)
		}
	}
}

// Of more names than are reported, those come first whose calls were denied or refused in the last minute, so that an
// overview of a large fleet has them; then those with the most calls.
func TestLargestNamesTheHarmed(t *testing.T) {
	f := New(allNamed)
	for name, calls := range map[string][]Call{
		"busy": make([]Call, 9), "idle": make([]Call, 1), "denied": {{Denied: true, Limit: "rpm"}}, "refused": {{Refused: true}, {Refused: true}},
	} {
		for i := range calls {
			f.Count(Name{Project: name}, &calls[i])
		}
	}
	lots, minute := f.Largest(3)
	var got []string
	for _, lot := range lots {
		got = append(got, lot.Project)
	}
	if diff := cmp.Diff([]string{"refused", "denied", "busy"}, got); diff != "" || minute.Passed != 10 || minute.Denied != 1 || minute.Refused != 2 {
		t.Errorf("%s\n%+v", diff, minute)
	}
}
