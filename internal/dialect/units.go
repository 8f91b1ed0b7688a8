package dialect

import (
	"bytes"
	"cmp"
	"math"
	"regexp"
	"strings"

	"dappco.re/go/core/go-ratelimit/llm"
)

// A measuredBody is what is read of a body whose request uses something beside tokens.
type measuredBody struct {
	text       []byte // the body, or the fields of a form
	files      []formFile
	model      string
	answers    int
	words      [wordCount]string // the values of fields of the kind fieldWord, by their setting; empty: the body does not have it
	samples    int               // how many results Google's predict is asked for; 0: the body does not say
	duration   int               // how many seconds each of them has; 0: the body does not say
	prompt     int               // the most tokens of the prompt; -1: a part of it is not in the body
	tools      llm.Units         // the most that the tools of the request can use
	toolCalls  int               // the most calls of tools that the provider runs; 0: the body does not say
	asksSearch bool              // the body has web_search_options
	mapsAlone  bool              // its tools search maps, and not the web
	imageModel string            // see [Request]
	template   bool              // see [promptBound]
}

// The words on which the price of a call depends.
const (
	sizeWord setting = iota
	qualityWord
	secondsWord    // how long a video is
	resolutionWord // of a video
	ttlWord        // for how long the provider keeps a prompt
	expiryWord     // until when it does
	memoryWord     // of a container
	wordCount
)

// A toolUnit is what each use of a tool counts in that the provider itself runs, and how many uses are reserved for a
// request that does not bound them.
type toolUnit struct {
	unit int
	most int64
}

// waived is the most of a tool with which the unit is free.
const waived = -mostCounted

// mostSearches is reserved for a tool that may search as often as the model likes: an answer rarely has so many.
const mostSearches = 10

// toolUnits has the tools that cost something beside tokens, by how their types begin. Gemini has the type as a member.
var toolUnits = map[string]toolUnit{}

// mostCounted bounds the uses of a tool, so that sums do not overflow.
const mostCounted = math.MaxInt32

// addTool adds what a tool of the type kind may use: uses is how often it may be called, and containers is how many
// containers of 1 GB the one in which it runs costs.
func addTool(u *llm.Units, kind string, uses []byte, containers int64) {
	if kind == "" || kind == "function" || kind == "custom" { // the client runs nearly all tools
		return
	}
	for name, t := range toolUnits {
		if strings.HasPrefix(kind, name) {
			most, ok := whole(uses)
			if !ok || most == 0 || t.most == waived {
				most = t.most
			}
			if t.unit == llm.Containers && most > 0 {
				most *= containers
			}
			u[t.unit] = max(min(u[t.unit]+most, mostCounted), waived)
		}
	}
}

// containerSizes are the sizes of OpenAI's containers, the largest first: a container costs as much as so many of one
// gigabyte, which is the usual size.
var containerSizes = []struct {
	word string
	size int64
}{{"64g", 64}, {"16g", 16}, {"4g", 4}}

const largestContainer = 64

// otherSize finds a size in what a tool runs in that is not null.
var otherSize = regexp.MustCompile(`"memory_limit"\s*:\s*[^\sn]`)

// containersFor returns how many containers of a gigabyte the value costs in which a tool says what it runs in: none, if
// the provider makes nothing for it. An escape, which could hide a word, and a size that is not known count as the largest.
func containersFor(key string, value []byte) int64 {
	has := func(word string) bool { return bytes.Contains(value, []byte(`"`+word+`"`)) }
	switch {
	case bytes.IndexByte(value, '\\') >= 0:
		return largestContainer
	case key == "container" && len(value) > 0 && value[0] == '"': // the id of one that was made before
		return 0
	case key == "environment" && !has("container_auto") && (has("local") || has("container_reference")):
		return 0
	}
	for _, c := range containerSizes {
		if has(c.word) {
			return c.size
		}
	}
	if otherSize.Match(value) && !has("1g") {
		return largestContainer
	}
	return 1
}

// measureTools returns the most that the tools of a request can use.
func measureTools(b measuredBody) (m measured) {
	m.units, m.draws = b.tools, b.imageModel
	if b.template { // its tools are settled, and nothing says what to reserve for them
		m.draws, m.template = cmp.Or(m.draws, usualDrawing), true
	}
	for u, n := range m.units {
		if n > 0 && b.toolCalls > 0 && u != llm.Containers {
			m.units[u] = int64(b.toolCalls)
		}
		m.units[u] = max(m.units[u], 0)
	}
	return m
}

// measured is what a request can use beside tokens.
type measured struct {
	units     llm.Units
	variant   string // see [Request]
	draws     string // the ImageModel of the [Request]
	images    int    // images of the prompt
	elsewhere bool   // the context window alone bounds the prompt
	once      bool   // however often it searches, it is billed once
	template  bool   // see [promptBound]
	kept      int64  // for how many seconds the provider keeps the prompt
}

// tokenHours returns how many token hours it is to keep tokens for so many seconds, rounded up.
func tokenHours(tokens, seconds int64) int64 {
	return (min(tokens, mostCounted)*min(seconds, mostCounted) + 3599) / 3600
}

// Used returns the usage that a response reports with what the request itself says of units: those that the response
// does not report are as many as the request can use.
func (r *Request) Used(u llm.Usage) llm.Usage {
	if r.kept > 0 && u.Input >= 0 {
		u.Units[llm.TokenHours] = tokenHours(int64(u.Input), r.kept)
	}
	if n := u.Units[llm.ByteDays]; n >= 0 { // an answer reports bytes
		u.Units[llm.ByteDays] = r.Before + r.Days*min(n, mostLines/max(r.Days, 1))
	}
	u.Units = u.Units.Or(r.Units)
	for i, n := range r.Units {
		if n > 0 && r.API.protocol().told>>i&1 == 0 {
			u.Units[i] = n
		}
	}
	if u.Units[llm.AudioSeconds] > 0 {
		u.Units[llm.AudioSeconds] = max(u.Units[llm.AudioSeconds], dialectOf(r.Provider).leastAudio)
	}
	if r.SearchesOnce {
		u.Units[llm.WebSearches] = min(u.Units[llm.WebSearches], 1)
	}
	if u.Units[llm.Containers] > 0 { // however often it runs code there
		u.Units[llm.Containers] = r.Units[llm.Containers]
		if r.StoredTools {
			u.Units[llm.Containers] = max(u.Units[llm.Containers], 1)
		}
	}
	return u
}

// TellsUnits reports whether answers report all units that the request can use.
func (r *Request) TellsUnits() bool {
	for i, n := range r.Units {
		if n != 0 && r.API.protocol().told>>i&1 == 0 {
			return false
		}
	}
	return r.ImageModel == "" || r.Units[llm.Images] == 0
}

// A unitNumber is the number of an answer that counts a unit.
type unitNumber struct {
	unit   int
	number number // noNumber: answers do not report it
	absent bool   // an answer with exact usage that does not have the number has used none
	billed number // counts instead of the other number if an answer has it
	once   number // an answer that has it has used one at least
}

// units returns what an answer reports beside tokens.
func (s *numbers) units(list []unitNumber, exact bool) (u llm.Units) {
	for _, c := range list {
		switch {
		case s.has(c.billed):
			u[c.unit] = s.n[c.billed]
		case s.has(c.number):
			u[c.unit] = s.n[c.number]
		case !c.absent || !exact:
			u[c.unit] = -1
		}
		if s.has(c.once) {
			u[c.unit] = max(u[c.unit], 1)
		}
	}
	return u
}
