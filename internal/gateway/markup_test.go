package gateway

import (
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// No value becomes markup, wherever on a page it stands.
func TestValuesAreNoMarkup(t *testing.T) {
	const hostile = `</b></title><script>alert(1)</script>"><img src=x onerror='alert(1)'>&amp;`
	p := new(page)
	(&home{
		Me: &Me{Project: hostile, Key: hostile, Run: hostile, Levels: []Level{
			{Kind: hostile, ID: hostile, Limits: []LevelLimit{{Name: hostile}}},
			{Kind: "key", ID: hostile},
		}},
		SignedIn: true,
		History:  []*history{{Title: hostile, By: hostile, Bars: []*bar{{Time: hostile, UsageSum: UsageSum{Requests: 1}}}, Total: UsageSum{Requests: 1}}},
		Now:      hostile,
	}).write(p)
	document, err := html.Parse(strings.NewReader(p.text.String()))
	if err != nil {
		t.Fatal(err)
	}
	texts := 0
	for n := range document.Descendants() {
		if n.Data == "script" || n.Data == "img" {
			t.Errorf("the page has an element %s", n.Data)
		}
		if n.Type == html.TextNode && strings.Contains(n.Data, hostile) {
			texts++
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") {
				t.Errorf("%s has an attribute %s", n.Data, a.Key)
			}
		}
	}
	if texts != 12 {
		t.Errorf("%d texts show the value as it is, want 12:\n%s", texts, p.text.String())
	}
}
