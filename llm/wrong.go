package llm

import "strings"

// wrong is the first field of a body that a server may read in another way than this
// package does, and what the field must be. The zero wrong is none.
type wrong struct{ field, must string }

func (w wrong) String() string {
	if w.field == "" {
		return ""
	}
	return `the field "` + w.field + `" ` + w.must
}

// mistake notes that a part of a field is not what it must be, if the API has the field.
func (r *requestReader) mistake(f field, part, must string) {
	if r.wrong.field == "" && r.endpoint.API.has(f) {
		r.wrong = wrong{part, must}
	}
}

// has reports whether requests of the API have a setting. One that they do not have is
// ignored by whoever serves the request, whatever its value.
func (a API) has(f field) bool {
	switch f {
	case fieldStream, fieldStreamOptions:
		return a.generates() && a != Generate && a != Converse && a != Invoke
	case fieldMaxTokens:
		return a == Chat || a == Completions || a == Messages || a == CohereChat || a == Invoke
	case fieldMaxCompletionTokens:
		return a == Chat || a == Invoke
	case fieldMaxOutputTokens:
		return a == Responses
	case fieldN:
		return a == Chat || a == Completions || a == Invoke
	case fieldBestOf:
		return a == Completions
	case fieldOptions:
		return a == OllamaChat || a == OllamaGenerate
	case fieldGenerationConfig:
		return a == Generate
	case fieldInferenceConfig:
		return a == Converse || a == Invoke
	case fieldMaxGenLen, fieldTextGenerationConfig:
		return a == Invoke
	}
	return f == fieldModel
}

// flag reads a value that should be true, false or null.
func (r *requestReader) flag(f field, part string) []byte {
	word := r.word()
	switch string(word) {
	case "true", "false", "null":
	default:
		r.mistake(f, part, "must be true or false")
	}
	return word
}

// whole reads a value that should be a whole number or null.
func (r *requestReader) whole(f field, part string) int {
	n, ok := r.count()
	if !ok {
		r.mistake(f, part, "must be a whole number")
	}
	return n
}

// object moves into an object, and reports whether there is one. Any other value is
// skipped; it should be null.
func (r *requestReader) object(f field, part string) bool {
	if r.next() == '{' {
		r.at++
		return true
	}
	if word := r.word(); string(word) != "null" {
		r.mistake(f, part, "must be an object")
	}
	return false
}

// spell notes a field that the body has twice, for some servers take the first and some
// the last, and one whose name is known but for its case, for which some servers do not
// care. The model has a rule of its own, see [Request.Ambiguous]; lists of fallbacks go
// by several names.
func (r *requestReader) spell(key []byte, f field) {
	switch f {
	case fieldModel, fieldFallbacks:
	case fieldUnknown:
		known := foldedField(key)
		r.ambiguous = r.ambiguous || known == fieldModel
		if known != fieldUnknown && known != fieldModel && r.wrong.field == "" {
			r.wrong = wrong{folded(key), "must be written in lower case"}
		}
	default:
		if r.seen&(1<<f) != 0 && r.wrong.field == "" {
			r.wrong = wrong{string(key), "must stand in the body once"}
		}
		r.seen |= 1 << f
	}
}

// longestField is the length of the longest name of a field in lower case, with room
// for letters that fold to shorter ones.
const longestField = 2 * len("max_completion_tokens")

// foldedField returns the field that a key is if its case does not matter.
func foldedField(key []byte) field {
	if len(key) > longestField {
		return fieldUnknown
	}
	for _, b := range key {
		if b >= 'A' && b <= 'Z' || b >= 0x80 {
			return fieldOf([]byte(folded(key)))
		}
	}
	return fieldUnknown // it is in lower case already
}

// folded returns a key in lower case. To Go's decoder of JSON, the letters ſ and K are
// an s and a k.
func folded(key []byte) string { return strings.ToLower(strings.ToUpper(string(key))) }

// spellUsage notes a member of stream_options that is include_usage but for its case.
func (r *requestReader) spellUsage(key []byte) {
	if len(key) <= longestField && folded(key) == "include_usage" {
		r.mistake(fieldStreamOptions, "include_usage", "must be written in lower case")
	}
}
