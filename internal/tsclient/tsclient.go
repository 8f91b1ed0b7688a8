// Package tsclient makes a TypeScript client of an OpenAPI document. It knows as much of OpenAPI 3.1 as
// the document of the admin API uses, and refuses the rest.
package tsclient

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// runtime is the part of the client that every API needs.
//
//go:embed runtime.ts
var runtime string

// object is an object of the document.
type object = map[string]any

// writer writes the client. The first fault of the document stays in err.
type writer struct {
	bytes.Buffer
	doc object
	err error
}

// Generate returns the client of a document, which is JSON.
func Generate(document []byte) ([]byte, error) {
	w := &writer{}
	if err := json.Unmarshal(document, &w.doc); err != nil {
		return nil, fmt.Errorf("ratelimit: the OpenAPI document: %w", err)
	}
	info := w.object(w.doc["info"])
	fmt.Fprintf(w, "// The client of %s, version %s. It is generated from the OpenAPI document: do not edit it.\n\n", info["title"], info["version"])
	w.schemas()
	w.WriteString("\n" + runtime + "\n")
	w.client()
	if w.err != nil {
		return nil, w.err
	}
	return w.Bytes(), nil
}

// faultf notes a fault of the document.
func (w *writer) faultf(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("ratelimit: the OpenAPI document: "+format, args...)
	}
}

// object returns a value that must be an object.
func (w *writer) object(value any) object {
	o, ok := value.(object)
	if !ok {
		w.faultf("%v is no object", value)
	}
	return o
}

// follow returns what a reference to a component leads to, or the value itself.
func (w *writer) follow(value any) object {
	o := w.object(value)
	ref, ok := o["$ref"].(string)
	if !ok {
		return o
	}
	at := any(w.doc)
	for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		at = w.object(at)[name]
	}
	return w.object(at)
}

// schemas writes a type for each schema of the document.
func (w *writer) schemas() {
	all := w.object(w.object(w.doc["components"])["schemas"])
	for _, name := range slices.Sorted(maps.Keys(all)) {
		schema := w.object(all[name])
		w.comment("", schema["description"])
		fmt.Fprintf(w, "export type %s = %s;\n\n", name, w.typeOf(schema, ""))
	}
}

// comment writes a description as a comment, if there is one.
func (w *writer) comment(indent string, description any) {
	if text, ok := description.(string); ok {
		fmt.Fprintf(w, "%s/** %s */\n", indent, strings.ReplaceAll(text, "*/", "*\u200b/"))
	}
}
