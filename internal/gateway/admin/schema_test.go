package admin

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
)

// object is a JSON object.
type object = map[string]any

// parsedOpenAPI is the OpenAPI document, which no test changes.
var parsedOpenAPI = sync.OnceValues(func() (doc object, err error) {
	err = json.Unmarshal(openAPI, &doc)
	return doc, err
})

// document returns the OpenAPI document.
func document(t testing.TB) object {
	t.Helper()
	doc, err := parsedOpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// resolve returns the part of the document that a reference names.
func resolve(doc object, ref string) (any, error) {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil, fmt.Errorf("%s leads out of the document", ref)
	}
	var at any = doc
	for part := range strings.SplitSeq(path, "/") {
		inside, _ := at.(object)
		if at, ok = inside[part]; !ok {
			return nil, fmt.Errorf("%s leads nowhere", ref)
		}
	}
	return at, nil
}

// rule checks a value by one keyword of a schema.
type rule func(v *validator, value, word any, schema object) error

// words are all keywords of JSON Schema that the document may use. Keywords without a rule
// do not restrict values.
var words map[string]rule

func init() { // not in the declaration, because rules refer to words
	words = map[string]rule{
		"$ref":                 (*validator).ref,
		"oneOf":                (*validator).oneOf,
		"type":                 (*validator).kind,
		"enum":                 (*validator).enum,
		"const":                (*validator).constant,
		"minimum":              (*validator).minimum,
		"maximum":              (*validator).maximum,
		"minLength":            (*validator).minLength,
		"maxLength":            (*validator).maxLength,
		"pattern":              (*validator).pattern,
		"format":               (*validator).format,
		"items":                (*validator).items,
		"maxItems":             (*validator).maxItems,
		"required":             (*validator).required,
		"properties":           (*validator).properties,
		"additionalProperties": (*validator).additional,
		"description":          nil,
		"default":              nil,
		"examples":             nil,
	}
}

// validator checks values against the schemas of a document.
type validator struct{ doc object }

// validate returns how a value violates a schema, or nil.
func (v *validator) validate(value, schema any) error {
	rules, ok := schema.(object)
	if !ok {
		return fmt.Errorf("the schema is no object: %v", schema)
	}
	for word, says := range rules {
		check, known := words[word]
		if !known {
			return fmt.Errorf("the schema has an unknown word %q", word)
		}
		if check == nil {
			continue
		}
		if err := check(v, value, says, rules); err != nil {
			return err
		}
	}
	return nil
}

func (v *validator) ref(value, word any, _ object) error {
	schema, err := resolve(v.doc, word.(string))
	if err != nil {
		return err
	}
	return v.validate(value, schema)
}

func (v *validator) oneOf(value, word any, _ object) error {
	fits := 0
	var last error
	for _, schema := range word.([]any) {
		if err := v.validate(value, schema); err != nil {
			last = err
		} else {
			fits++
		}
	}
	if fits != 1 {
		return fmt.Errorf("%v fits %d of the schemas, and not one: %v", value, fits, last)
	}
	return nil
}

func (v *validator) kind(value, word any, _ object) error {
	var allowed []any
	if list, ok := word.([]any); ok {
		allowed = list
	} else {
		allowed = []any{word}
	}
	got := kindOf(value)
	if slices.Contains(allowed, any(got)) || got == "integer" && slices.Contains(allowed, any("number")) {
		return nil
	}
	return fmt.Errorf("%v is of type %s: want %v", value, got, allowed)
}

func kindOf(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64:
		if value == math.Trunc(value) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	default:
		return "object"
	}
}

func (v *validator) enum(value, word any, _ object) error {
	if !slices.Contains(word.([]any), value) {
		return fmt.Errorf("%v is none of %v", value, word)
	}
	return nil
}

func (v *validator) constant(value, word any, _ object) error {
	if !reflect.DeepEqual(value, word) {
		return fmt.Errorf("%v is not %v", value, word)
	}
	return nil
}

func (v *validator) minimum(value, word any, _ object) error {
	if n, ok := value.(float64); ok && n < word.(float64) {
		return fmt.Errorf("%v is less than %v", value, word)
	}
	return nil
}

func (v *validator) maximum(value, word any, _ object) error {
	if n, ok := value.(float64); ok && n > word.(float64) {
		return fmt.Errorf("%v is more than %v", value, word)
	}
	return nil
}

func (v *validator) minLength(value, word any, _ object) error {
	if s, ok := value.(string); ok && utf8.RuneCountInString(s) < int(word.(float64)) {
		return fmt.Errorf("%q is shorter than %v", s, word)
	}
	return nil
}

func (v *validator) maxLength(value, word any, _ object) error {
	if s, ok := value.(string); ok && utf8.RuneCountInString(s) > int(word.(float64)) {
		return fmt.Errorf("%q is longer than %v", s, word)
	}
	return nil
}

func (v *validator) pattern(value, word any, _ object) error {
	if s, ok := value.(string); ok && !regexp.MustCompile(word.(string)).MatchString(s) {
		return fmt.Errorf("%q does not match %v", s, word)
	}
	return nil
}

