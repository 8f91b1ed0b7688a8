package dashboard_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// pages are all pages, each with a text that it shows once it is there.
func pages(t *testing.T) map[string]string {
	keys := shared().get(t, "/v1/keys")["keys"].([]any)
	list := shared().get(t, "/v1/decisions?outcome=denied")["decisions"].([]any)
	return map[string]string{
		"/#/":                  "gpt-small",
		"/#/matrix":            "gpt-small",
		"/#/usage":             "Total",
		"/#/decisions":         "passed",
		"/#/keys":              "wall",
		"/#/audit":             "key.create",
		"/#/model/gpt-large":   "search",
		"/#/project/acme":      "Who shares its limits",
		"/#/project/acme/chat": "Above and below",
		"/#/project/nobody":    "Above and below",
		"/#/key/" + keys[0].(map[string]any)["id"].(string):     "search",
		"/#/explain/" + list[0].(map[string]any)["id"].(string): "What would have to change",
	}
}

// accessible fails the test unless axe finds nothing wrong with the page as it is, in light and dark.
func (b *tab) accessible(what string) {
	b.t.Helper()
	if eval[bool](b, `window.axe === undefined`) {
		axe, err := os.ReadFile("node_modules/axe-core/axe.min.js")
		if err != nil {
			b.t.Fatalf("%v: `make deps` installs axe-core", err)
		}
		eval[any](b, string(axe)+`; null`)
	}
	for _, theme := range []string{"light", "dark"} {
		b.scheme(theme)
		found := eval[[]any](b, `axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations.map((v) => ({id: v.id, help: v.help, nodes: v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200) + ' ' + (n.any[0]?.message ?? ''))})))`)
		if text, _ := json.MarshalIndent(found, "", " "); len(found) > 0 {
			b.t.Errorf("%s, %s: %s", what, theme, text)
		}
	}
}

// axe finds nothing wrong with any page or dialog, in light and dark.
func TestAccessible(t *testing.T) {
	b := open(t, shared(), "/#/")
	for page, text := range pages(t) {
		b.turn(page)
		b.shows("main", text)
		b.accessible(page)
	}
	b.turn("/#/project/search")
	b.press("Set limits")
	b.shows("dialog[open] .preview", "Nothing yet")
	b.accessible("the form of limits")
}

// fiveSentences reports whether five sentences that need attention can be read whole.
const fiveSentences = `(() => {
	const list = document.querySelector('.attention ul');
	const before = [...list.children];
	list.replaceChildren(...Array.from({length: 5}, () => Object.assign(document.createElement('li'), {textContent: 'a sentence of many words '.repeat(6)})));
	const whole = [list, ...list.children].every((each) => each.scrollHeight <= each.clientHeight + 1);
	list.replaceChildren(...before);
	return whole;
})()`

// wideShare returns where the share of a project ends that competes for a model, if it has many characters.
const wideShare = `(() => {
	const cell = document.querySelector('td.share');
	cell.textContent = '299% of 18.5K requests/min';
	return cell.getBoundingClientRect().right;
})()`

// No page is wider than a small phone, and what matters most is not cut off.
func TestNarrow(t *testing.T) {
	b := open(t, shared(), "/#/")
	b.size(360, 740)
	b.visit("/#/")
	for page, text := range pages(t) {
		b.turn(page)
		b.shows("main", text)
		if wide := eval[int](b, `document.documentElement.scrollWidth`); wide > 360 {
			what := eval[[]string](b, `[...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > 361 && !e.closest('.scroll > *')).slice(0, 5).map((e) => e.outerHTML.slice(0, 120))`)
			t.Errorf("%s is %d pixels wide: %s", page, wide, strings.Join(what, "\n"))
		}
	}
	b.turn("/#/")
	if !eval[bool](b, fiveSentences) {
		t.Error("what needs attention is cut off")
	}
	b.turn("/#/model/gpt-large")
	b.until(`document.querySelector('td.share') !== null`)
	if right := eval[float64](b, wideShare); right > 360 {
		t.Errorf("the shares of those who compete end at %v of 360 pixels", right)
	}
}
