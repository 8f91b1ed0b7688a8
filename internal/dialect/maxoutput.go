package dialect

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// DefaultFitMin is the least max_tokens of an answer to which a call is fitted if nobody has set another: see the
// setting fit_min of the gateway, and llmhttp.Fit.
const DefaultFitMin = 256

// SetMaxOutput lowers the most tokens that one answer to the request may have: every bound in the body that is higher,
// by whichever name its API has. A body without a bound gets one. The body itself stays as it is: [Request.Edited]
// returns it with the new bound. ok is false, and nothing has changed, if the API has no such field, or nobody knows
// which one the model reads.
func (r *Request) SetMaxOutput(body []byte, tokens int) (ok bool) {
	if len(body) != r.size || !r.API.Generates() || tokens <= 0 || r.overrides {
		return false
	}
	if r.MaxOutput > 0 {
		tokens = min(tokens, r.MaxOutput) // never more than the request itself allows
	}
	b := readBounds(r, body)
	edits, ok := b.lower(r, tokens)
	if ok { // a bound that a server may read in another way is none
		again, err := r.Endpoint.Read(slices.Concat(spliced(body, edits)...))
		ok = err == nil && again.MaxOutput > 0 && again.MaxOutput <= tokens
	}
	if ok {
		r.boundSplices, r.MaxOutput = &edits, tokens
	}
	return ok
}

// Edited returns the body with what [Request.SetMaxOutput] has changed, in pieces that are sent one after another: they
// share the memory of the body. ok is false if nothing has.
func (r *Request) Edited(body []byte) (pieces [][]byte, ok bool) {
	if r.boundSplices == nil || len(body) != r.size {
		return nil, false
	}
	return spliced(body, *r.boundSplices), true
}

// MaxOutputName returns the name of the field that bounds an answer, for people.
func (r *Request) MaxOutputName() string {
	_, name := r.boundField()
	if r.oldBound {
		name = "max_tokens"
	}
	return cmp.Or(name, "max_tokens")
}

// ThinkingBudget returns how many tokens of each answer the body sets aside for thinking, or 0 for none. Anthropic
// refuses a request whose max_tokens is not higher, and with other providers no answer would be left.
func (r *Request) ThinkingBudget(body []byte) int { return readBounds(r, body).thinking }

// boundField returns the name of the field that bounds an answer in the API of the request, and the name of the object
// that has it, if it is not in the body itself. name is empty if the API has none, or several.
func (r *Request) boundField() (object, name string) {
	p := r.API.protocol()
	return p.boundObject, cmp.Or(dialectOf(r.Provider).boundNames[r.API], p.boundName)
}

// A boundReader finds the fields of a body that bound its answers.
type boundReader struct {
	cursor
	request  *Request
	bounds   []bound
	start    int                     // behind the brace of the body
	filled   bool                    // the body has a field
	objects  map[string]*boundObject // the objects that have bounds, or could have them
	thinking int                     // the highest budget for thinking
}

// A bound is the value of a field that bounds answers.
type bound struct {
	at     splice
	name   string
	tokens int  // 0: it is no number of tokens
	null   bool // it is null, or missing
}

// A boundObject is an object of the body that may have a bound.
type boundObject struct {
	name   string // as the body has it
	at     splice // the value as a whole
	null   bool   // it is null
	inside int    // behind its brace; 0: it is no object
	filled bool   // it has a field
}

func readBounds(r *Request, body []byte) *boundReader {
	b := &boundReader{cursor: cursor{body: body}, request: r, objects: map[string]*boundObject{}}
	if i := slices.Index(body, '{'); i >= 0 {
		b.at, b.start = i+1, i+1
	}
	p := r.API.protocol()
	for first := true; b.start > 0 && b.item(first, '}'); first = false {
		b.filled = true
		key := string(b.key())
		b.next()
		switch f := fields[key]; {
		case f != nil && f.isOf(p) && f.kind == fieldNumber && f.setting.isBound():
			b.bound(key)
		case f != nil && f.isOf(p) && f.kind == fieldObject:
			b.object(f, key)
		case isThinking(key):
			b.budgets(key, 0)
		default:
			b.skip()
		}
	}
	return b
}

