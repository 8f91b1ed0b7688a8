package gateway

import "strings"

// pathNames are the names in a path of a provider. Servers do not agree on all spellings of a path: some ignore
// case, and some ignore empty names. So the gateway compares paths in this one way wherever a request that it does
// not recognise could pass unpaid.
type pathNames []string

// namesIn returns the names in a path, without empty ones.
func namesIn(path string) pathNames {
	return strings.FieldsFunc(path, func(c rune) bool { return c == '/' })
}

// at returns the n-th name from the end of the path as it was sent, or "".
func (p pathNames) at(n int) string {
	if n > len(p) {
		return ""
	}
	return p[len(p)-n]
}

// is reports whether the n-th name from the end of the path is a word, in any case.
func (p pathNames) is(n int, word string) bool { return strings.EqualFold(p.at(n), word) }

// pathWords returns the names in a path in lower case, each without what follows a colon.
func pathWords(path string) pathNames {
	words := namesIn(strings.ToLower(path))
	for i := range words {
		words[i], _, _ = strings.Cut(words[i], ":")
	}
	return words
}
