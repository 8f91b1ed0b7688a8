package dashboard_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// sharesShown are the rows of the table of who shares a project's limits, as text, and of each gauge its share and level.
const sharesShown = `[...document.querySelectorAll('.shares tbody tr')].map((row) => [...row.cells].map((cell) => cell.firstElementChild?.localName === 'rl-gauge' ?
	cell.querySelector('.gauge-value').textContent + ' ' + cell.firstElementChild.dataset.level : cell.textContent).join(' | '))`

// The page of a project shows who below it has used what of its limits, and goes on while they call. A project that
// shares nothing shows nothing of it.
func TestShares(t *testing.T) {
	r := start(t, `
state: memory
listen: 127.0.0.1:0
providers: {openai: {base_url: MOCK, models: {gpt-4o: {max_rpm: 1000}}}}
projects:
  acme: {requests_per_minute: 8, dollars_per_day: 40, dollars_per_month: 500}
  acme/search: {weight: 3, priority: 1}
  crowd: {requests_per_day: 1000}
`, "listen: 127.0.0.1:0")
	// Nobody else wants what acme/ads has: later it has used more than its share, which would make its calls wait.
	for _, project := range []string{"acme/ads", "acme/ads", "acme/ads", "acme/ads", "acme/search/alice", "acme/search/bob"} {
		r.call(t, project, "gpt-4o")
	}
	b := open(t, r, "/#/project/acme")
	b.until(`document.querySelectorAll('.shares tbody tr').length === 4`)
	if head := eval[[]string](b, `[...document.querySelectorAll('.shares th')].map((th) => th.textContent)`); !slices.Equal(head, []string{"Project", "Weight", "Priority", "Waiting", "8 requests a minute", "$40.00 a day"}) {
		t.Errorf("the limits that are divided are %q", head)
	}
	if links := eval[[]string](b, `[...document.querySelectorAll('.shares a')].map((a) => a.textContent + ' ' + a.getAttribute('href'))`); !slices.Equal(links, []string{"ads #/project/acme/ads", "search #/project/acme/search", "search/alice #/project/acme/search/alice", "search/bob #/project/acme/search/bob"}) {
		t.Errorf("those inside are %q", links)
	}
	if shown := eval[[]string](b, sharesShown); !strings.HasPrefix(shown[0], "ads | 1 | 0 | 0 | 4 of ") || !strings.HasSuffix(shown[1], "of $40.00 fine") {
		t.Errorf("they have used %q", shown)
	}
	r.call(t, "acme/search/bob", "gpt-4o")
	b.until(fmt.Sprintf(`(%s)[3].startsWith('search/bob | 1 | 0 | 0 | 2 of ')`, sharesShown))
	b.until(fmt.Sprintf(`(%s)[1].startsWith('search | 3 | 1 | 0 | 3 of ')`, sharesShown))
	if shown := eval[[]string](b, sharesShown)[0]; strings.Contains(shown, "full") || strings.Contains(shown, "near") {
		t.Errorf("a project that borrows what nobody wants is an alarm: %s", shown)
	}
	for i := range 101 {
		r.call(t, fmt.Sprintf("crowd/user-%d", i), "gpt-4o")
	}
	b.turn("/#/project/crowd")
	b.shows("main", "There are more than these 100.")
	if n := eval[int](b, `document.querySelectorAll('.shares tbody tr').length`); n != 100 {
		t.Errorf("there are %d of those below a crowd", n)
	}
	b.turn("/#/project/acme/ads")
	b.shows("main", "Above and below")
	b.until(`document.querySelectorAll('.tree li').length === 2`)
	if !eval[bool](b, `document.querySelector('[aria-label="Who shares its limits"]').hidden`) {
		t.Error("the page of a project that shares nothing has shares")
	}
}
