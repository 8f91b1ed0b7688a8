package config

import (
	"slices"
	"strings"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/internal/state"
	"dappco.re/go/core/go-ratelimit/internal/statefile"
	"dappco.re/go/core/go-ratelimit/llm"
)

// Find returns the model that a client means by a name. That is the model with this name or
// alias; or else the model of which the name is a release or a variant, see [dialect.BaseName]; or
// else the first model whose pattern the name matches. A pattern that matches the name of a
// release, and not the name of its model, is meant for releases: it comes before the model.
func (p *Upstream) Find(name string) (Model, bool) {
	for _, m := range p.Models {
		if m.Name == name {
			return m, true
		}
	}
	m, known := p.find(name)
	if known && !isPattern(m.Name) {
		return m, true
	}
	base := dialect.BaseName(p.Kind, name)
	if known && !p.Means(m.Name, base) {
		return m, true
	}
	if model, ok := p.ofBase(base); ok {
		return model, true
	}
	if known {
		return m, true
	}
	return p.find(base)
}

// ofBase returns the model that has a base name, or else the first model that is a release or a
// variant of it.
func (p *Upstream) ofBase(base string) (found Model, ok bool) {
	for _, m := range p.Models {
		if isPattern(m.Name) || dialect.BaseName(p.Kind, m.Name) != base {
			continue
		}
		if dialect.PlainName(p.Kind, m.Name) == base {
			return m, true
		}
		if !ok {
			found, ok = m, true
		}
	}
	return found, ok
}

// find returns the first model that has a name or an alias, or whose pattern the name matches.
func (p *Upstream) find(name string) (Model, bool) {
	n := p.namesOf(name)
	for _, m := range p.Models {
		if n.matchedBy(m.Name) || slices.Contains(m.Aliases, name) {
			return m, true
		}
	}
	return Model{}, false
}

// Means reports whether a name or a pattern stands for a model, by any name under which the
// provider knows the model: see [dialect.PlainName].
func (p *Upstream) Means(pattern, name string) bool {
	n := p.namesOf(name)
	return n.matchedBy(pattern)
}

// names are the names of one model at a provider: as the client sent it, and the plain name.
type names struct {
	kind        llm.Provider
	sent, plain string
	fold        bool // the provider ignores the case of names
}

func (p *Upstream) namesOf(name string) names {
	n := names{p.Kind, name, dialect.PlainName(p.Kind, name), dialect.PlainName(p.Kind, "A") == "a"}
	if n.fold {
		n.sent = strings.ToLower(name)
	}
	return n
}

// matchedBy reports whether a name or a pattern stands for the model.
func (n *names) matchedBy(pattern string) bool {
	if !isPattern(pattern) {
		return pattern == n.sent || dialect.PlainName(n.kind, pattern) == n.plain
	}
	if n.fold {
		pattern = strings.ToLower(pattern)
	}
	return match(pattern, n.sent) || match(pattern, n.plain) || match(dialect.PlainName(n.kind, pattern), n.plain)
}

// match reports whether a name matches a pattern, in which * stands for any characters and
// everything else for itself.
func match(pattern, name string) bool {
	first, rest, isPattern := strings.Cut(pattern, "*")
	if !isPattern {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, first)
	for ok {
		part, after, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(name, part)
		}
		_, name, ok = strings.Cut(name, part)
		rest = after
	}
	return false
}

func isPattern(name string) bool { return strings.Contains(name, "*") }

// readModels reads the models in the order of the file.
func (p *Upstream) readModels(at yamlValue) {
	at.Entries(func(name string, key, value yamlValue) {
		if len(name) > maxName {
			key.Fault("a name of %d bytes: it may have %d", len(name), maxName)
			return
		}
		if len(p.Models) == maxModels {
			key.Fault("a provider may have %d models: a pattern stands for many", maxModels)
			return
		}
		if earlier, taken := p.find(name); taken && isPattern(earlier.Name) {
			key.Fault("%s is never reached: it must come before %s", message.Quote(name), message.Quote(earlier.Name))
			return
		} else if taken {
			key.Fault("%s is another name of the model %s: each model may be named once", message.Quote(name), message.Quote(earlier.Name))
			return
		}
		p.Models = append(p.Models, Model{Name: name})
		p.readModel(&p.Models[len(p.Models)-1], value)
	})
}

// readModel reads a model, which is the last of the provider's so far.
func (p *Upstream) readModel(m *Model, at yamlValue) {
	if at.Null() { // to forget a number must not lift a limit
		at.Fault("it has no value: it must be a mapping; {} is without limits")
		return
	}
	m.Quota.Margin = p.Margin
	at.Fields(append(statefile.QuotaFields((*state.Quota)(&m.Quota)),
		field("aliases", func(at yamlValue) { p.readAliases(m, at) }), field("mode", mode(&m.Mode)))...)
	if m.Quota == (ratelimit.ModelQuota{Margin: p.Margin}) {
		m.Quota.Margin = 0 // a model without limits has no windows
	}
	statefile.CheckQuota(at, (*state.Quota)(&m.Quota))
}

// WithMargin returns a quota with the provider's margin, unless the quota limits nothing.
func (p *Upstream) WithMargin(q ratelimit.ModelQuota) ratelimit.ModelQuota {
	if q != (ratelimit.ModelQuota{}) {
		q.Margin = p.Margin
	}
	return q
}

func (p *Upstream) readAliases(m *Model, at yamlValue) {
	if isPattern(m.Name) {
		at.Fault("a pattern has no aliases: they must be those of one model")
		return
	}
	at.Items(func(at yamlValue) {
		alias, ok := at.Text("a name")
		if !ok {
			return
		}
		other, taken := p.find(alias)
		switch {
		case isPattern(alias):
			at.Fault("%s is a pattern: an alias must be a name", message.Quote(alias))
		case len(alias) > maxName:
			at.Fault("a name of %d bytes: it may have %d", len(alias), maxName)
		case taken:
			at.Fault("%s is an alias of the model %s already: an alias must belong to one model", message.Quote(alias), message.Quote(other.Name))
		default:
			m.Aliases = append(m.Aliases, alias)
		}
	})
}
