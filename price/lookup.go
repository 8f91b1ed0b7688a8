package price

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

// modelNames are the names of one model at a provider, in lower case.
type modelNames struct {
	provider string   // as the caller named it
	id       string   // that of the provider in the table
	sent     []string // the name that was sent, and others for exactly the same model
	base     []string // the model of which that is a release or a variant
}

// ids are the names of the table for providers, where they are not those of package llm.
var ids = map[string]string{
	string(dialect.Gemini): "google", string(dialect.Vertex): "google", string(dialect.Bedrock): "aws",
	"xai": "x-ai", "together-ai": "together", "moonshot": "moonshotai",
}

// kinds are the providers of package llm for names of the table, so that their names are understood.
var kinds = map[string]llm.Provider{"google": dialect.Vertex, "aws": dialect.Bedrock}

// compactDate is the date of a release without dashes.
var compactDate = regexp.MustCompile(`-(20\d\d)([01]\d)([0-3]\d)(-|:|$)`)

func (t *Table) namesOf(r request) modelNames {
	n := modelNames{provider: strings.ToLower(r.provider)}
	kind := cmp.Or(t.kinds[n.provider], kinds[n.provider], llm.Provider(n.provider))
	n.id = cmp.Or(ids[string(kind)], string(kind))
	if t.providers[n.id] == nil { // the table does not know the kind, but maybe the name
		n.id = cmp.Or(ids[n.provider], n.provider)
	}
	sent := strings.ToLower(strings.TrimSpace(r.model))
	plain := strings.ToLower(dialect.PlainName(kind, sent))
	base := strings.ToLower(dialect.BaseName(kind, sent))
	n.sent = slices.Compact([]string{sent, plain, compactDate.ReplaceAllString(plain, "-$1-$2-$3$4")})
	if !slices.Contains(n.sent, base) {
		n.base = []string{base}
	}
	return n
}

// overriding returns the overrides that stand for a model. A name comes before a pattern, unless the
// pattern stands for the release alone and the name for the model that it is a release of. One with
// a provider comes before one without.
func (t *Table) overriding(n modelNames) (found []Entry) {
	const ranks = 8
	var byRank [ranks][]Entry
	for _, o := range t.overrides {
		text := strings.ToLower(o.Model)
		sent, sentQualified := n.matchedBy(text, n.sent)
		base, baseQualified := n.matchedBy(text, n.base)
		rank := 0
		switch {
		case sent && !isPattern(text):
			rank = 0
		case sent && !base && n.base != nil:
			rank = 2
		case base && !isPattern(text):
			rank = 4
		case sent || base:
			rank = 6
		default:
			continue
		}
		if !sentQualified && !baseQualified {
			rank++
		}
		byRank[rank] = append(byRank[rank], o.entry())
	}
	return slices.Concat(byRank[:]...)
}

// matchedBy reports whether a name or a pattern stands for any of the names, and whether it does so
// with the provider before it.
func (n *modelNames) matchedBy(text string, names []string) (matched, qualified bool) {
	for _, name := range names {
		if matches(text, name) {
			return true, false
		}
		if matches(text, n.provider+"/"+name) {
			return true, true
		}
	}
	return false, false
}

// known returns the entry of the table's own for a model.
func (t *Table) known(n modelNames) (Entry, bool) {
	searched := []string{n.id}
	if p := t.providers[n.id]; p != nil {
		searched = append(searched, p.Also...)
	} else if n.id == "" {
		searched = t.order
	}
	for _, name := range slices.Concat(n.sent, n.base) {
		for _, id := range searched {
			if m := t.providers[id].find(name); m != nil {
				return Entry{id, m.ID, m.Price, m.Maxima}, true
			}
		}
	}
	return Entry{}, false
}

// find returns the first model that a name stands for, or nil.
func (p *provider) find(name string) *model {
	if p == nil {
		return nil
	}
	first, ok := p.exact[name]
	if !ok {
		first = len(p.Models)
	}
	for _, i := range p.loose {
		if i < first && p.Models[i].matches(name) {
			first = i
		}
	}
	if first == len(p.Models) {
		return nil
	}
	return &p.Models[first]
}

func (m *model) matches(name string) bool {
	matched := func(pattern string) bool { return matches(pattern, name) }
	return slices.ContainsFunc(m.Match, matched) && !slices.ContainsFunc(m.Not, matched)
}

// index makes a provider ready for find.
func (p *provider) index() {
	p.exact = map[string]int{}
	for i, m := range p.Models {
		if slices.ContainsFunc(m.Match, isPattern) {
			p.loose = append(p.loose, i)
		}
		for _, name := range append([]string{m.ID}, m.Match...) {
			if _, taken := p.exact[name]; !taken && !isPattern(name) {
				p.exact[name] = i
			}
		}
	}
}
