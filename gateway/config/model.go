package config

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/llm"
)

// Find returns the model that a client means by a name: that of which it is a name or an
// alias; or else that of which it is a release or a variant, see [llm.BaseName]; or else
// the first whose pattern it matches. A pattern that a release matches, and its model
// does not, is meant for releases, and comes before the model.
func (p *Provider) Find(name string) (Model, bool) {
	for _, m := range p.Models {
		if m.Name == name {
			return m, true
		}
	}
	m, known := p.find(name)
	if known && !isPattern(m.Name) {
		return m, true
	}
	base := llm.BaseName(p.Kind, name)
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

// ofBase returns the model that has a base name, or else the first that is a release or a
// variant of that.
func (p *Provider) ofBase(base string) (found Model, ok bool) {
	for _, m := range p.Models {
		if isPattern(m.Name) || llm.BaseName(p.Kind, m.Name) != base {
			continue
		}
		if llm.PlainName(p.Kind, m.Name) == base {
			return m, true
		}
		if !ok {
			found, ok = m, true
		}
	}
	return found, ok
}

// find returns the first model whose name or alias a name is, or whose pattern it
// matches.
func (p *Provider) find(name string) (Model, bool) {
	n := p.namesOf(name)
	for _, m := range p.Models {
		if n.are(m.Name) || slices.Contains(m.Aliases, name) {
			return m, true
		}
	}
	return Model{}, false
}

// Limited reports whether a model of the provider has a quota.
func (p *Provider) Limited() bool {
	return slices.ContainsFunc(p.Models, func(m Model) bool { return m.Quota != ratelimit.ModelQuota{} })
}

// Means reports whether a name or a pattern stands for a model, by any of the names by
// which the provider knows it: see [llm.PlainName].
func (p *Provider) Means(pattern, name string) bool {
	n := p.namesOf(name)
	return n.are(pattern)
}

// Same reports whether two names are those of one model.
func (p *Provider) Same(one, other string) bool {
	return one == other || llm.PlainName(p.Kind, one) == llm.PlainName(p.Kind, other)
}

// names are those of one model at a provider: as it was sent, and plain.
type names struct {
	kind        llm.Provider
	sent, plain string
	fold        bool // the provider knows them in any case
}

func (p *Provider) namesOf(name string) names {
	n := names{p.Kind, name, llm.PlainName(p.Kind, name), llm.PlainName(p.Kind, "A") == "a"}
	if n.fold {
		n.sent = strings.ToLower(name)
	}
	return n
}

// are reports whether a pattern stands for the model.
func (n *names) are(pattern string) bool {
	if !isPattern(pattern) {
		return pattern == n.sent || llm.PlainName(n.kind, pattern) == n.plain
	}
	if n.fold {
		pattern = strings.ToLower(pattern)
	}
	return Match(pattern, n.sent) || Match(pattern, n.plain) || Match(llm.PlainName(n.kind, pattern), n.plain)
}

// Match reports whether a name matches a pattern, in which * stands for any characters,
// and everything else for itself.
func Match(pattern, name string) bool {
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
func (p *Provider) readModels(at place) {
	at.entries(func(name string, key, value place) {
		if len(name) > maxName {
			key.fault("a name of %d bytes: it may have %d", len(name), maxName)
			return
		}
		if len(p.Models) == maxModels {
			key.fault("a provider may have %d models: a pattern stands for many", maxModels)
			return
		}
		if earlier, taken := p.find(name); taken && isPattern(earlier.Name) {
			key.fault("%s is never reached: it must stand before %s", shown(name), shown(earlier.Name))
			return
		} else if taken {
			key.fault("%s is another name of the model %s: each model may be named once", shown(name), shown(earlier.Name))
			return
		}
		p.Models = append(p.Models, Model{Name: name})
		p.readModel(&p.Models[len(p.Models)-1], value)
	})
}

// readModel reads one, which is the last of the provider's so far.
func (p *Provider) readModel(m *Model, at place) {
	if _, empty := at.node.(*ast.NullNode); empty { // to forget a number must not lift a limit
		at.fault("it has no value: it must be a mapping; {} is without limits")
		return
	}
	m.Quota.Margin = p.Margin
	at.fields(append(quotaFields(&m.Quota), field{"aliases", func(at place) { p.readAliases(m, at) }})...)
	if m.Quota == (ratelimit.ModelQuota{Margin: p.Margin}) {
		m.Quota.Margin = 0 // it has no windows
	}
	if err := m.Quota.Validate(); err != nil { // the numbers are in range already
		at.r.at(at.path+".day_resets_at").fault("%s", message.Plain(err))
	}
}

// quotaFields are those of [ratelimit.ModelQuota], as its files name them.
func quotaFields(q *ratelimit.ModelQuota) []field {
	return []field{
		{"max_rpm", amount(&q.MaxRPM)},
		{"max_tpm", amount(&q.MaxTPM)},
		{"max_rpd", amount(&q.MaxRPD)},
		{"max_input_tpm", amount(&q.MaxInputTPM)},
		{"max_output_tpm", amount(&q.MaxOutputTPM)},
		{"max_tpd", amount(&q.MaxTPD)},
		{"max_concurrent", amount(&q.MaxConcurrent)},
		{"day_resets_at", text(&q.DayResetsAt, "a time of day and a time zone, such as 00:00 America/Los_Angeles")},
		{"auto", flag(&q.Auto)},
		{"margin", duration(&q.Margin, 0, ratelimit.MaxMargin)},
	}
}

// WithMargin returns a quota with the provider's margin, unless it limits nothing.
func (p *Provider) WithMargin(q ratelimit.ModelQuota) ratelimit.ModelQuota {
	if q != (ratelimit.ModelQuota{}) {
		q.Margin = p.Margin
	}
	return q
}

func (p *Provider) readAliases(m *Model, at place) {
	if isPattern(m.Name) {
		at.fault("a pattern has no aliases: they must be those of one model")
		return
	}
	at.items(func(at place) {
		alias, ok := at.text("a name")
		if !ok {
			return
		}
		other, taken := p.find(alias)
		switch {
		case isPattern(alias):
			at.fault("%s is a pattern: an alias must be a name", shown(alias))
		case len(alias) > maxName:
			at.fault("a name of %d bytes: it may have %d", len(alias), maxName)
		case taken:
			at.fault("%s stands for the model %s already: an alias must stand for one", shown(alias), shown(other.Name))
		default:
			m.Aliases = append(m.Aliases, alias)
		}
	})
}
