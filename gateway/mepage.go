package gateway

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/numeral"
	"dappco.re/go/core/go-ratelimit/price"
)

//go:embed me.html
var pageText string

//go:embed me.css
var pageStyle string

// The pages that the holder of a key sees in a browser. They have no scripts.
var (
	pages = template.Must(template.New("").Funcs(template.FuncMap{
		"style":   func() template.CSS { return template.CSS(pageStyle) },
		"shown":   Quantity.shown,
		"in":      resetText,
		"grouped": numeral.Grouped,
	}).Parse(pageText))
	signInPage = pages.Lookup("signin") // shows a message, which may be empty
	mePage     = pages.Lookup("me")     // shows a home
)

// pagePolicy lets a page have its own style, send its forms to the gateway, and nothing else.
var pagePolicy = func() string {
	hash := sha256.Sum256([]byte(pageStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
}()

func (x *exchange) sendPage(status int, page *template.Template, data any) *refusal {
	var body bytes.Buffer
	page.Execute(&body, data) // a buffer and a template that a test executes do not fail
	x.w.Header()["Content-Security-Policy"] = []string{pagePolicy}
	return x.sendOwn(status, "text/html; charset=utf-8", body.Bytes())
}

// home is what the page of a key's holder shows.
type home struct {
	*Me
	SignedIn bool       // by the form, so there is a way to sign out
	History  []*history // of the last hours and days; empty if there are no books
	Sign     string     // where the form to sign out leads
	Now      string
}

// newHome returns the page's contents. A history that the books cannot tell at the moment is left out.
func (x *exchange) newHome(me *Me) *home {
	now := time.Now().UTC()
	h := &home{Me: me, Sign: pathSignOut, Now: now.Format("2 January 2006, 15:04 MST")}
	_, h.SignedIn = x.signedIn()
	for _, each := range []history{
		{Title: "The last 24 hours", By: books.ByHour, step: time.Hour, steps: 24, layout: "15:04"},
		{Title: "The last 30 days", By: books.ByDay, step: 24 * time.Hour, steps: 30, layout: "2 January"},
	} {
		if each.fill(x, now) {
			h.History = append(h.History, &each)
		}
	}
	return h
}

// shown returns a quantity for people.
func (q Quantity) shown() string {
	if q.Dollars {
		return price.Amount(q.N).String()
	}
	return numeral.Grouped(q.N)
}

// resetText says when nothing is used of a limit any more.
func resetText(l LevelLimit) string {
	switch {
	case l.Total:
		return "never"
	case l.Reset == 0:
		return "now"
	}
	left := time.Duration(l.Reset * float64(time.Second))
	if days := left.Hours() / 24; days >= 2 {
		return fmt.Sprintf("in %.0f days", days)
	}
	text := left.Round(time.Second).String()
	return "in " + strings.Replace(strings.Replace(text, "m0s", "m", 1), "h0m", "h", 1)
}
