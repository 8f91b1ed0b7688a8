package gateway

import (
	"fmt"
	"html"
	"strings"
)

// markup is HTML with %s for the values to fill in. Constants of our own become markup by themselves, and
// strings of others do not: the compiler refuses them.
//
// Package html/template would do it, too. But it calls methods by their names, so a program that links it keeps
// every method of every type: ours was a third larger.
type markup string

// page is a page of HTML that is being written.
type page struct{ text strings.Builder }

// put writes markup. Every value becomes text, or the text of an attribute in quotes: none of them is markup.
func (p *page) put(m markup, values ...any) {
	escaped := make([]any, len(values))
	for i, v := range values {
		escaped[i] = html.EscapeString(fmt.Sprint(v))
	}
	fmt.Fprintf(&p.text, string(m), escaped...)
}

// putIf writes markup if something holds.
func (p *page) putIf(holds bool, m markup, values ...any) {
	if holds {
		p.put(m, values...)
	}
}
