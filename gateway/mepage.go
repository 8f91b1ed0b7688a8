package gateway

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/numeral"
	"dappco.re/go/core/go-ratelimit/price"
)

//go:embed me.html
var pageText string

//go:embed me.css
var pageStyle string

// page shows a [Me] in a browser. It has no scripts.
var page = template.Must(template.New("me").Funcs(template.FuncMap{
	"style": func() template.CSS { return template.CSS(pageStyle) },
	"shown": Quantity.shown,
	"in":    resetText,
}).Parse(pageText))

// pagePolicy lets the page have its own style, and nothing else.
var pagePolicy = func() string {
	hash := sha256.Sum256([]byte(pageStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}()

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
	return "in " + time.Duration(l.Reset*float64(time.Second)).Round(time.Second).String()
}
