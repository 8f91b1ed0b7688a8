package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const aboutAdmin = `# Every operation of the admin API

` + "`make docs`" + ` writes this page from the OpenAPI document that a gateway serves. [admin.md](../admin.md) is the guide,
with examples, errors and permissions.
`

// document is the part of an OpenAPI document that the page shows.
type document struct {
	Info  struct{ Description string }
	Tags  []struct{ Name, Description string }
	Paths map[string]map[string]json.RawMessage // by path, by method

	Components struct {
		Parameters map[string]parameter
		Responses  map[string]struct{ Description string }
		Schemas    map[string]*schema
	}
}

type operation struct {
	Tags                 []string
	Summary, Description string
	Parameters           []parameter
	RequestBody          struct{ Content map[string]media }
	Responses            map[string]response
}

type parameter struct {
	Ref         string `json:"$ref"`
	Name, In    string
	Description string
	Required    bool
	Schema      *schema
}

type response struct {
	Ref         string `json:"$ref"`
	Description string
	Content     map[string]media
}

type media struct{ Schema *schema }

type schema struct {
	Ref         string `json:"$ref"`
	Type        any
	Format      string
	Description string
	Enum        []any
	Const       any
	Items       *schema
	Properties  map[string]*schema
	Required    []string
	AllOf       []*schema
	AnyOf       []*schema
	OneOf       []*schema
}

var methods = []string{"get", "post", "put", "patch", "delete"}

func admin(root string) (string, error) {
	text, err := current(root, openAPI)
	if err != nil {
		return "", err
	}
	d := new(document)
	if err := json.Unmarshal([]byte(text), d); err != nil {
		return "", err
	}
	out := new(strings.Builder)
	out.WriteString(aboutAdmin + "\n" + wrap(d.Info.Description, ""))
	for _, tag := range d.Tags {
		fmt.Fprintf(out, "\n## %s\n", upper(tag.Name))
		if tag.Description != "" {
			out.WriteString("\n" + wrap(tag.Description, ""))
		}
		if err := d.writeOperations(out, tag.Name); err != nil {
			return "", err
		}
	}
	out.WriteString("\n## Types\n")
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		writeSchema(out, name, d.Components.Schemas[name])
	}
	return out.String(), nil
}

func (d *document) writeOperations(out *strings.Builder, tag string) error {
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range methods {
			text := d.Paths[path][method]
			if text == nil {
				continue
			}
			o := new(operation)
			if err := json.Unmarshal(text, o); err != nil {
				return fmt.Errorf("%s %s: %w", method, path, err)
			}
			if slices.Contains(o.Tags, tag) {
				d.writeOperation(out, strings.ToUpper(method)+" "+path, o)
			}
		}
	}
	return nil
}

func (d *document) writeOperation(out *strings.Builder, title string, o *operation) {
	fmt.Fprintf(out, "\n### %s\n\n%s\n", title, wrap(o.Summary+" "+o.Description, ""))
	for _, p := range o.Parameters {
		if name := last(p.Ref); name != "" {
			p = d.Components.Parameters[name]
		}
		needed := ""
		if p.Required && p.In != "path" {
			needed = ", required"
		}
		out.WriteString(wrap(fmt.Sprintf("- `%s` (%s%s): %s %s", p.Name, p.In, needed, p.Schema.kind(), p.Description), "  "))
	}
	for _, m := range o.RequestBody.Content {
		out.WriteString(wrap("- body: "+m.Schema.kind(), "  "))
	}
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		r := o.Responses[status]
		text := r.Description
		if name := last(r.Ref); name != "" {
			text = d.Components.Responses[name].Description
		}
		kinds := ""
		for _, content := range slices.Sorted(maps.Keys(r.Content)) {
			kinds += " " + content + " " + r.Content[content].Schema.kind()
		}
		out.WriteString(wrap(fmt.Sprintf("- %s: %s%s", status, text, kinds), "  "))
	}
}

func writeSchema(out *strings.Builder, name string, s *schema) {
	fmt.Fprintf(out, "\n### Type %s\n\n", name)
	out.WriteString(wrap(strings.TrimSpace(s.Description+" "+s.bareKind()), ""))
	fields := s.fields()
	for i, field := range slices.Sorted(maps.Keys(fields)) {
		if i == 0 {
			out.WriteString("\n")
		}
		f := fields[field]
		out.WriteString(wrap(fmt.Sprintf("- `%s`: %s %s", field, f.kind(), f.Description), "  "))
	}
}

// fields returns the properties of a type, and of those that it includes by name.
func (s *schema) fields() map[string]*schema {
	all := maps.Clone(s.Properties)
	for _, part := range s.AllOf {
		for name, f := range part.Properties {
			if all == nil {
				all = map[string]*schema{}
			}
			all[name] = f
		}
	}
	return all
}

// bareKind is the kind of a type without properties.
func (s *schema) bareKind() string {
	if len(s.fields()) > 0 {
		return ""
	}
	return s.kind()
}

// kind says what a value is: a type of this page with a link, or one of JSON's.
func (s *schema) kind() string {
	switch {
	case s == nil:
		return ""
	case s.Ref != "":
		return fmt.Sprintf("[%s](#type-%s)", last(s.Ref), strings.ToLower(last(s.Ref)))
	case s.Items != nil:
		return "list of " + s.Items.kind()
	case s.Enum != nil:
		var words []string
		for _, word := range s.Enum {
			words = append(words, fmt.Sprintf("`%v`", word))
		}
		return "one of " + strings.Join(words, ", ")
	case len(s.AllOf)+len(s.AnyOf)+len(s.OneOf) > 0:
		var kinds []string
		for _, part := range slices.Concat(s.AllOf, s.AnyOf, s.OneOf) {
			if kind := part.kind(); kind != "" {
				kinds = append(kinds, kind)
			}
		}
		return strings.Join(kinds, " or ")
	case s.Type == nil:
		return ""
	}
	return strings.Trim(fmt.Sprint(s.Type), "[]")
}

// last returns the name at the end of a reference.
func last(ref string) string { return ref[strings.LastIndex(ref, "/")+1:] }
