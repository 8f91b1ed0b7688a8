package dialect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"strconv"
	"strings"
)

// Bounds of a multipart form. OpenAI's forms have sixteen images and a dozen fields.
const (
	maxFormParts = 64
	maxFormField = 1 << 20 // bytes of the value of a field that is no file
)

// A formBody is what a multipart form has: its fields as a JSON object, and its files.
type formBody struct {
	fields []byte
	files  []formFile
}

// A formFile is a file of a form. Its content is a part of the body.
type formFile struct {
	name    string // of its field
	content []byte
}

// ReadAs reads the body of a request to the endpoint like [Endpoint.Read], or as a multipart form if the Content-Type
// says so and the API has forms.
func (e Endpoint) ReadAs(contentType string, body []byte) (Request, error) {
	q, _, err := e.readAs(contentType, body)
	return q, err
}

// readAs is ReadAs, and returns the fields of a form as a JSON object, or the body if it is no form.
func (e Endpoint) readAs(contentType string, body []byte) (q Request, fields []byte, err error) {
	if !e.API.protocol().forms || !strings.Contains(strings.ToLower(contentType), "multipart") {
		q, err = e.Read(body)
		return q, body, err
	}
	f, err := formBody{}, errForm
	kind, parameters, wrong := mime.ParseMediaType(contentType)
	if wrong == nil && kind == "multipart/form-data" && !strings.Contains(contentType, "*") { // some servers do not know boundary*
		f, err = readForm(body, parameters["boundary"])
	}
	if err != nil {
		return Request{Endpoint: e}, nil, fmt.Errorf("ratelimit: the request's body is no form that can be read: %w", err)
	}
	r := newRequestReader(e, f.fields)
	r.formFiles = f.files
	r.read()
	q = r.request()
	q.Form, q.size = true, len(body)
	q.modelSplice, q.usageSplice, q.boundSplices, q.users = splice{}, splice{}, nil, userPlaces{} // they are places in another text
	return q, f.fields, r.err
}

var errForm = errors.New("it must have parts with one name each, all of it between the boundaries, and nothing encoded")

// readForm reads a multipart form. It refuses what servers may read in different ways.
func readForm(body []byte, boundary string) (f formBody, err error) {
	if boundary == "" || !bytes.HasPrefix(body, []byte("--"+boundary+"\r\n")) || !bytes.HasSuffix(bytes.TrimRight(body, "\r\n"), []byte("--"+boundary+"--")) {
		return f, errForm
	}
	object, rest := []byte{'{'}, body
	parts := multipart.NewReader(bytes.NewReader(body), boundary)
	for n := 0; ; n++ {
		part, err := parts.NextRawPart()
		switch {
		case errors.Is(err, io.EOF):
			if bytes.Count(body, []byte("--"+boundary)) != n+1 { // servers differ in what ends the line before a boundary
				return f, errForm
			}
			f.fields = append(object, '}')
			return f, nil
		case err != nil:
			return f, errForm
		case n == maxFormParts:
			return f, fmt.Errorf("it has more than %d parts", maxFormParts)
		}
		name, isFile, ok := partName(part)
		if !ok || isFile && decides(fields[name]) { // some servers take it for a text
			return f, errForm
		}
		content, behind, err := partContent(part, rest, "\r\n--"+boundary)
		rest = behind
		switch {
		case err != nil:
			return f, errForm
		case isFile:
			f.files = append(f.files, formFile{name, content})
			continue
		case len(content) > maxFormField:
			return f, fmt.Errorf("its field %.40q is longer than %d bytes", name, maxFormField)
		}
		if len(object) > 1 {
			object = append(object, ',')
		}
		key, _ := json.Marshal(name) // texts can always be written
		object = append(append(append(object, key...), ':'), formValue(name, content)...)
	}
}

// partContent returns the content of a part, and what is behind it. text begins with the part, and mark ends it.
func partContent(part io.Reader, text []byte, mark string) (content, behind []byte, err error) {
	size, err := io.Copy(io.Discard, part)
	end := int64(bytes.Index(text, []byte(mark)))
	if err != nil || end < size {
		return nil, nil, errForm
	}
	return text[end-size : end], text[end+int64(len(mark)):], nil
}

// partName returns the name of a part's field, and whether the part is a file.
func partName(part *multipart.Part) (name string, isFile, ok bool) {
	if len(part.Header["Content-Disposition"]) != 1 || part.Header["Content-Transfer-Encoding"] != nil {
		return "", false, false
	}
	text := part.Header.Get("Content-Disposition")
	if strings.Contains(strings.ReplaceAll(strings.ToLower(text), "filename*", ""), "name*") { // which some servers do not know
		return "", false, false
	}
	kind, parameters, err := mime.ParseMediaType(text)
	for key := range parameters {
		ok = key == "name" || key == "filename"
		if !ok {
			return "", false, false
		}
	}
	_, isFile = parameters["filename"]
	name = strings.TrimSuffix(parameters["name"], "[]")
	return name, isFile, err == nil && kind == "form-data" && name != ""
}

// decides reports whether what a call costs depends on the value of a field.
func decides(f *field) bool {
	return f != nil && (f.kind == fieldModel || f.kind == fieldNumber || f.kind == fieldWord)
}

// formValue returns the value of a field in JSON: a number or a flag, where the field is one, and a text anywhere else.
func formValue(name string, content []byte) []byte {
	f := fields[name]
	text := string(content)
	isFlag := text == "true" || text == "false"
	_, err := strconv.Atoi(text)
	if f != nil && (f.kind == fieldNumber && err == nil || (f.kind == fieldStream || f.kind == fieldBackground) && isFlag) {
		return content
	}
	quoted, _ := json.Marshal(text) // a text can always be written
	return quoted
}
