package main

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/message"
)

// fieldTypes are the fields that a command can set, by their names in the admin API and in the
// configuration, and their types.
type fieldTypes map[string]reflect.Type

// fieldsOf returns the fields of a type, but not those that have commands of their own. The fields of
// the parts that are named are fields themselves: those of a key's limit need no limit before them.
func fieldsOf(t reflect.Type, parts ...string) fieldTypes {
	all := fieldTypes{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous, name == "", name == "-", name == "paused":
		case slices.Contains(parts, name):
			for inner, of := range fieldsOf(f.Type) {
				all[inner] = of
			}
		case f.Type.Kind() == reflect.Struct && !reflect.PointerTo(f.Type).Implements(reflect.TypeFor[json.Unmarshaler]()):
			for inner, of := range fieldsOf(f.Type) {
				all[name+"."+inner] = of
			}
		default:
			all[name] = f.Type
		}
	}
	return all
}

// without removes fields, and returns the others.
func (s fieldTypes) without(names ...string) fieldTypes {
	for _, name := range names {
		delete(s, name)
	}
	return s
}

func (s fieldTypes) names() (names []string) {
	for name := range s {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// patch returns the patch of arguments such as requests_per_minute=100 and weight=none, and of the fields
// that are removed.
func (s fieldTypes) patch(args, removed []string) (admin.Patch, error) {
	p := admin.Patch{}
	for _, name := range removed {
		args = append(args, name+"=none")
	}
	for _, arg := range args {
		name, text, ok := strings.Cut(arg, "=")
		name = strings.ReplaceAll(name, "-", "_")
		of, known := s[name]
		switch {
		case !known:
			return nil, s.unknown(name)
		case text == "0" && admin.IsAmount(name):
			return nil, fmt.Errorf("%s is 0: none removes a limit, and the command pause stops all calls", name)
		case !ok || text == "":
			return nil, fmt.Errorf("%s has no value: it must be one such as %s=100, or %s=none to remove it", name, name, name)
		}
		value, err := valueOf(of, text)
		if err != nil {
			return nil, fmt.Errorf("%s is %s: %w", name, message.Quote(text), err)
		}
		put(p, strings.Split(name, "."), value)
	}
	if len(p) == 0 {
		return nil, fmt.Errorf("there is nothing to set: name FIELD=VALUE, or FIELD=none to remove it; the fields are %s", strings.Join(s.names(), ", "))
	}
	return p, nil
}

// unknown returns the error of a field that is not known.
func (s fieldTypes) unknown(name string) error {
	text := fmt.Sprintf("there is no field %s", message.Quote(name))
	if near := message.Nearest(name, s.names()); near != "" {
		return fmt.Errorf("%s: did you mean %s?", text, near)
	}
	return fmt.Errorf("%s: the fields are %s", text, strings.Join(s.names(), ", "))
}

// put sets a field in a patch by its path.
func put(p map[string]any, path []string, value any) {
	for ; len(path) > 1; path = path[1:] {
		inner, ok := p[path[0]].(map[string]any)
		if !ok {
			inner = map[string]any{}
			p[path[0]] = inner
		}
		p = inner
	}
	p[path[0]] = value
}

// readsText reports whether the values of a type may be texts in JSON, such as "20%" or "12h".
func readsText(of reflect.Type) bool {
	p := reflect.PointerTo(of)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// valueOf returns the value of a field in JSON; none is null.
func valueOf(of reflect.Type, text string) (any, error) {
	plain := strings.ReplaceAll(text, "_", "")
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch {
	case text == "none":
		return nil, nil
	case of.Kind() == reflect.Slice:
		return strings.Split(text, ","), nil
	case of.Kind() == reflect.Bool:
		value, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("it must be true, false or none")
		}
		return value, nil
	case readsText(of), of.Kind() == reflect.String:
		if n, err := strconv.ParseFloat(plain, 64); err == nil && of.Kind() != reflect.String {
			return n, nil
		}
		return text, nil
	}
	n, err := strconv.ParseInt(plain, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("it must be a whole number, such as 1_000, or none")
	}
	return n, nil
}
