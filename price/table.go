package price

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// Table has the prices of models. It is safe for concurrent use.
type Table struct {
	about     About
	overrides []Override
	kinds     map[string]llm.Provider // what the caller's names of providers stand for
	providers map[string]*provider
	order     []string // the providers, in the order in which a model without a provider is looked for

	mu    sync.RWMutex
	found map[request][]Entry // what was looked up
}

// About says where the prices of a table come from.
type About struct {
	Source  string `json:"source"`
	Version string `json:"version"`
	Date    string `json:"date"` // of the version
	Licence string `json:"licence"`
	Maxima  string `json:"maxima,omitempty"` // where the maxima of models come from
}

// Override is a price, or are the maxima of a model, that win over those of a table.
type Override struct {
	// Model is the name of a model or a pattern, in which * stands for any characters; the name of a
	// provider and a slash may stand before it.
	Model      string
	Price      *Price // nil: the price stays as it is
	llm.Maxima        // 0: the maximum stays as it is
}

// Entry is the price of one model of a provider.
type Entry struct {
	Provider string // empty for an [Override]
	Model    string // the name in the table, or the Model of an Override
	Price    *Price // nil only for an Override without one
	llm.Maxima
}

func (o *Override) entry() Entry { return Entry{Model: o.Model, Price: o.Price, Maxima: o.Maxima} }

// provider has models, and may have those of others too.
type provider struct {
	ID     string   `json:"id"`
	Also   []string `json:"also,omitempty"`
	Models []model  `json:"models"`

	exact map[string]int // the index of the first model that a name stands for
	loose []int          // the indexes of models that have patterns
}

// model is a price, and the names that have it.
type model struct {
	ID    string   `json:"id"`
	Match []string `json:"match,omitempty"` // other names and patterns, all in lower case
	Not   []string `json:"not,omitempty"`   // patterns of names that have other prices
	llm.Maxima
	Price *Price `json:"price"`
}

// request is what was looked up.
type request struct{ provider, model string }

// maxFound bounds the memory of a table, since clients make up names of models.
const maxFound = 4096

// With returns a table with prices that win over those of this one. A name wins over patterns, and
// of several patterns the first counts. Overrides of this table come after the new ones.
func (t *Table) With(overrides ...Override) *Table {
	return &Table{
		about: t.about, kinds: t.kinds, providers: t.providers, order: t.order,
		overrides: slices.Concat(overrides, t.overrides), found: map[request][]Entry{},
	}
}

// WithProviders returns a table that knows the caller's names of providers, and what each stands for.
func (t *Table) WithProviders(kinds map[string]llm.Provider) *Table {
	named := t.With()
	named.kinds = map[string]llm.Provider{}
	for name, kind := range kinds {
		named.kinds[strings.ToLower(name)] = kind
	}
	return named
}

// Overrides returns the prices that win over the table's own.
func (t *Table) Overrides() []Override { return slices.Clone(t.overrides) }

// About returns where the prices come from.
func (t *Table) About() About { return t.about }

// Of returns the price of a model that holds at a time. The provider is one of [Table.WithProviders],
// an [llm.Provider], or another company such as "deepseek"; if it is empty, any provider's model will
// do.
func (t *Table) Of(provider, model string, at time.Time) (*Price, bool) {
	e, ok := t.Find(provider, model, at)
	return e.Price, ok
}

// Find returns the entry whose price [Table.Of] returns.
func (t *Table) Find(provider, model string, at time.Time) (Entry, bool) {
	for _, e := range t.candidates(request{provider, model}) {
		if e.Price != nil && e.Price.Holds(at) {
			return e, true
		}
	}
	return Entry{}, false
}

// Maxima returns how large the calls of a model can become. Names of providers and models are those of [Table.Of].
// Each maximum is that of the first entry that has one.
func (t *Table) Maxima(provider, model string) (m llm.Maxima) {
	for _, e := range t.candidates(request{provider, model}) {
		m.Context = cmp.Or(m.Context, e.Context)
		m.Output = cmp.Or(m.Output, e.Output)
	}
	return m
}

// All yields the prices of the overrides, and then the models of every provider.
func (t *Table) All() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for _, o := range t.overrides {
			if o.Price != nil && !yield(o.entry()) {
				return
			}
		}
		for _, id := range t.order {
			for _, m := range t.providers[id].Models {
				if !yield(Entry{id, m.ID, m.Price, m.Maxima}) {
					return
				}
			}
		}
	}
}

// candidates returns the entries for a model, the first that holds being the one that counts.
func (t *Table) candidates(r request) []Entry {
	t.mu.RLock()
	found, ok := t.found[r]
	t.mu.RUnlock()
	if ok {
		return found
	}
	n := t.namesOf(r)
	found = t.overriding(n)
	if e, ok := t.known(n); ok {
		found = append(found, e)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.found) >= maxFound {
		clear(t.found)
	}
	t.found[request{strings.Clone(r.provider), strings.Clone(r.model)}] = found
	return found
}
