package dashboard_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// frames scrolls a page of any height for a second, 6,000 pixels a second at 60 frames, and returns how many frames the browser has drawn.
const frames = `new Promise((resolve) => {
	let n = 0;
	const begun = performance.now();
	const step = () => {
		n++;
		scrollBy(0, 100);
		if (performance.now() - begun < 1000) requestAnimationFrame(step);
		else resolve(n);
	};
	requestAnimationFrame(step);
})`

// With 10,000 projects the page has few elements, finds any of them, and scrolls as an empty page does.
func TestManyProjects(t *testing.T) {
	var yaml strings.Builder
	yaml.WriteString(usual)
	for i := range 10_000 {
		fmt.Fprintf(&yaml, "  team-%05d: {requests_per_minute: 60, tokens_per_day: 100000}\n", i)
	}
	r := start(t, yaml.String(), "listen: 127.0.0.1:0")
	b := open(t, r, "/#/")
	b.size(1280, 720)
	b.do(chromedp.Navigate("about:blank"))
	eval[any](b, `(document.body.style.height = '600000px', null)`)
	empty := eval[int](b, frames)
	b.visit("/#/")
	b.shows("main", "10K")
	b.until(`document.querySelectorAll('.row').length > 5`)
	full := eval[int](b, frames)
	t.Logf("%d frames a second of 10,000 projects, %d of an empty page", full, empty)
	if full*3 < empty { // a page that had all rows would draw less than one in ten
		t.Errorf("scrolling draws %d frames a second, and that of an empty page %d", full, empty)
	}
	if n := eval[int](b, `document.querySelectorAll('.row').length`); n > 100 {
		t.Errorf("there are %d rows in the page", n)
	}
	eval[any](b, `scrollTo(0, document.documentElement.scrollHeight)`)
	b.until(`[...document.querySelectorAll('.row')].filter((row) => row.querySelector('.title').textContent.startsWith('team-')).length > 5`)
	eval[any](b, `scrollTo(0, 0)`)
	eval[any](b, `(() => { const input = document.querySelector('[aria-label="Search projects"]'); input.value = 'team-07777'; input.dispatchEvent(new Event('input')); })()`)
	b.shows(".row .title", "team-07777")
}
