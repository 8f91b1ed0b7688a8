package dashboard_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/price"
)

// rowOf is an expression for the row of a name.
func rowOf(name string) string {
	return `[...document.querySelectorAll('.row')].find((row) => row.querySelector('.title').textContent === '` + name + `')`
}

// Calls appear in the overview while it is open, and nothing on the page is moved by that.
func TestLive(t *testing.T) {
	r := shared()
	b := open(t, r, "/#/")
	b.shows("#connection", "live")
	b.until(rowOf("idle") + ` !== undefined`)
	eval[any](b, `(window.shifts = [], window.moved = [], new PerformanceObserver((list) => list.getEntries().forEach((e) => {
		shifts.push(e.value);
		moved.push(...e.sources.map((s) => (s.node?.className ?? '') + ' ' + (s.node?.textContent ?? '').slice(0, 60) + ' by ' + (s.currentRect.y - s.previousRect.y)));
	})).observe({type: 'layout-shift'}), null)`)
	const attention = `document.querySelector('.attention').offsetHeight` // changes when a project is harmed, or is so no more, by calls of other tests
	before := eval[int](b, attention)
	for range 3 {
		r.call(t, "idle", "gpt-small")
	}
	b.until(rowOf("idle") + `?.querySelector('.gauge-value').textContent === '3 of 7'`)
	b.until(rowOf("idle") + `.querySelector('rl-gauge').getAttribute('aria-valuenow') === '3'`)
	shifts := eval[[]float64](b, `shifts`)
	if sum(shifts) > 0.01 && eval[int](b, attention) == before { // a number that gets a digit more moves a little; a line that moves the rest would be 0.02
		t.Errorf("the layout has shifted: %v\n%s", shifts, strings.Join(eval[[]string](b, `moved`), "\n"))
	}
	for range 3 {
		r.call(t, "small", "gpt-small")
	}
	b.until(rowOf("small") + `.querySelector('[data-part=denied]').textContent !== '0'`)
	b.shows(".attention", "denied") // of this project, or of those that other tests have harmed more
}

// The part of a bar that is only reserved by calls under way is hatched, as wide as it is, and named in words.
func TestReservedIsHatched(t *testing.T) {
	b := open(t, shared(), "/#/")
	b.until(rowOf("idle") + ` !== undefined`)
	gauge := func(reserved string) []string {
		return eval[[]string](b, `(() => {
			const gauge = document.createElement('rl-gauge');
			document.querySelector('main').append(gauge);
			gauge.show({name: 'dollars_per_day', limit: 1, used: 0.6, remaining: 0.4, reserved: `+reserved+`}, 'p');
			const part = gauge.querySelector('.gauge-reserved'), bar = gauge.querySelector('.gauge-bar');
			const shown = [gauge.getAttribute('aria-valuetext'), Math.round(10 * part.offsetWidth / bar.offsetWidth) + ' tenths', gauge.title.includes('only reserved') ? 'in the title' : ''];
			gauge.remove();
			return shown;
		})()`)
	}
	testkit.Equal(t, "with calls under way", []string{"$0.60 of $1.00, 60%, of which $0.50 are only reserved", "5 tenths", "in the title"}, gauge("0.5"))
	testkit.Equal(t, "without", []string{"$0.60 of $1.00, 60%", "0 tenths", ""}, gauge("0"))

	// Dollars are rounded as the command line rounds them.
	for _, n := range []price.Amount{0, 1, 19, 999, 570_000_000, 579_999_999, 4_999_999, 999_999_999, 1_000_000_000, 4_999_999_999, 1_009_999_999, 1_234_567_899_999_999} {
		if got := eval[string](b, fmt.Sprintf(`import('/assets/format.js').then((format) => format.dollars(%d / 1e9))`, n)); got != n.Floor().String() {
			t.Errorf("%s is shown as %s: want %s", n, got, n.Floor())
		}
	}
}

// A project's name is text, whatever it says.
func TestNamesAreText(t *testing.T) {
	b := open(t, shared(), "/#/")
	for _, page := range []string{"/#/", "/#/matrix", "/#/decisions", "/#/project/" + strings.NewReplacer("<", "%3C", ">", "%3E").Replace(hostile)} {
		b.turn(page)
		b.shows("main", hostile)
		if n := eval[int](b, `document.querySelectorAll('main u').length`); n != 0 {
			t.Errorf("%s has made an element of a name", page)
		}
	}
}

// When the gateway stops, the page says so. When it is back, the page goes on.
func TestGoneAndBack(t *testing.T) {
	address := testkit.NewPort(t).Addr
	r := start(t, usual, "listen: "+address)
	b := open(t, r, "/#/", "ERR_", "Failed to load resource")
	b.shows("#connection", "live")
	r.stop()
	b.shows("#connection", "no connection")
	b.shows("#banner", "does not answer")
	r = start(t, usual, "listen: "+address)
	b.shows("#connection", "live")
	b.until(`document.getElementById('banner').hidden`)
	r.call(t, "idle", "gpt-small")
	b.until(rowOf("idle") + `?.querySelector('.gauge-value').textContent === '1 of 7'`)
}

// The theme is the system's until the viewer chooses another, which stays.
func TestTheme(t *testing.T) {
	b := open(t, shared(), "/#/audit")
	ground := func() string { return eval[string](b, `getComputedStyle(document.body).backgroundColor`) }
	b.scheme("dark")
	dark := ground()
	b.scheme("light")
	light := ground()
	if dark == light {
		t.Fatalf("light and dark have the ground %s", dark)
	}
	b.press("Theme: system")
	b.press("Theme: light")
	if got := ground(); got != dark {
		t.Errorf("the ground is %s: want %s", got, dark)
	}
	b.visit("/#/audit")
	if got := ground(); got != dark {
		t.Errorf("after a reload, the ground is %s: want %s", got, dark)
	}
}

// Everything can be reached and done by the keyboard.
func TestKeyboard(t *testing.T) {
	b := open(t, shared(), "/#/")
	b.until(rowOf("search") + ` !== undefined`)
	focused := func() string {
		return eval[string](b, `document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent`)
	}
	b.do(chromedp.KeyEvent(kb.Tab))
	if got := focused(); got != "Skip to the content" {
		t.Errorf("the first is %q", got)
	}
	for range 3 {
		b.do(chromedp.KeyEvent(kb.Tab))
	}
	if got := focused(); got != "Who uses what" {
		t.Fatalf("the fourth is %q", got)
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	b.shows("h1", "Who uses what")
	b.visit("/#/")
	b.until(rowOf("search") + ` !== undefined`)
	for range 60 {
		if focused() == "Pause search" {
			break
		}
		b.do(chromedp.KeyEvent(kb.Tab))
	}
	if got := focused(); got != "Pause search" {
		t.Fatalf("the focus does not come to the button: %q", got)
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	b.shows("dialog[open] h2", "Pause project search?")
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until(`document.querySelector('dialog') === null`)
	if got := focused(); got != "Pause search" {
		t.Errorf("after the dialog, the focus is at %q", got)
	}
}

func sum(list []float64) (total float64) {
	for _, each := range list {
		total += each
	}
	return total
}