func (v *validator) format(value, word any, _ object) error {
	s, ok := value.(string)
	if !ok {
		return nil
	}
	switch word {
	case "date-time":
		at, err := time.Parse(time.RFC3339Nano, s)
		if err == nil && at.Location() != time.UTC {
			err = fmt.Errorf("%s is not in UTC", s)
		}
		return err
	case "uri", "uri-reference":
		_, err := url.Parse(s)
		return err
	}
	return fmt.Errorf("unknown format %v", word)
}

func (v *validator) items(value, word any, _ object) error {
	list, _ := value.([]any)
	for i, each := range list {
		if err := v.validate(each, word); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return nil
}

func (v *validator) maxItems(value, word any, _ object) error {
	if list, ok := value.([]any); ok && len(list) > int(word.(float64)) {
		return fmt.Errorf("there are %d: at most %v may be", len(list), word)
	}
	return nil
}

func (v *validator) required(value, word any, _ object) error {
	fields, ok := value.(object)
	for _, name := range word.([]any) {
		if _, there := fields[name.(string)]; ok && !there {
			return fmt.Errorf("there is no %v", name)
		}
	}
	return nil
}

func (v *validator) properties(value, word any, _ object) error {
	fields, _ := value.(object)
	for name, schema := range word.(object) {
		field, there := fields[name]
		if !there {
			continue
		}
		if err := v.validate(field, schema); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (v *validator) additional(value, word any, schema object) error {
	fields, _ := value.(object)
	listed, _ := schema["properties"].(object)
	for name, field := range fields {
		if _, there := listed[name]; there {
			continue
		}
		if word == false {
			return fmt.Errorf("there is a field %q, which the schema has not", name)
		}
		if err := v.validate(field, word); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func TestValidator(t *testing.T) {
	v := &validator{object{"components": object{"positive": object{"type": "integer", "minimum": 1.}}}}
	for _, c := range []struct {
		schema, value string
		fine          bool
	}{
		{`{}`, `1`, true},
		{`{"type": "integer"}`, `1`, true},
		{`{"type": "integer"}`, `1.5`, false},
		{`{"type": "number"}`, `1`, true},
		{`{"type": ["array", "null"]}`, `null`, true},
		{`{"type": ["array", "null"]}`, `{}`, false},
		{`{"type": "boolean"}`, `"true"`, false},
		{`{"$ref": "#/components/positive"}`, `1`, true},
		{`{"$ref": "#/components/positive"}`, `0`, false},
		{`{"$ref": "#/components/none"}`, `1`, false},
		{`{"$ref": "elsewhere"}`, `1`, false},
		{`{"oneOf": [{"type": "null"}, {"type": "string"}]}`, `"a"`, true},
		{`{"oneOf": [{"type": "null"}, {"type": "string"}]}`, `1`, false},
		{`{"oneOf": [{}, {"type": "string"}]}`, `"a"`, false},
		{`{"enum": ["a", "b"]}`, `"b"`, true},
		{`{"enum": ["a", "b"]}`, `"c"`, false},
		{`{"const": "a"}`, `"a"`, true},
		{`{"const": "a"}`, `"b"`, false},
		{`{"maximum": 3}`, `3`, true},
		{`{"maximum": 3}`, `4`, false},
		{`{"minLength": 1}`, `""`, false},
		{`{"maxLength": 2}`, `"µµ"`, true},
		{`{"maxLength": 2}`, `"abc"`, false},
		{`{"pattern": "^a"}`, `"ba"`, false},
		{`{"format": "date-time"}`, `"2026-03-01T12:00:00.5Z"`, true},
		{`{"format": "date-time"}`, `"2026-03-01T12:00:00+01:00"`, false},
		{`{"format": "date-time"}`, `"yesterday"`, false},
		{`{"format": "colour"}`, `"red"`, false},
		{`{"items": {"type": "string"}}`, `["a", 1]`, false},
		{`{"maxItems": 1}`, `["a", "b"]`, false},
		{`{"required": ["a"]}`, `{"a": null}`, true},
		{`{"required": ["a"]}`, `{"b": 1}`, false},
		{`{"properties": {"a": {"type": "string"}}}`, `{"a": 1}`, false},
		{`{"properties": {"a": {}}, "additionalProperties": false}`, `{"a": 1}`, true},
		{`{"properties": {"a": {}}, "additionalProperties": false}`, `{"a": 1, "b": 1}`, false},
		{`{"additionalProperties": {"type": "string"}}`, `{"b": 1}`, false},
		{`{"unknown": 1}`, `1`, false},
	} {
		var schema, value any
		if err := json.Unmarshal([]byte(c.schema), &schema); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(c.value), &value); err != nil {
			t.Fatal(err)
		}
		if err := v.validate(value, schema); (err == nil) != c.fine {
			t.Errorf("%s by %s: %v", c.value, c.schema, err)
		}
	}
}
