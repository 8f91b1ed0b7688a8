package main

import (
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/dashboard"
	"dappco.re/go/core/go-ratelimit/internal/gateway/server"
	"dappco.re/go/core/go-ratelimit/llm"
)

// announce prints what a gateway serves, and how to use it.
func announce(w io.Writer, r server.Running) {
	cfg := r.Gateway.Config()
	base := address(r.Clients, cfg.TLS)
	fmt.Fprintf(w, "ratelimit %s serves %s\n", thisBuild().Version, base)
	if r.Admin != nil {
		what := "admin API"
		if dashboard.Included {
			what = "dashboard and admin API"
		}
		fmt.Fprintf(w, "  admin  %s  %s\n", address(r.Admin, cfg.Admin.TLS), what)
	}
	fmt.Fprintf(w, "  state  %s\n  keys   %s\n", cfg.RedactedState(), aboutKeys(cfg))
	fmt.Fprintln(w, "  point an SDK at it by its base URL, or by the variable that it reads:")
	t := console.NewList(4)
	for _, name := range slices.Sorted(maps.Keys(cfg.Providers)) {
		url, variable := baseURL(base, name, cfg.Providers[name].Kind)
		t.Add("  ", name, url, variable)
	}
	fmt.Fprintln(w, strings.Join(t.Lines(console.Of(w).Columns()), "\n"))
	announceCodex(w, base, cfg)
	announceGuesses(w, r.Gateway)
}

// announceCodex prints how to point Codex at OpenAI's provider: it ignores the variable of OpenAI's SDKs.
func announceCodex(w io.Writer, base string, cfg *config.Config) {
	for _, name := range slices.Sorted(maps.Keys(cfg.Providers)) {
		if url, variable := baseURL(base, name, cfg.Providers[name].Kind); variable == openAIVariable {
			fmt.Fprintf(w, "  Codex ignores %s: put openai_base_url = %q into ~/.codex/config.toml\n", variable, url)
			return
		}
	}
}

// openAIVariable is the variable from which OpenAI's SDKs read their base URL.
const openAIVariable = "OPENAI_BASE_URL"

// announceGuesses prints which quotas are guessed; models with equal quotas share a line.
func announceGuesses(w io.Writer, g *gateway.Gateway) {
	t := console.NewList(4)
	cfg := g.Config()
	gemini := false
	for _, name := range slices.Sorted(maps.Keys(cfg.Providers)) {
		guessed := map[string][]string{}
		for _, m := range g.Guesses(name) {
			m.Quota.Auto = false
			guessed[aboutQuota(m.Quota)] = append(guessed[aboutQuota(m.Quota)], m.Name)
		}
		for _, quota := range slices.Sorted(maps.Keys(guessed)) {
			t.Add("  ", name, quota, strings.Join(guessed[quota], ", "))
		}
		gemini = gemini || len(guessed) > 0 && cfg.Providers[name].Kind == dialect.Gemini
	}
	if t.Len() == 0 {
		return
	}
	but := ""
	if gemini {
		but = " (Gemini reports them only with a 429: name yours in a file)"
	}
	fmt.Fprintf(w, "  assumed limits, until the provider reports the real ones%s:\n", but)
	fmt.Fprintln(w, strings.Join(t.Lines(console.Of(w).Columns()), "\n"))
}

// address returns the URL of a listener. One on all interfaces is at localhost.
func address(a net.Addr, files config.TLS) string {
	scheme := "http://"
	if files != (config.TLS{}) {
		scheme = "https://"
	}
	if tcp, ok := a.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return scheme + net.JoinHostPort("localhost", strconv.Itoa(tcp.Port))
	}
	return scheme + a.String()
}

func aboutKeys(cfg *config.Config) string {
	if cfg.Keys == config.KeysRequired {
		return "required: make one with `ratelimit key create PROJECT`"
	}
	passes := "a client's own key passes through"
	if keyed := keyed(cfg); len(keyed) > 0 {
		passes += ", but to " + strings.Join(keyed, ", ") + " goes yours"
	}
	return "off: " + passes + "; its project is in X-Project-ID"
}

// keyed returns the providers that the gateway calls with a key or a signature of its own.
func keyed(cfg *config.Config) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(cfg.Providers)) {
		for _, d := range cfg.Providers[name].Deployments {
			if d.Key != (config.Secret{}) || d.Signed() {
				names = append(names, name)
				break
			}
		}
	}
	return names
}

// baseURL returns the base URL for a provider's SDKs, and the variable that they read it
// from, if there is one.
func baseURL(base, provider string, kind llm.Provider) (url, variable string) {
	path, variable := dialect.BaseURL(kind)
	return base + "/" + provider + path, variable
}
