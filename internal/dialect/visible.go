package dialect

import (
	"bytes"
	"slices"
	"strings"
)

// Visible reports whether all output comes as text of a stream, so that [Meter.MostOutput] is a bound of it at any time.
// Reasoning that the provider keeps to itself, or only sums up, sound and pictures are not visible. A model of a
// provider that hides the reasoning of its models is visible only if it is known to have none.
func (r *Request) Visible() bool {
	if !r.Stream || r.Background || r.hides || !r.API.Generates() {
		return false
	}
	model := strings.ToLower(r.Model)
	names := func(parts []string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(model, part) })
	}
	switch {
	case names(silent):
		return false
	case r.API.protocol().showsThoughts:
		return true
	case dialectOf(r.Provider).hidesReasoning:
		return names(unreasoning)
	}
	return !names(secretive)
}

// Counted reports whether each event of the stream has the count of all tokens that have come, so that
// [Meter.MostOutput] is not the length of the text.
func (r *Request) Counted() bool { return r.API.protocol().countsEach }

// Parts of the names of models, whichever server passes their calls on.
var (
	silent      []string // their answers are no text, or not all of them
	unreasoning []string // they do not reason before they answer
	secretive   []string // they hide their reasoning
)

// hidesOutput reads a field that may make the answers have output which no text shows, and reports whether it does.
func (r *requestReader) hidesOutput(f *field) bool {
	from := r.at
	r.skip()
	value := string(bytes.Join(bytes.Fields(r.body[from:r.at]), nil))
	if value == "null" || !f.isOf(r.protocol) {
		return false
	}
	if f.overrides { // settings in the model's own format, which may have escapes
		r.overrides = r.overrides || strings.Contains(value, "max") || strings.Contains(value, `\`)
	}
	return !slices.Contains(f.harmless, value)
}
