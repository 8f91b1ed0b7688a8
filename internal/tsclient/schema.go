package tsclient

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// typeOf returns the type of what a schema describes.
func (w *writer) typeOf(schema object, indent string) string {
	for _, name := range []string{"allOf", "not", "if", "prefixItems", "patternProperties"} {
		if schema[name] != nil {
			w.faultf("a schema has %s, which is not supported", name)
		}
	}
	switch {
	case schema["$ref"] != nil:
		ref, _ := schema["$ref"].(string)
		return strings.TrimPrefix(ref, "#/components/schemas/")
	case schema["enum"] != nil:
		return union(w.list(schema["enum"]), literal)
	case schema["const"] != nil:
		return literal(schema["const"])
	case schema["oneOf"] != nil || schema["anyOf"] != nil:
		return union(append(w.list(schema["oneOf"]), w.list(schema["anyOf"])...), func(each any) string { return w.typeOf(w.object(each), indent) })
	}
	switch of := schema["type"].(type) {
	case nil:
		return "unknown"
	case string:
		return w.typeNamed(of, schema, indent)
	case []any:
		return union(of, func(each any) string { return w.typeNamed(fmt.Sprint(each), schema, indent) })
	}
	w.faultf("the type %v is not supported", schema["type"])
	return ""
}

// list returns a value that must be a list, or nothing.
func (w *writer) list(value any) []any {
	list, ok := value.([]any)
	if !ok && value != nil {
		w.faultf("%v is no list", value)
	}
	return list
}

// union returns a type that is any of some.
func union(of []any, each func(any) string) string {
	var all []string
	for _, one := range of {
		all = append(all, each(one))
	}
	return strings.Join(slices.Compact(all), " | ")
}

func literal(value any) string {
	text, _ := json.Marshal(value) // a literal of JSON is one of TypeScript
	return string(text)
}

// typeNamed returns the type for one of the types of JSON Schema.
func (w *writer) typeNamed(name string, schema object, indent string) string {
	switch name {
	case "string", "boolean", "null", "number":
		return name
	case "integer":
		return "number"
	case "array":
		if schema["items"] == nil {
			return "unknown[]"
		}
		return "Array<" + w.typeOf(w.object(schema["items"]), indent) + ">"
	case "object":
		return w.objectType(schema, indent)
	}
	w.faultf("the type %q is not supported", name)
	return ""
}

// objectType returns the type of an object: an interface of its properties, or a record if they have any
// name.
func (w *writer) objectType(schema object, indent string) string {
	if schema["properties"] == nil {
		if each, ok := schema["additionalProperties"].(object); ok {
			return "Record<string, " + w.typeOf(each, indent) + ">"
		}
		return "Record<string, unknown>"
	}
	required := w.list(schema["required"])
	properties := w.object(schema["properties"])
	to := &writer{doc: w.doc}
	to.WriteString("{\n")
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property, optional := to.object(properties[name]), "?"
		if slices.Contains(required, any(name)) {
			optional = ""
		}
		to.comment(indent+"  ", property["description"])
		fmt.Fprintf(to, "%s  %s%s: %s;\n", indent, propertyName(name), optional, to.typeOf(property, indent+"  "))
	}
	to.WriteString(indent + "}")
	if to.err != nil {
		w.faultf("%w", to.err)
	}
	return to.String()
}

// identifier matches the names that need no quotes.
var identifier = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]*$`)

func propertyName(name string) string {
	if identifier.MatchString(name) {
		return name
	}
	return literal(name)
}
