package dashboard_test

import (
	"fmt"
	"strings"
	"testing"
)

// scroll scrolls a page by 6,000 pixels in 60 frames, and returns how many rows came into the page, and the most that
// were in it.
const scroll = `new Promise((resolve) => {
	let placed = 0, most = 0, frame = 0;
	const watched = new MutationObserver((changes) => {
		for (const change of changes) for (const node of change.addedNodes) placed += node.classList?.contains('row') ?? 0;
	});
	watched.observe(document.body, {childList: true, subtree: true});
	const step = () => {
		most = Math.max(most, document.querySelectorAll('.row').length);
		scrollBy(0, 100);
		if (frame++ < 60) requestAnimationFrame(step);
		else resolve([placed, most]);
	};
	requestAnimationFrame(step);
})`

// With 10,000 projects the page has few elements, places each row once as it comes into view, and finds any project.
func TestManyProjects(t *testing.T) {
	var yaml strings.Builder
	yaml.WriteString(usual)
	for i := range 10_000 {
		fmt.Fprintf(&yaml, "  team-%05d: {requests_per_minute: 60, tokens_per_day: 100000}\n", i)
	}
	r := start(t, yaml.String(), "listen: 127.0.0.1:0")
	b := open(t, r, "/#/")
	b.size(1280, 720)
	b.visit("/#/")
	b.shows("main", "10K")
	b.until(`document.querySelectorAll('.row').length > 5`)
	got := eval[[2]int](b, scroll)
	if placed, most := got[0], got[1]; placed < 50 || placed > 200 || most > 100 { // rows are 60 pixels high
		t.Errorf("scrolling by 6,000 pixels has placed %d rows, and the page had up to %d of them", placed, most)
	}
	eval[any](b, `scrollTo(0, document.documentElement.scrollHeight)`)
	b.until(`[...document.querySelectorAll('.row')].filter((row) => row.querySelector('.title').textContent.startsWith('team-')).length > 5`)
	eval[any](b, `scrollTo(0, 0)`)
	eval[any](b, `(() => { const input = document.querySelector('[aria-label="Search projects"]'); input.value = 'team-07777'; input.dispatchEvent(new Event('input')); })()`)
	b.shows(".row .title", "team-07777")
}
