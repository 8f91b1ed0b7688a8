package limit

import (
	"math/big"
	"testing"
)

// propertyCounter: the sliding counter decides as its definition does in
// rational numbers.
func propertyCounter(t historyT, src historySource) {
	l := historyLimit(src, SlidingCounter)
	historyAgree(t, src, newHistoryWalk(src, l, false), newModelCounter(l))
}

func TestCounterAgreesWithItsDefinition(t *testing.T) { historyRapid(t, propertyCounter) }

// propertyCounterSettle: a counter that was settled decides as if the corrected
// amounts had been taken.
func propertyCounterSettle(t historyT, src historySource) { counterSettle(t, src, 1) }

func counterSettle(t historyT, src historySource, least int64) {
	l := historySettleLimit(src, SlidingCounter)
	historySettlesExactly(t, src, l, least, func(takes []modelPassed) model {
		m := newModelCounter(l)
		m.passed = takes
		return m
	})
}

func TestCounterSettlesAsTheReplay(t *testing.T) { historyRapid(t, propertyCounterSettle) }

// A take of zero leaves no trace. What was used in the end still counts in the window of
// the time of the take.
func TestCounterSettlesWhatWasTakenForNothing(t *testing.T) {
	historyRapid(t, func(t historyT, src historySource) { counterSettle(t, src, 0) })
}

// propertyScale: scale is multiplication and division, without overflow.
func propertyScale(t historyT, src historySource) {
	n := historyNumber(src, maxCount)
	denominator := 1 + historyNumber(src, maxCount-1)
	numerator := historyNumber(src, denominator)
	for up := range int64(2) {
		want := new(big.Int).Mul(big.NewInt(n), big.NewInt(numerator))
		want.Add(want, big.NewInt(up*(denominator-1)))
		want.Div(want, big.NewInt(denominator))
		if got := scale(n, numerator, denominator, up); got != want.Int64() {
			t.Fatalf("scale(%d, %d, %d, %d) = %d; want %v", n, numerator, denominator, up, got, want)
		}
	}
}

func TestScale(t *testing.T) { historyRapid(t, propertyScale) }
