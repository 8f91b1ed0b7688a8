package dashboard_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
)

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

// The log says how long a visitor with an empty cache waits for the first paint, beside a page of one line: both are
// visited by turns, and the figures are medians.
func TestFirstPaint(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, "<!doctype html><title>plain</title><link rel=icon href=data:,><h1>One line</h1>")
	}))
	t.Cleanup(plain.Close)
	const visits = 5
	pages := map[string][]timing{}
	for range visits {
		for name, url := range map[string]string{"a page of one line": plain.URL, "the dashboard": shared().url} {
			pages[name] = append(pages[name], paintOf(t, url))
		}
	}
	for name, all := range pages {
		var paints, documents, parsed []float64
		for _, one := range all {
			paints, documents, parsed = append(paints, one.Paint), append(documents, one.Document), append(parsed, one.Parsed)
		}
		t.Logf("%s: first paint after %.0f ms (from %.0f to %.0f), the document was there after %.0f ms and parsed after %.0f ms", name, median(paints), slices.Min(paints), slices.Max(paints), median(documents), median(parsed))
	}
	if painted := pages["the dashboard"][0].Paint; painted <= 0 {
		t.Errorf("the first paint was after %v ms", painted)
	}
}

// timing is when the parts of a page were there, in milliseconds from the beginning of the visit.
type timing struct{ Paint, Document, Parsed float64 }

// paintOf visits a page with an empty cache, and returns its timing.
func paintOf(t *testing.T, url string) timing {
	b := open(t, &rig{url: url}, "/")
	b.until(`performance.getEntriesByName('first-contentful-paint').length > 0`)
	defer b.do(chromedp.Navigate("about:blank")) // a page that nobody looks at costs nothing
	return eval[timing](b, `(() => {
		const [visit] = performance.getEntriesByType('navigation');
		return {Paint: performance.getEntriesByName('first-contentful-paint')[0].startTime, Document: visit.responseEnd, Parsed: visit.domInteractive};
	})()`)
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
