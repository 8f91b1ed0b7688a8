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
	"strings"
)

// maxBody is how many bytes a body may have.
const maxBody = 64 << 10

// decode reads the body of a request, which is one object with the fields of T.
func decode[T any](r *http.Request) (body T, err error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return body, problemf(http.StatusUnsupportedMediaType, "the Content-Type is %.80q: it must be application/json", r.Header.Get("Content-Type"))
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return body, problemf(http.StatusBadRequest, "the body cannot be read: %v", err)
	}
	if len(text) > maxBody {
		return body, problemf(http.StatusRequestEntityTooLarge, "the body is too long: it may have %d bytes", maxBody)
	}
	if !bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) { // null would be one without fields
		return body, problemf(http.StatusBadRequest, "the body: it must be a JSON object, with fields among %s", fields(reflect.TypeFor[T]()))
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&body); err != nil {
		return body, problemf(http.StatusBadRequest, "the body: %s", fault(err, reflect.TypeFor[T]()))
	}
	if _, err := d.Token(); err != io.EOF {
		return body, problemf(http.StatusBadRequest, "the body: it must be one JSON object, and nothing behind it")
	}
	return body, nil
}

// fault says what is wrong with a body, and what is allowed.
func fault(err error, of reflect.Type) string {
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		return fmt.Sprintf("%s is a %s: it must be of type %s", wrong.Field, wrong.Value, wrong.Type)
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		return fmt.Sprintf("%.80s: the fields are %s", strings.TrimPrefix(err.Error(), "json: "), fields(of))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends too soon"
	default:
		return err.Error()
	}
}

// fields returns the names of a type's fields in JSON.
func fields(of reflect.Type) string {
	var names []string
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// sendJSON answers with a value, or with none for 204.
func sendJSON(w http.ResponseWriter, status int, value any) {
	if status == http.StatusNoContent {
		w.WriteHeader(status)
		return
	}
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // all answers are types of ours, which can be
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(text, '\n')) // who cannot be written to has gone
}
