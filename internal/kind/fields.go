package kind

import (
	"fmt"
	"reflect"
	"strings"
)

// Fields finds the limits of an owner in a struct T: each is in the field whose name in JSON is the limit's setting.
type Fields[T any] struct {
	places [kinds]int
}

// NewFields returns where the limits of an owner are in T. It panics if T has no field for one of them.
func NewFields[T any](owner Owner) *Fields[T] {
	f, of := &Fields[T]{}, reflect.TypeFor[T]()
	for _, k := range Of(owner) {
		f.places[k] = PlaceOf(of, k.Setting())
	}
	return f
}

// PlaceOf returns the field of a struct that has a name in JSON. It panics if there is none.
func PlaceOf(of reflect.Type, name string) int {
	for i := range of.NumField() {
		if tag, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ","); tag == name {
			return i
		}
	}
	panic(fmt.Sprintf("%v has no field with the name %s in JSON: it must have one", of, name))
}

// Name returns the name of the field that sets a limit.
func (f *Fields[T]) Name(k Kind) string { return reflect.TypeFor[T]().Field(f.places[k]).Name }

// In returns the field of s that sets a limit.
func (f *Fields[T]) In(s *T, k Kind) reflect.Value {
	return reflect.ValueOf(s).Elem().Field(f.places[k])
}

// Get returns the limit that s sets.
func (f *Fields[T]) Get(s *T, k Kind) int64 { return f.In(s, k).Int() }

// Set sets the limit in s.
func (f *Fields[T]) Set(s *T, k Kind, n int64) { f.In(s, k).SetInt(n) }
