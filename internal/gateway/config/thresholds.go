package config

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/internal/strictyaml"
	"dappco.re/go/core/go-ratelimit/webhook"
)

// Thresholds says when operators are notified how much of a budget is used.
type Thresholds struct {
	At      []int    // percents of every budget; empty: none
	Webhook *Webhook // where messages are sent; nil: nowhere
}

// Webhook is the receiver of messages about budgets.
type Webhook struct {
	URL      string
	Insecure bool   // the URL may be http:// on another machine
	Secret   Secret // signs messages; webhook.ParseSecret reads it
}

const maxThresholds = 20

// read reads thresholds, or off.
func (t *Thresholds) read(p yamlValue) {
	if text, ok := p.Scalar(); ok && text == "off" {
		*t = Thresholds{}
		return
	}
	p.Fields(
		field("at", t.readAt),
		field("webhook", func(p yamlValue) { t.Webhook = readWebhook(p) }),
	)
}

func (t *Thresholds) readAt(p yamlValue) {
	t.At = nil
	p.Items(func(p yamlValue) {
		n := 0
		strictyaml.Parsed(&n, "a percentage from 1% to 100%, such as 80%", func(text string) (int, bool) {
			number, ok := strings.CutSuffix(text, "%")
			n, whole := strictyaml.WholeNumber(number)
			return int(n), ok && whole && n >= 1 && n <= 100
		})(p)
		if slices.Contains(t.At, n) {
			p.Warn("duplicate threshold %d%%", n)
			return
		}
		t.At = append(t.At, n)
	})
	switch {
	case p.Faulty():
	case len(t.At) == 0:
		p.Fault("it is empty: it must name one threshold at least; thresholds: off sends no notifications")
	case len(t.At) > maxThresholds:
		p.Fault("it names %d thresholds: there may be %d", len(t.At), maxThresholds)
	}
}

// readWebhook reads where messages are sent. Faults do not show the address, since it may hold a
// secret.
func readWebhook(p yamlValue) *Webhook {
	w := &Webhook{}
	p.Fields(
		field("url", strictyaml.Any(&w.URL, "the address of the receiver")),
		field("insecure", strictyaml.Flag(&w.Insecure)),
		field("secret", secret(&w.Secret)),
	)
	if p.Faulty() {
		return w
	}
	if err := webhook.CheckURL(w.URL, w.Insecure); err != nil {
		p.At("url").Fault("%s", message.Plain(err))
	} else if w.Insecure && webhook.CheckURL(w.URL, false) == nil {
		p.At("insecure").Warn("it is for http:// on another machine: it should be left out here")
	}
	if _, err := webhook.ParseSecret(w.Secret.Reveal()); err != nil {
		p.At("secret").Fault("%s", message.Plain(err))
	}
	return w
}

// MarshalJSON writes the thresholds as the file has them.
func (t Thresholds) MarshalJSON() ([]byte, error) {
	if len(t.At) == 0 {
		return json.Marshal("off")
	}
	at := make([]string, len(t.At))
	for i, p := range t.At {
		at[i] = fmt.Sprintf("%d%%", p)
	}
	return json.Marshal(struct {
		At      []string `json:"at"`
		Webhook *Webhook `json:"webhook,omitempty"`
	}{at, t.Webhook})
}

// MarshalJSON writes the webhook without its path, which may hold a secret.
func (w Webhook) MarshalJSON() ([]byte, error) {
	u, _ := url.Parse(w.URL) // the configuration is valid
	return json.Marshal(struct {
		URL      string `json:"url"`
		Insecure bool   `json:"insecure,omitempty"`
		Secret   Secret `json:"secret"`
	}{u.Scheme + "://" + u.Host, w.Insecure, w.Secret})
}
