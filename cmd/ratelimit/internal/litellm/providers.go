package litellm

import (
	"fmt"
	"slices"
)

// provider is a provider of the gateway: the accounts that have the same models.
type provider struct {
	name     string
	accounts []account
	models   []quota
}

// quota is a model of a provider.
type quota struct {
	name                 string
	aliases              []string
	rpm, tpm, concurrent int
}

// providers groups the models. Accounts of a kind that have the same models with the same limits
// are deployments of one provider; others are providers of their own.
func (f *file) providers() (all []provider) {
	for _, a := range f.accounts() {
		models := f.modelsOf(a)
		same := slices.IndexFunc(all, func(p provider) bool {
			return p.accounts[0].kind == a.kind && slices.EqualFunc(p.models, models, quota.equal)
		})
		if same >= 0 {
			all[same].accounts = append(all[same].accounts, a)
			continue
		}
		all = append(all, provider{name(all, a.kind), []account{a}, models})
	}
	return all
}

// accounts returns the accounts, in the order of the file.
func (f *file) accounts() (all []account) {
	for _, m := range f.models {
		if !slices.Contains(all, m.account) {
			all = append(all, m.account)
		}
	}
	return all
}

// modelsOf returns the models of an account. Entries of one model are one quota with several
// names, the smallest of their limits.
func (f *file) modelsOf(a account) (all []quota) {
	for _, m := range f.models {
		if m.account != a {
			continue
		}
		i := slices.IndexFunc(all, func(q quota) bool { return q.name == m.name })
		if i < 0 {
			all = append(all, quota{name: m.name, rpm: m.rpm, tpm: m.tpm, concurrent: m.concurrent})
			i = len(all) - 1
		}
		q := &all[i]
		q.rpm, q.tpm, q.concurrent = least(q.rpm, m.rpm), least(q.tpm, m.tpm), least(q.concurrent, m.concurrent)
		if m.alias != "" && m.alias != m.name && !isPattern(m.name) && !slices.Contains(q.aliases, m.alias) {
			q.aliases = append(q.aliases, m.alias)
		}
	}
	// Patterns come last, because the first that matches counts.
	slices.SortStableFunc(all, func(a, b quota) int { return order(isPattern(a.name)) - order(isPattern(b.name)) })
	return all
}

func (q quota) equal(r quota) bool {
	return q.name == r.name && q.rpm == r.rpm && q.tpm == r.tpm && q.concurrent == r.concurrent && slices.Equal(q.aliases, r.aliases)
}

// name returns a name for a provider that none has yet: openai, openai-2 and so on. The built-in
// name of ollama's is local.
func name(taken []provider, kind string) string {
	if kind == "ollama" {
		kind = "local"
	}
	for n := 1; ; n++ {
		name := kind
		if n > 1 {
			name = fmt.Sprintf("%s-%d", kind, n)
		}
		if !slices.ContainsFunc(taken, func(p provider) bool { return p.name == name }) {
			return name
		}
	}
}

// least returns the smaller of two limits, of which 0 is none.
func least(a, b int) int {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

func order(last bool) int {
	if last {
		return 1
	}
	return 0
}
