package dialect

import "strings"

// problem is the first field of a body that a server may read in another way than this package
// does, and what the field must be. The zero problem means that there is none.
type problem struct{ field, must string }

func (w problem) String() string {
	if w.field == "" {
		return ""
	}
	return `the field "` + w.field + `" ` + w.must
}

// misread records that a part of a field is not as it must be, if the API has the field.
func (r *requestReader) misread(f *field, part, must string) {
	if r.problem.field == "" && f.isOf(r.protocol) {
		r.problem = problem{part, must}
	}
}

// flag reads a value that should be true, false or null.
func (r *requestReader) flag(f *field, part string) []byte {
	word := r.word()
	switch string(word) {
	case "true", "false", "null":
	default:
		r.misread(f, part, "must be true or false")
	}
	return word
}

// whole reads a value that should be a whole number or null, which reads as 0. A number below 1 reads as noBound.
func (r *requestReader) whole(f *field, part string) int {
	isNull := r.next() == 'n'
	n, ok := r.count()
	if !ok {
		r.misread(f, part, "must be a whole number")
	}
	if n == 0 && !isNull {
		return noBound
	}
	return n
}

// noBound is a number of tokens below 1. Some servers take it for no bound at all, whatever another bound says.
const noBound = -1

// object moves into an object, and reports whether there is one. It skips any other value, which
// should be null.
func (r *requestReader) object(f *field, part string) bool {
	if r.next() == '{' {
		r.at++
		return true
	}
	if word := r.word(); string(word) != "null" {
		r.misread(f, part, "must be an object")
	}
	return false
}

// checkSpelling records a field that the body has twice, since some servers use the first and some
// the last, and a field whose name is known but for its case, since some servers ignore case. The
// model has a rule of its own, see [Request.Ambiguous]; lists of fallbacks have several names; and a
// user concerns the caller alone.
func (r *requestReader) checkSpelling(key []byte, f *field) {
	if f == nil {
		known := foldedField(key)
		switch {
		case known == nil, known.kind == fieldUser:
		case known.kind == fieldModel:
			r.ambiguous = true
		case r.problem.field == "":
			r.problem = problem{folded(key), "must be written in lower case"}
		}
		return
	}
	if r.seen.has(f) && f.kind != fieldModel && f.kind != fieldFallbacks && f.kind != fieldUser && f.kind != fieldStored && r.problem.field == "" {
		r.problem = problem{string(key), "must stand in the body once"}
	}
	r.seen.add(f)
}

// maxFieldName is the length of the longest name of a field, with room for letters that fold to
// shorter ones.
const maxFieldName = 2 * len("max_completion_tokens")

// foldedField returns the field whose name is a key in upper or mixed case, or nil.
func foldedField(key []byte) *field {
	if len(key) > maxFieldName {
		return nil
	}
	for _, b := range key {
		if b >= 'A' && b <= 'Z' || b >= 0x80 {
			return fields[folded(key)]
		}
	}
	return nil // the key is in lower case
}

// folded returns a key in lower case. Go's JSON decoder takes ſ for s and the Kelvin sign for k.
func folded(key []byte) string { return strings.ToLower(strings.ToUpper(string(key))) }

// checkUsageSpelling records a member of stream_options whose name is include_usage but for its
// case.
func (r *requestReader) checkUsageSpelling(f *field, key []byte) {
	if len(key) <= maxFieldName && folded(key) == "include_usage" {
		r.misread(f, "include_usage", "must be written in lower case")
	}
}
