package dialect

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/llm"
)

// API is the format of a request and of its response.
type API string

// Generates reports whether answers of the API have output tokens. Embeddings and rankings are
// numbers: they cost input tokens alone.
func (a API) Generates() bool { return !a.protocol().embeds }

// PaidByUnits reports whether calls of the API are paid for by their units alone, whatever tokens of the model cost.
func (a API) PaidByUnits() bool { return a.protocol().byUnits }

// Told reports whether an answer that reports such a usage says all that the call is to be settled by.
func (a API) Told(u llm.Usage) bool {
	p := a.protocol()
	if !p.byUnits {
		return u.Exact && u.Input >= 0
	}
	return !slices.ContainsFunc(p.units, func(n unitNumber) bool { return u.Units[n.unit] < 0 })
}

// Endpoint is what the URL of a request says about it.
type Endpoint struct {
	Provider llm.Provider
	API      API
	Model    string // the model that the path names; empty where the body names it
	Stream   bool   // whether the path asks for a streamed response
}

// Recognize reads the endpoint from the URL of a request. ok is false for every request that is not
// a call of a model in a format that this package reads: lists of models, counts of tokens, files,
// unknown APIs.
func Recognize(method string, u *url.URL) (e Endpoint, ok bool) {
	known := ProviderAt(u.Hostname())
	e, ok = recognize(method, u, known)
	if ok && e.Provider == "" {
		_, _, folder := modelIn(u.Path)
		owner := e.API.protocol().owner
		e.Provider = cmp.Or(known, folder, owner.elsewhere, owner.provider)
	}
	return e, ok
}

// RecognizeAt is [Recognize] for a URL whose server is known to be of a provider, whatever its host. An API such as
// Anthropic's is its own provider's, whichever provider serves it.
func RecognizeAt(p llm.Provider, method string, u *url.URL) (e Endpoint, ok bool) {
	if e, ok = recognize(method, u, p); ok && !e.API.protocol().always {
		e.Provider = p
	}
	return e, ok
}

// A requestPath is the path of a request.
type requestPath struct {
	url          *url.URL
	folder       string // everything before the last segment
	last         string // the last segment
	parent, word string // the last two segments, in lower case
}

// recognize reads the endpoint from the URL of a request to a provider. It leaves out the provider unless
// the path alone says whose API it is.
func recognize(method string, u *url.URL, p llm.Provider) (e Endpoint, ok bool) {
	if method != http.MethodPost && method != http.MethodPatch {
		return Endpoint{}, false
	}
	path := u.Path
	if u.RawPath != "" { // a segment contains an escaped slash or the like
		path = u.EscapedPath()
	}
	r := requestPath{url: u}
	r.folder, r.last = cutLast(path)
	_, parent := cutLast(r.folder)
	r.parent, r.word = routeWord(u, parent), routeWord(u, r.last)
	if method == http.MethodPatch {
		e.API = patched[r.parent]
		return e, e.API != ""
	}
	e.API = cmp.Or(routes[[2]string{r.parent, r.word}], routes[[2]string{"", r.word}])
	if e.API != "" {
		e.Model = e.API.protocol().model
		if from, to, _ := modelIn(path); from < to {
			e.Model = unescapeSegment(u, path[from:to])
		}
	} else if e, ok = recognizeOwn(r, p); !ok {
		return Endpoint{}, false
	}
	if protocol := e.API.protocol(); protocol.always {
		e.Provider = protocol.owner.provider
	}
	return e, true
}

// recognizeOwn reads a path that has a form of its own.
func recognizeOwn(r requestPath, p llm.Provider) (e Endpoint, ok bool) {
	for _, d := range dialects {
		if d.recognize == nil {
			continue
		}
		if e, ok = d.recognize(r, d.provider == p); ok {
			return e, true
		}
	}
	return Endpoint{}, false
}

// cutLast cuts the last segment off a path. It ignores slashes at the end.
func cutLast(path string) (rest, last string) {
	path = strings.TrimRight(path, "/")
	i := strings.LastIndexByte(path, '/')
	return path[:i+1], path[i+1:]
}

// maxRouteWord is the length of the longest word that Recognize knows.
const maxRouteWord = 27

// routeWord returns a path segment in lower case, since some servers ignore case, or "" if it is
// too long to be a word that Recognize knows.
func routeWord(u *url.URL, segment string) string {
	if word := unescapeSegment(u, segment); len(word) <= maxRouteWord {
		return strings.ToLower(word)
	}
	return ""
}

// unescapeSegment undoes the percent-encoding of a segment of the path of u.
func unescapeSegment(u *url.URL, segment string) string {
	if u.RawPath == "" {
		return segment
	}
	plain, err := url.PathUnescape(segment)
	if err != nil {
		return segment
	}
	return plain
}

// modelIn returns the range of the path that names the model below a folder: everything up to the
// words of the API, since some servers have names with slashes. The range is 0, 0 if the path has no
// such folder. owner is the provider whose paths have the folder.
func modelIn(path string) (from, to int, owner llm.Provider) {
	for _, d := range dialects {
		if d.modelFolder == "" {
			continue
		}
		if at := afterFolder(path, d.modelFolder); at > 0 && (from == 0 || at < from) {
			from, owner = at, d.provider
		}
	}
	if from == 0 {
		return 0, 0, ""
	}
	rest, _ := cutLast(path)
	for _, word := range []string{"/chat/", "/extensions/", "/images/", "/audio/"} {
		if at := len(rest) - len(word); at > 0 && strings.EqualFold(rest[at:], word) {
			rest = rest[:at+1]
		}
	}
	return from, max(from, len(strings.TrimRight(rest, "/"))), owner
}

// afterFolder returns the index of the first byte behind a folder, whose case does not matter, or 0
// if the path does not have the folder.
func afterFolder(path, folder string) int {
	for i := range max(len(path)-len(folder), 0) {
		if path[i] == '/' && strings.EqualFold(path[i:i+len(folder)], folder) {
			return i + len(folder)
		}
	}
	return 0
}

// ProviderAt returns the provider whose server has this host name, or "" if the host is not known.
func ProviderAt(host string) llm.Provider {
	host = strings.TrimSuffix(host, ".")
	for _, d := range dialects {
		if d.isHost != nil && d.isHost(host) || slices.ContainsFunc(d.hosts, func(end string) bool { return endsIn(host, end) }) {
			return d.provider
		}
	}
	return ""
}

// endsIn reports whether the name of a host is end, or is below it. Case does not matter.
func endsIn(host, end string) bool {
	before := len(host) - len(end)
	if before < 0 || !strings.EqualFold(host[before:], end) {
		return false
	}
	return before == 0 || end[0] == '-' || host[before-1] == '.'
}
