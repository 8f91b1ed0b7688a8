package mockprovider

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

// An imitation is how one provider answers. Each provider's file registers one; a provider that has none answers as
// OpenAI does.
type imitation struct {
	provider    llm.Provider
	routes      []route
	modelFolder string                                           // the folder below which its paths name the model
	counting    map[string]string                                // the ends of its paths that count tokens, and the field with the result
	fetched     map[string]func(name string) object              // what clients fetch by its name, by the folder that it is in
	errorBody   func(f failure) object                           // nil: as OpenAI
	errorHeader func(h http.Header, f failure)                   // nil: it has none
	retryHeader func(h http.Header, wait time.Duration)          // nil: it has none
	limits      func(h http.Header, at limitStates, l limitTime) // nil: it has no headers of limits
	brokenBy    int                                              // the status of an error in mid-stream; 0: 500
	chat        chatStyle
	leastAudio  int64 // the fewest seconds of audio that it bills
}

// limitTime is when headers of limits are written, and whether the call has failed.
type limitTime struct {
	now    time.Time
	failed bool
}

// A chatStyle is what a provider has made of OpenAI's chat completions.
type chatStyle struct {
	namesProvider    bool   // chunks name the provider behind a reseller
	showsThoughts    bool   // reasoning comes as text
	reportsCost      bool   // usage has the cost
	usageUnasked     bool   // streams report usage without being asked for it
	usageInEachChunk bool   // each chunk has the usage so far, and none has nothing else
	usageBesideEnd   string // the member of the last chunk of an answer that has the usage; empty: none has
}

// imitations are the registered ones, by their providers. The other variables have what they have together.
var (
	imitations   = map[llm.Provider]*imitation{}
	routes       []route
	modelFolders []string
	counting     = map[string]string{}
	fetched      = map[string]func(name string) object{}
)

// register adds an imitation. It returns a value so that a file can call it when the package is loaded.
func register(i imitation) bool {
	imitations[i.provider] = &i
	for _, r := range i.routes {
		r.owner = i.provider
		routes = append(routes, r)
	}
	if i.modelFolder != "" {
		modelFolders = append(modelFolders, i.modelFolder)
	}
	maps.Copy(counting, i.counting)
	maps.Copy(fetched, i.fetched)
	return true
}

func init() { // of two routes that fit a path, the longer one comes first
	slices.SortFunc(routes, func(a, b route) int {
		return cmp.Or(cmp.Compare(len(b.end), len(a.end)), strings.Compare(a.end, b.end))
	})
}

// imitationOf returns how a provider answers.
func imitationOf(p llm.Provider) *imitation {
	if i := imitations[p]; i != nil {
		return i
	}
	return imitations[dialect.OpenAI]
}

func providerOf(name string) (llm.Provider, error) {
	if p := llm.Provider(name); slices.Contains(dialect.Providers(), p) {
		return p, nil
	}
	return "", fmt.Errorf("it must be one of %v", dialect.Providers())
}

// providerAt returns the provider of a host, or else the one that a route belongs to.
func providerAt(host string, owner llm.Provider) llm.Provider {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return cmp.Or(dialect.ProviderAt(host), owner)
}

// statusWords are a provider's words for errors, by status. That of 0 is for all other statuses.
type statusWords map[int]string

func (w statusWords) of(status int) string {
	if word, ok := w[status]; ok {
		return word
	}
	return w[0]
}

// retryAfter writes how long to wait in whole seconds.
func retryAfter(h http.Header, wait time.Duration) { h.Set("Retry-After", strconv.Itoa(seconds(wait))) }

// seconds returns a duration in whole seconds, rounded up.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