// bound reads the value of a field that bounds answers.
func (b *boundReader) bound(name string) {
	from := b.at
	word := b.word()
	n, ok := whole(word)
	if !ok {
		n = 0
	}
	b.bounds = append(b.bounds, bound{splice{from: from, to: b.at}, name, int(n), string(word) == "null"})
}

// object reads an object that may have a bound.
func (b *boundReader) object(f *field, key string) {
	m := &boundObject{name: key, at: splice{from: b.at}}
	b.objects[f.name] = m
	if b.next() != '{' {
		m.null = string(b.word()) == "null"
		m.at.to = b.at
		return
	}
	b.at++
	m.inside = b.at
	for first := true; b.item(first, '}'); first = false {
		m.filled = true
		name := string(b.key())
		b.next()
		i := slices.IndexFunc(f.parts, func(p part) bool { return p.name == name })
		switch {
		case i >= 0 && slices.Contains(b.request.API.protocol().bounds, f.parts[i].setting):
			b.bound(name)
		case isThinking(name):
			b.budgets(name, 0)
		default:
			b.skip()
		}
	}
}

// What the dialects call a budget for thinking, and the fields that may have one: in themselves, or in an object in them
// alone.
var (
	thinkingObjects = map[string]bool{}
	thinkingBudgets = map[string]bool{}
)

// isThinking reports whether a field may have a budget for thinking.
func isThinking(name string) bool {
	_, ok := thinkingObjects[name]
	return ok
}

// budgets reads an object that may have a budget for thinking, in it or in an object in it.
func (b *boundReader) budgets(key string, depth int) {
	if b.next() != '{' || depth > 1 {
		b.skip()
		return
	}
	b.at++
	for first := true; b.item(first, '}'); first = false {
		name := string(b.key())
		switch {
		case thinkingBudgets[name] && thinkingObjects[key]:
			if n, ok := whole(b.word()); ok {
				b.thinking = max(b.thinking, int(n))
			}
		case isThinking(name):
			b.budgets(name, depth+1)
		default:
			b.skip()
		}
	}
}

// lower returns the edits that lower all bounds to so many tokens, or that add one.
func (b *boundReader) lower(r *Request, tokens int) (edits []splice, ok bool) {
	if b.err != nil || b.start == 0 {
		return nil, false
	}
	object, name := r.boundField()
	text, bounded := strconv.Itoa(tokens), false
	for _, has := range b.bounds {
		if has.null && has.name != name {
			continue
		}
		bounded = true
		if has.null || has.tokens == 0 || has.tokens > tokens {
			edits = append(edits, splice{has.at.from, has.at.to, text})
		}
	}
	switch {
	case bounded:
		return edits, true
	case name == "":
		return nil, false
	case object == "":
		return []splice{b.added(`"`+name+`":`+text, b.start, b.filled)}, true
	}
	m := b.objects[fields[object].name]
	if m == nil {
		return []splice{b.added(`"`+object+`":{"`+name+`":`+text+`}`, b.start, b.filled)}, true
	}
	if strings.Contains(m.name, "_") {
		name = fields[object].underscored(name)
	}
	switch {
	case m.inside == 0 && !m.null:
		return nil, false
	case m.null:
		return []splice{{m.at.from, m.at.to, `{"` + name + `":` + text + `}`}}, true
	}
	return []splice{b.added(`"`+name+`":`+text, m.inside, m.filled)}, true
}

// underscored returns the name with underscores of a part of the field, if it has one.
func (f *field) underscored(name string) string {
	i := slices.IndexFunc(f.parts, func(p part) bool { return p.name == name })
	for _, p := range f.parts {
		if i >= 0 && p.setting == f.parts[i].setting && strings.Contains(p.name, "_") {
			return p.name
		}
	}
	return name
}

// added returns the edit that adds a field at the beginning of an object, which may have others.
func (b *boundReader) added(text string, at int, filled bool) splice {
	if filled {
		text += ","
	}
	return splice{at, at, text}
}

// spliced returns a body with edits, which do not overlap, in pieces.
func spliced(body []byte, edits []splice) (pieces [][]byte) {
	edits = slices.SortedStableFunc(slices.Values(edits), func(a, b splice) int { return cmp.Compare(a.from, b.from) })
	at := 0
	for _, e := range edits {
		pieces = append(pieces, body[at:e.from], []byte(e.text))
		at = e.to
	}
	return append(pieces, body[at:])
}
