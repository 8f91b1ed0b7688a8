package gateway

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/internal/numeral"
	"dappco.re/go/core/go-ratelimit/price"
)

//go:embed me.css
var pageStyle markup

// pagePolicy lets a page have its own style, send its forms to the gateway, and nothing else.
var pagePolicy = func() string {
	hash := sha256.Sum256([]byte(pageStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
}()

// sendPage sends a page that the holder of a key sees in a browser. Such pages have no scripts.
func (x *exchange) sendPage(status int, title string, write func(*page)) *refusal {
	p := new(page)
	p.put(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%s</title>
<style>`, title)
	p.text.WriteString(string(pageStyle))
	p.put("</style>\n</head>\n<body>\n<main>\n")
	write(p)
	p.put("</main>\n</body>\n</html>\n")
	x.w.Header()["Content-Security-Policy"] = []string{pagePolicy}
	return x.sendOwn(status, "text/html; charset=utf-8", []byte(p.text.String()))
}

// sendSignIn sends the form that asks for a virtual key. What is wrong with the last one may be empty.
func (x *exchange) sendSignIn(status int, wrong string) *refusal {
	return x.sendPage(status, "Sign in with your key", func(p *page) {
		p.put(`<h1>What is left?</h1>
<p>Sign in with your virtual key to see what is left of your limits, and what you have used.</p>
<form method="post" action="/ratelimit">
<label for="key">Virtual key</label>
<input id="key" name="key" type="password" required autocomplete="current-password" placeholder="rl-…"`)
		p.putIf(wrong != "", ` aria-invalid="true" aria-describedby="wrong"`)
		p.put(">\n")
		p.putIf(wrong != "", `<p id="wrong" role="alert" class="wrong">%s</p>`, wrong)
		p.put(`
<button>Sign in</button>
</form>
<p class="quiet">The browser keeps a cookie for 12 hours, which shows this page and nothing else: it does not contain the key, and cannot call a model.</p>
`)
	})
}

// home is what the page of a key's holder shows.
type home struct {
	*Me
	SignedIn bool       // by the form, so there is a way to sign out
	History  []*history // of the last hours and days; empty if there are no books
	Now      string
}

// newHome returns the page's contents. A history that the books cannot read at the moment is left out.
func (x *exchange) newHome(me *Me) *home {
	now := time.Now().UTC()
	h := &home{Me: me, Now: now.Format("2 January 2006, 15:04 MST")}
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

// write writes the page.
func (h *home) write(p *page) {
	p.put("<header>\n<div>\n<h1>What is left</h1>\n")
	p.put(`<p class="quiet">of project <b>%s</b>`, h.Project)
	p.putIf(h.Key != "", ", with key <b>%s</b>", h.Key)
	p.putIf(h.Run != "", ", in run <b>%s</b>", h.Run)
	p.put(" · %s</p>\n</div>\n", h.Now)
	p.putIf(h.SignedIn, `<form method="post" action="%s"><button>Sign out</button></form>`, pathSignOut)
	p.put("\n</header>\n")
	for _, level := range h.Levels {
		level.write(p)
	}
	for _, history := range h.History {
		history.write(p)
	}
}

// write writes the section of a level, with a table of its limits.
func (l *Level) write(p *page) {
	p.put("<section>\n<h2>%s %s</h2>\n", l.Kind, l.ID)
	if len(l.Limits) == 0 {
		p.put("<p class=\"quiet\">No limits of its own.</p>\n</section>\n")
		return
	}
	p.put(`<div class="wide" tabindex="0" role="region" aria-label="limits of %s %s"><table>
<thead><tr><th scope="col">limit</th><th scope="col">left</th><th scope="col">used</th><th scope="col">of</th><th scope="col">used, as a bar</th><th scope="col">resets in</th></tr></thead>
<tbody>
`, l.Kind, l.ID)
	for _, limit := range l.Limits {
		limit.write(p)
	}
	p.put("</tbody>\n</table></div>\n</section>\n")
}

// write writes the row of a limit.
func (l *LevelLimit) write(p *page) {
	if l.Left == nil {
		p.put(`<tr><th scope="row">%s</th><td>not known</td><td>not known</td><td>%s</td><td></td><td>not known</td></tr>`+"\n", l.words(), l.Max.shown())
		return
	}
	none := l.Left.N == 0
	p.put("<tr")
	p.putIf(none, ` class="none"`)
	p.put(`><th scope="row">%s</th><td><b>%s</b>`, l.words(), l.Left.shown())
	p.putIf(none && l.Share == nil, " used up")
	if l.Share != nil {
		p.put(" of your share of %s", l.Share.Max.shown())
	}
	p.put("</td><td>%s</td><td>%s</td><td>", l.Used.shown(), l.Max.shown())
	p.put(`<meter aria-label="used of %s" min="0" max="%s" low="%s" high="%s" optimum="0" value="%s"></meter>`, l.words(), l.Max.N, l.Max.N/4*3, l.Max.N/20*19, l.Used.N)
	p.put("</td><td>%s</td></tr>\n", resetText(*l))
}

// words returns what is limited, for people: "tokens a minute", "dollars in total".
func (l *LevelLimit) words() string {
	if k, ok := kind.Named(l.Name); ok {
		return k.Words()
	}
	return l.Name
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
