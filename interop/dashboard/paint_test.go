package dashboard_test

import "testing"

// The first visit is small, and the second one, which has all files already, is nearly nothing.
func TestFirstVisit(t *testing.T) {
	b := open(t, shared(), "/#/")
	b.until(rowOf("search") + ` !== undefined`)
	const bytes = `performance.getEntries().filter((e) => e.transferSize !== undefined && !e.name.includes('/v1/')).reduce((sum, e) => sum + e.transferSize, 0)`
	first := eval[int](b, bytes)
	painted := eval[float64](b, `performance.getEntriesByName('first-contentful-paint')[0].startTime`)
	t.Logf("%d bytes on the wire; the first paint was after %.0f ms", first, painted)
	if first < 10_000 || first > 150_000 {
		t.Errorf("the first visit has %d bytes on the wire: at most 150,000", first)
	}
	b.visit("/#/")
	b.until(rowOf("search") + ` !== undefined`)
	if second := eval[int](b, bytes); second*3 > first {
		t.Errorf("the second visit has %d bytes on the wire, and the first had %d", second, first)
	}
}
