package admin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/kind"
)

// merge applies a JSON merge patch (RFC 7396) to a document: null removes a field, and a field that the
// patch does not have stays. It refuses fields that T does not have, and 0 for a limit: whoever sends that
// may mean either of two things. stopped is what "paused" stops, for the text of that refusal.
func merge[T any](before T, patch []byte, stopped string) (after T, err error) {
	document, err := json.Marshal(before)
	if err != nil {
		return after, err
	}
	m := merger{stopped}
	document, err = m.object(document, patch, reflect.TypeFor[T](), "")
	if err != nil {
		return after, err
	}
	d := json.NewDecoder(bytes.NewReader(document))
	d.DisallowUnknownFields()
	if err := d.Decode(&after); err != nil {
		return after, problemf(http.StatusBadRequest, "the body: %s", bodyFault(err, reflect.TypeFor[T]()))
	}
	return after, nil
}

type merger struct{ stopped string }

// object merges a patch into an object with the fields of a type. path is the name of the object in the
// document, with a dot behind it, or "".
func (m *merger) object(document, patch []byte, of reflect.Type, path string) ([]byte, error) {
	merged := map[string]json.RawMessage{}
	if document != nil {
		if err := json.Unmarshal(document, &merged); err != nil {
			return nil, err
		}
	}
	asked, err := membersOf(patch)
	if err != nil {
		return nil, err
	}
	for _, member := range asked {
		field, ok := fieldNamed(of, member.name)
		switch name := path + member.name; {
		case !ok:
			return nil, problemf(http.StatusBadRequest, "the body: unknown field %.80q: the fields are %s", name, fields(of))
		case string(member.value) == "null":
			delete(merged, member.name)
		case member.value[0] == '{' && isPlainStruct(field.Type):
			if merged[member.name], err = m.object(merged[member.name], member.value, field.Type, name+"."); err != nil {
				return nil, err
			}
		case IsAmount(member.name) && isZero(member.value):
			return nil, problemf(http.StatusBadRequest, "the body: %s: 0 is not allowed: leave it empty (null) for no limit, or pause the %s", name, m.stopped)
		default:
			merged[member.name] = member.value
		}
	}
	return json.Marshal(merged)
}

// member is a field of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// membersOf returns the fields of a valid JSON object, in their order. A field that is there twice, in any
// case of letters, is an error.
func membersOf(object []byte) (all []member, err error) {
	d := json.NewDecoder(bytes.NewReader(object))
	d.Token() // the opening brace
	for d.More() {
		token, _ := d.Token()
		m := member{name: token.(string)}
		if slices.ContainsFunc(all, func(other member) bool { return strings.EqualFold(m.name, other.name) }) {
			return nil, problemf(http.StatusBadRequest, "the body: duplicate field %.80s", m.name)
		}
		if len(all) == maxMembers {
			return nil, problemf(http.StatusBadRequest, "the body has more than %d fields", maxMembers)
		}
		d.Decode(&m.value)
		all = append(all, m)
	}
	return all, nil
}

// maxMembers is how many fields an object in a patch may have. It is more than any document has, and few
// enough to compare each with every other.
const maxMembers = 100

// fieldNamed returns the field of a struct that has a name in JSON.
func fieldNamed(of reflect.Type, name string) (reflect.StructField, bool) {
	for _, f := range reflect.VisibleFields(of) {
		if inJSON, _, _ := strings.Cut(f.Tag.Get("json"), ","); !f.Anonymous && inJSON == name && name != "-" {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// isPlainStruct reports whether JSON has an object with the fields of a type for its values.
func isPlainStruct(of reflect.Type) bool {
	return of.Kind() == reflect.Struct && !reflect.PointerTo(of).Implements(reflect.TypeFor[json.Unmarshaler]())
}

// IsAmount reports whether a field of a quota or of a limit is an amount that limits.
func IsAmount(name string) bool {
	_, ok := kind.Named(name)
	return ok
}

// isZero reports whether a JSON value is the number 0, or a string of it.
func isZero(value json.RawMessage) bool {
	n, err := strconv.ParseFloat(strings.Trim(string(value), `"`), 64)
	return err == nil && n == 0
}

// FieldChange is a field that a change would change. A field without a value is null.
type FieldChange struct {
	Field  string `json:"field"`
	Before any    `json:"before"`
	After  any    `json:"after"`
}

// changesOf returns the fields in which two documents differ, and those that limit something before and
// not after. Fields of objects in a document are named with a dot: limit.requests_per_minute.
func changesOf(before, after any) (changed []FieldChange, lifted []string) {
	old, next := map[string]any{}, map[string]any{}
	flatten(before, old)
	flatten(after, next)
	names := map[string]bool{}
	for name := range old {
		names[name] = true
	}
	for name := range next {
		names[name] = true
	}
	changed, lifted = []FieldChange{}, []string{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if b, a := old[name], next[name]; !reflect.DeepEqual(b, a) {
			changed = append(changed, FieldChange{name, b, a})
			last := name[strings.LastIndexByte(name, '.')+1:]
			if (IsAmount(last) || last == "max_share") && a == nil {
				lifted = append(lifted, name)
			}
		}
	}
	return changed, lifted
}

// flatten enters the fields of a document under their names. It leaves out limits that are 0, which are
// none.
func flatten(document any, to map[string]any) {
	text, err := json.Marshal(document)
	if err != nil {
		panic(err) // all documents are types that marshal
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value map[string]any
	if err := d.Decode(&value); err != nil {
		panic(err)
	}
	enter("", value, to)
}

func enter(path string, object, to map[string]any) {
	for name, value := range object {
		inner, nested := value.(map[string]any)
		switch {
		case nested:
			enter(path+name+".", inner, to)
		case IsAmount(name) && fmt.Sprint(value) == "0":
		default:
			to[path+name] = value
		}
	}
}
