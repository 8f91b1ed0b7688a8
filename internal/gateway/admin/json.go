package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/message"
)

// maxBody is how many bytes the body of a request may have.
const maxBody = 64 << 10

// decode reads the body of a request: a JSON object with the fields of T.
func decode[T any](r *http.Request) (body T, err error) {
	text, err := readObject[T](r, "application/json")
	if err != nil {
		return body, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&body); err != nil {
		return body, problemf(http.StatusBadRequest, "the body: %s", bodyFault(err, reflect.TypeFor[T]()))
	}
	if _, err := d.Token(); err != io.EOF {
		return body, notOneObject()
	}
	_, err = membersOf(text)
	return body, err
}

// readPatch reads the body of a request: a JSON merge patch for a document of type T.
func readPatch[T any](r *http.Request) ([]byte, error) {
	text, err := readObject[T](r, "application/json", "application/merge-patch+json")
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	var object json.RawMessage
	if err := d.Decode(&object); err != nil {
		return nil, problemf(http.StatusBadRequest, "the body: %s", bodyFault(err, reflect.TypeFor[T]()))
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, notOneObject()
	}
	return object, nil
}

func notOneObject() *Problem {
	return problemf(http.StatusBadRequest, "the body: it must be one JSON object, with nothing after it")
}

// readObject reads the body of a request, which has the fields of T: a text that begins as a JSON object
// does.
func readObject[T any](r *http.Request, kinds ...string) ([]byte, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || !slices.Contains(kinds, kind) {
		return nil, problemf(http.StatusUnsupportedMediaType, "the Content-Type is %.80q: it must be %s", r.Header.Get("Content-Type"), strings.Join(kinds, " or "))
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, problemf(http.StatusBadRequest, "the body cannot be read: %v", err)
	}
	if len(text) > maxBody {
		return nil, problemf(http.StatusRequestEntityTooLarge, "the body is too long: it may have %d bytes", maxBody)
	}
	if !bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) { // the decoder would take null for an empty object
		return nil, problemf(http.StatusBadRequest, "the body: it must be a JSON object, with fields among %s", fields(reflect.TypeFor[T]()))
	}
	return text, nil
}

// bodyFault says what is wrong with a body, and what is allowed.
func bodyFault(err error, of reflect.Type) string {
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		return fmt.Sprintf("%s is a %s: it must be %s", wrong.Field, wrong.Value, jsonType(wrong.Type))
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		return fmt.Sprintf("%.80s: the fields are %s", strings.TrimPrefix(err.Error(), "json: "), fields(of))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends too soon"
	default:
		return message.Plain(err)
	}
}

// jsonType returns what a field of a Go type must be in JSON.
func jsonType(of reflect.Type) string {
	switch of.Kind() {
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return `a string such as "20%"`
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	default:
		return "of type " + of.String()
	}
}

// fields returns the names that a type's fields have in JSON.
func fields(of reflect.Type) string {
	var names []string
	for _, f := range reflect.VisibleFields(of) {
		if !f.Anonymous {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// withJSONNames returns the error of validating a T as a Problem that names the fields as
// JSON does, or nil.
func withJSONNames[T any](err error) error {
	if err == nil {
		return nil
	}
	var names []string
	for f := range reflect.TypeFor[T]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, f.Name, name)
	}
	return problemf(http.StatusBadRequest, "%s", strings.NewReplacer(names...).Replace(message.Plain(err)))
}

// sendJSON answers with a value, or without a body for 204.
func sendJSON(w http.ResponseWriter, status int, value any) {
	if status == http.StatusNoContent {
		w.WriteHeader(status)
		return
	}
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // all answers are types of this package, which marshal
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(text, '\n')) // an error means that the client has left
}
