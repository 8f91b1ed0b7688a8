package llm

import (
	"math"
	"strings"
)

// Units is how many units a call uses beside its tokens, or can use at most. A negative number is one that nobody knows.
type Units [UnitCount]int64

// The places of units in [Units].
const (
	Images       = iota // images that are generated
	AudioSeconds        // seconds of audio that are read
	Characters          // characters that are spoken
	WebSearches         // searches of the web that the provider makes
	FileSearches        // searches of stored files that the provider makes
	Pages               // pages of documents that are read
	VideoSeconds        // seconds of video that are generated
	Containers          // containers in which the provider runs code
	TokenHours          // tokens that the provider keeps, times the hours
	SearchUnits         // searches in the documents of a request, as a ranking is billed

	UnitCount
)

// A measuredBody is what is read of a body whose request uses something beside tokens.
type measuredBody struct {
	text          []byte // the body, or the fields of a form
	files         []formFile
	model         string
	answers       int
	size, quality string // of an image; empty: the body does not say
	searches      searches
	toolCalls     int // the most calls of tools that the provider runs; 0: the body does not say
}

// searches is the most searches that the tools of a request allow: of the web, and of stored files.
type searches struct{ web, files int64 }

// mostSearches is reserved for a tool that may search as often as the model likes: an answer rarely has so many.
const mostSearches = 10

// mostCounted bounds the searches of a request, so that sums do not overflow.
const mostCounted = math.MaxInt32

// add adds a tool of a type, that may be used so often.
func (s *searches) add(kind string, uses []byte) {
	most, ok := whole(uses)
	if !ok || most == 0 {
		most = mostSearches
	}
	switch {
	case strings.HasPrefix(kind, "web_search"):
		s.web = min(s.web+most, mostCounted)
	case strings.HasPrefix(kind, "file_search"):
		s.files = min(s.files+most, mostCounted)
	}
}

// measureSearches returns the most searches that a request allows.
func measureSearches(b measuredBody) (m measured) {
	m.units[WebSearches], m.units[FileSearches] = b.searches.web, b.searches.files
	for _, u := range [...]int{WebSearches, FileSearches} {
		if m.units[u] > 0 && b.toolCalls > 0 {
			m.units[u] = int64(b.toolCalls)
		}
	}
	return m
}

// measured is what a request can use beside tokens.
type measured struct {
	units     Units
	variant   string // see [Request]
	images    int    // images of the prompt
	elsewhere bool   // the context window alone bounds the prompt
}

// A unitNumber is the number of an answer that counts a unit.
type unitNumber struct {
	unit   int
	number number // noNumber: answers do not report it
	absent bool   // an answer with exact usage that does not have the number has used none
}

// units returns what an answer reports beside tokens.
func (s *numbers) units(list []unitNumber, exact bool) (u Units) {
	for _, c := range list {
		switch {
		case s.has(c.number):
			u[c.unit] = s.n[c.number]
		case !c.absent || !exact:
			u[c.unit] = -1
		}
	}
	return u
}

// UnknownUnits are units of which nobody knows how many a call has used.
var UnknownUnits = func() (u Units) {
	for i := range u {
		u[i] = -1
	}
	return u
}()

// Or returns the units with those of others where they are not known.
func (u Units) Or(others Units) Units {
	for i, n := range u {
		if n < 0 {
			u[i] = others[i]
		}
	}
	return u
}
