package admin

import (
	"bytes"
	"runtime"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/figures"
)

// readers reads an answer as each of the types that gateways answer with.
var readers = map[string]func(body []byte) error{
	"decisions": reader[[]Decision],
	"explain":   reader[[]Explanation],
	"figures":   reader[figures.Report],
	"history":   reader[[]Point],
	"waiting":   reader[[]Waiting],
}

func reader[T any](body []byte) error {
	_, err := readAnswer[T](body)
	return err
}

// hostile are answers that are small on the bus, and would be large in memory.
func hostile() map[string][]byte {
	repeat := func(begin, each, end string) []byte {
		return []byte(begin + string(bytes.Repeat([]byte(each), 4<<20/len(each))) + end)
	}
	return map[string][]byte{
		"empty elements": repeat("[", "{},", "{}]"),
		"empty lots":     repeat(`{"Lots":[`, "{},", `{}]}`),
		"empty limits":   repeat(`[{"limits":[`, "{},", `{}]}]`),
		"empty minutes":  repeat(`[{"denied_by":[`, "{},", `{}]}]`),
		"nulls":          repeat(`{"Lots":[`, "null,", `null]}`),
		"depth":          repeat("", "[", ""),
		"maps":           repeat(`{"Lots":[{"ByLimit":{"":0`, `,"":0`, `}}]}`),
	}
}

// What another gateway has answered, whatever it is, takes no more memory than an answer may.
func TestHostileAnswersAreBounded(t *testing.T) {
	const most = 128 << 20
	for name, body := range hostile() {
		for of, read := range readers {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := read(body)
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > most || err == nil {
				t.Errorf("%s as %s: %d MB, %v", name, of, n>>20, err)
			}
		}
	}
}

// The largest answer that a gateway gives can be read.
func TestLargestAnswersAreRead(t *testing.T) {
	var lots []figures.Lot
	for range figures.MaxReported {
		lot := figures.Lot{Recent: figures.Recent{ByLimit: map[string]int64{}}}
		for i := range 30 {
			lot.ByLimit[string(rune('a'+i))] = 1
		}
		lots = append(lots, lot)
	}
	if got, err := readAnswer[figures.Report](writeAnswer(figures.Report{Lots: lots, Waiting: make([]figures.Waiting, figures.MaxReported)})); err != nil || len(got.Lots) != figures.MaxReported {
		t.Errorf("figures: %d, %v", len(got.Lots), err)
	}
	if got, err := readAnswer[[]Decision](writeAnswer(make([]Decision, maxPage))); err != nil || len(got) != maxPage {
		t.Errorf("decisions: %d, %v", len(got), err)
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add(writeAnswer(figures.Report{Lots: make([]figures.Lot, 2)}))
	f.Add(writeAnswer([]Decision{{Gateway: "b"}}))
	f.Add([]byte(`[{"limits":[{}],"denied_by":[{}]}]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, read := range readers {
			read(body) // it must not panic
		}
	})
}
