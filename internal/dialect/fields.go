package dialect

import (
	"fmt"
	"slices"
)

// A field is a field of a request body that this package reads. The dialects register the fields that they have, for
// one API or for all. No two APIs use one name for different things, so a field is read wherever it comes; it is a
// setting only of the APIs that have it.
type field struct {
	name string
	also string // another name of the field
	kind fieldKind

	setting   setting  // of a fieldNumber
	parts     []part   // of a fieldObject
	fixed     bool     // of a fieldContext: what it names does not change
	harmless  []string // of a fieldHiding: the values, without spaces, that hide no output
	overrides bool     // of a fieldHiding: it may put another bound in the place of the API's own
	searches  bool     // of a fieldStored: any value but null has the provider search the web
	storedIf  string   // of a fieldAll: a text with which it names something that the provider has stored or runs

	apis  apiSet
	index uint8 // in fieldSet
	cost  uint8 // in requestReader.spent; 0: it costs nothing
}

// A fieldKind is how the value of a field is read.
type fieldKind uint8

const (
	// Fields of the prompt.
	fieldTexts    fieldKind = iota // texts, and objects and lists of them
	fieldImages                    // images, or links to them
	fieldMessage                   // as fieldTexts, as one message
	fieldMessages                  // a list of messages; any other value is one message
	fieldPrompts                   // a list of prompts, of tokens or of messages; see promptReader.isMessage
	fieldTools                     // a list of definitions of tools
	fieldAll                       // every key, string and number counts as text

	// Settings.
	fieldModel
	fieldFallbacks // other models, one of which may answer
	fieldStream
	fieldStreamOptions
	fieldBackground
	fieldNumber
	fieldTier     // a service tier: a word, or an object with its type
	fieldSpeed    // a speed, which has prices like a service tier
	fieldObject   // an object with numbers, and with schemas, which count as text
	fieldUser     // the name of a user, or an object with one
	fieldContext  // the id of a stored context, or an object with one
	fieldStored   // what the provider has stored, fetches or runs
	fieldPredict  // a prediction of the answer
	fieldHiding   // may make output that no text shows: see hidesOutput
	fieldWord     // a word on which the price depends
	fieldTruncate // whether the provider leaves out a part of a prompt that is too long
)

// costs reports whether fields of the kind are a part of the prompt, or have one in them.
func (k fieldKind) costs() bool { return k <= fieldAll || k == fieldObject }

// A setting is a number of tokens or of answers that a body may have. The dialects make those that they read.
type setting uint8

// schema is no setting, but a part of an object that counts as text. Settings from firstWord on are words.
const (
	schema    setting = 0
	firstWord setting = 128
)

// roomForSettings bounds how many settings there are.
const roomForSettings = 32

var (
	lastSetting   setting
	boundSettings uint32 // has a bit for each setting that bounds the tokens of an answer
)

// newCount returns a setting that is a number of answers.
func newCount() setting {
	lastSetting++
	if lastSetting >= roomForSettings {
		panic("llm: roomForSettings must be higher")
	}
	return lastSetting
}

// newBound returns a setting that bounds the tokens of an answer.
func newBound() setting {
	s := newCount()
	boundSettings |= 1 << s
	return s
}

// isBound reports whether a setting bounds the tokens of an answer.
func (s setting) isBound() bool { return boundSettings>>s&1 != 0 }

// A part is a member of a field that is an object.
type part struct {
	name    string
	setting setting
}

// An apiSet has one bit for each API.
type apiSet uint64

const allAPIs = ^apiSet(0)

// A fieldSet has one bit for each field.
type fieldSet [2]uint64

// How many fields there may be, and how many of them may cost something.
const (
	roomForFields = len(fieldSet{}) * 64
	roomForCosts  = 56
)

func (s *fieldSet) has(f *field) bool { return s[f.index/64]>>(f.index%64)&1 != 0 }

func (s *fieldSet) add(f *field) { s[f.index/64] |= 1 << (f.index % 64) }

// fields maps names to fields. fieldList has them by their index, and costingFields is how many of them cost something.
var (
	fields        = map[string]*field{}
	fieldList     []*field
	costingFields uint8
)

// addFields adds fields of some APIs. A field that is there already gets their APIs and their parts.
func addFields(list []field, apis apiSet) {
	for _, f := range list {
		known := fields[f.name]
		if known == nil {
			known = newField(f)
		}
		if known.kind != f.kind || known.setting != f.setting {
			panic(fmt.Sprintf("llm: the field %q is registered twice, and not alike", f.name))
		}
		known.apis |= apis
		for _, p := range f.parts {
			if !slices.Contains(known.parts, p) {
				known.parts = append(known.parts, p)
			}
		}
	}
}

// newField adds a field.
func newField(f field) *field {
	f.index, f.parts = uint8(len(fieldList)), slices.Clone(f.parts)
	if f.kind.costs() {
		costingFields++
		f.cost = costingFields
	}
	if len(fieldList) >= roomForFields || costingFields >= roomForCosts {
		panic("llm: roomForFields or roomForCosts must be higher")
	}
	fieldList = append(fieldList, &f)
	fields[f.name] = &f
	if f.also != "" {
		fields[f.also] = &f
	}
	return &f
}

// isOf reports whether requests of an API have the field. Servers ignore a setting that they do not
// have, whatever its value.
func (f *field) isOf(p *protocol) bool { return f.apis&p.bit != 0 }

// Fields that many APIs have.
var (
	streamFields = []field{{name: "stream", kind: fieldStream}, {name: "stream_options", kind: fieldStreamOptions}}
	tierField    = field{name: "service_tier", also: "serviceTier", kind: fieldTier}
	maxTokensOf  = field{name: "max_tokens", kind: fieldNumber, setting: maxTokens}
	maxTokens    = newBound()
)
