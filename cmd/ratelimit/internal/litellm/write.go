package litellm

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var plainName = regexp.MustCompile(`^[A-Za-z][\w./:-]*\w$`)

// scalar returns a text as YAML, with quotes where it may need them.
func scalar(text string) string {
	if plainName.MatchString(text) && !strings.Contains(text, ": ") {
		return text
	}
	return strconv.Quote(text)
}

func isPattern(name string) bool { return strings.Contains(name, "*") }

// write returns the gateway's file.
func (f *file) write(providers []provider) string {
	var out strings.Builder
	line := func(depth int, format string, args ...any) {
		fmt.Fprintf(&out, strings.Repeat("  ", depth)+format+"\n", args...)
	}
	line(0, "# Converted from LiteLLM's config.yaml. To check it: ratelimit check FILE")
	if f.keys {
		line(0, "keys: required")
		line(0, "admin: {token: {env: %s}}", f.token)
	}
	switch {
	case f.stateEnv != "":
		line(0, "state: {env: %s}", f.stateEnv)
	case f.state != "":
		line(0, "state: %s", scalar(f.state))
	}
	line(0, "providers:")
	for _, p := range providers {
		line(1, "%s:", p.name)
		f.writeProvider(line, p)
	}
	f.writePrices(line)
	return out.String()
}

func (f *file) writeProvider(line func(int, string, ...any), p provider) {
	line(2, "kind: %s", p.accounts[0].kind)
	if f.timeout != "" {
		line(2, "timeout: %s", f.timeout)
	}
	if f.retries != "" && f.retries != "0" {
		line(2, "retries: %s", f.retries)
	}
	if len(p.accounts) == 1 {
		writeAccount(line, 2, p.accounts[0])
	} else {
		line(2, "deployments:")
		for i, a := range p.accounts {
			line(3, "%s-%d:", p.name, i+1)
			writeAccount(line, 4, a)
		}
	}
	line(2, "models:")
	for _, q := range p.models {
		line(3, "%s: {%s}", scalar(q.name), strings.Join(q.fields(), ", "))
	}
}

func writeAccount(line func(int, string, ...any), depth int, a account) {
	if a.base != "" {
		line(depth, "base_url: %s", scalar(a.base))
	}
	if a.key != "" {
		line(depth, "key: {env: %s}", a.key)
	}
	if a.region != "" {
		line(depth, "region: %s", a.region)
	}
}

func (q quota) fields() (all []string) {
	for _, limit := range []struct {
		name string
		n    int
	}{{"max_rpm", q.rpm}, {"max_tpm", q.tpm}, {"max_concurrent", q.concurrent}} {
		if limit.n > 0 {
			all = append(all, fmt.Sprintf("%s: %d", limit.name, limit.n))
		}
	}
	if len(q.aliases) > 0 {
		names := make([]string, len(q.aliases))
		for i, alias := range q.aliases {
			names[i] = scalar(alias)
		}
		all = append(all, "aliases: ["+strings.Join(names, ", ")+"]")
	}
	return all
}

func (f *file) writePrices(line func(int, string, ...any)) {
	seen := map[string]bool{}
	for _, m := range f.models {
		if m.input == "" && m.output == "" || seen[m.name] {
			continue
		}
		if len(seen) == 0 {
			line(0, "prices:")
		}
		seen[m.name] = true
		var parts []string
		if m.input != "" {
			parts = append(parts, "input: "+m.input)
		}
		if m.output != "" {
			parts = append(parts, "output: "+m.output)
		}
		line(1, "%s: {%s}", scalar(m.name), strings.Join(parts, ", "))
	}
}
