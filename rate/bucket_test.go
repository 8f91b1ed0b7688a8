package rate

import "testing"

// A goroutine that still holds a replaced bucket must use the new one, and not take the closed word for a full bucket.
func TestClosedBucketDecidesNothing(t *testing.T) {
	b := newBucket(10, 5, start, 0)
	b.last.Store(int64(10 * ms))
	b.spent.Store(spentClosed)
	for _, elapsed := range []int64{0, int64(10 * ms), int64(20 * ms)} {
		if ok, sure := b.take(elapsed, 1, givenTime); ok || sure {
			t.Errorf("at %d: ok %v, sure %v", elapsed, ok, sure)
		}
	}
}

// Common limits are whole numbers of units, so that nothing is rounded.
func TestCommonLimitsAreExact(t *testing.T) {
	for _, limit := range []Limit{0.25, 0.5, 1, 3, 7, 10, 60, 100, 999, 1000, 1e4, 1e5, 1e6} {
		for _, burst := range []int{1, 10, 1000, 1e6} {
			b := newBucket(limit, burst, start, 0)
			if b.unit%1e9 != 0 {
				t.Errorf("limit %v, burst %d: %d units a token", limit, burst, b.unit)
			}
			if got, want := b.supply(1e9), uint64(float64(limit)*float64(b.unit)); got != want {
				t.Errorf("limit %v, burst %d: %d units a second, want %d", limit, burst, got, want)
			}
		}
	}
}

func TestLineIsSupplyWithinTheHorizon(t *testing.T) {
	for _, limit := range []Limit{1e-10, 0.1, 1.0 / 3, 1, 1e3, 1e7, 1e12, 1e20, 1e26} {
		b := newBucket(limit, 10, start, 0)
		for _, elapsed := range []uint64{0, 1, b.horizon / 3, b.horizon - 1, b.horizon} {
			if line, supply := b.line(int64(elapsed)), b.supply(elapsed); line != supply || line>>10 > maxSupply>>10 {
				t.Errorf("limit %v after %d: line %d, supply %d", limit, elapsed, line, supply)
			}
		}
	}
}
