package dialect

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"regexp"
	"strings"
	"time"
)

// A Stored is something that the provider has stored and a request is about, such as the video of a remix, the file
// with which a model is trained, or the vector stores that a tool searches. What the request costs depends on it, and
// the body does not say it.
type Stored struct {
	Paths []string // the provider's own paths to it; none: the request names it in no form that is read
	Lines bool     // it is a file, whose lines are to be given to Add one after another

	// The caller sets when it is read, and how long after that the request may be sent.
	Now  time.Time
	Late time.Duration

	endpoint Endpoint // that the request is sent to
	request  Request  // what the body itself says
	about    *about
	path     string   // of the request
	fields   []byte   // the body, or the fields of a form
	texts    [][]byte // the provider's descriptions of it, in the order of Paths; none for a file
	count    int64    // what the lines count together; -1: nobody knows
	times    int64    // how often that is billed; -1: nobody knows
}

// An about says what requests of an API are about.
type about struct {
	// at returns the provider's paths to it, or none if the request names it in no form that is read. ok is false if the
	// body says everything.
	at func(path string, fields []byte) (where []string, ok bool)

	with func(*Stored) (Request, error) // returns the request together with what is stored; nil: what is stored is a file

	// What is read of a file: the unit that its lines count, how many of it each line has at most, and how often each of
	// them is billed. A negative number is one that nobody knows.
	unit  int
	count func(e Endpoint, line []byte) int64
	times func(fields []byte) int64
}

// IsAbout reports whether requests of the API may be about something that the provider has stored: see
// [Endpoint.Stored].
func (a API) IsAbout() bool { return a.protocol().about != nil }

// Stored returns what a request with this path is about, or nil if its body says everything. The error is that of
// [Endpoint.ReadAs].
func (e Endpoint) Stored(path, contentType string, body []byte) (*Stored, error) {
	a := e.API.protocol().about
	if a == nil {
		return nil, nil
	}
	q, fields, err := e.readAs(contentType, body)
	if err != nil {
		return nil, err
	}
	path = strings.TrimRight(path, "/")
	where, ok := a.at(path, fields)
	if !ok {
		return nil, nil
	}
	s := &Stored{Paths: where, Lines: a.with == nil, endpoint: e, request: q, about: a, path: path, fields: fields}
	if s.Lines {
		s.times = a.times(fields)
	}
	return s, nil
}

// Add reads what is stored at the next of Paths, or the next line of it. It keeps what is no line.
func (s *Stored) Add(text []byte) error {
	if !s.Lines {
		s.texts = append(s.texts, text)
		return nil
	}
	n := s.about.count(Endpoint{Provider: s.request.Provider, Model: s.request.Model}, text)
	if n < 0 || s.count < 0 {
		s.count = -1
	} else {
		s.count = min(s.count+n, mostLines)
	}
	return nil
}

// mostLines bounds what the lines of a file count, and that times how often it is billed.
const mostLines = 1 << 50

// Request returns the request together with what was added.
func (s *Stored) Request() (Request, error) {
	if !s.Lines {
		return s.about.with(s)
	}
	q := s.request
	switch {
	case s.count < 0 || s.times < 0:
		q.Units[s.about.unit] = -1
	case s.count > mostLines/max(s.times, 1):
		q.Units[s.about.unit] = mostLines
	default:
		q.Units[s.about.unit] = s.count * s.times
	}
	return q, nil
}

// read reads a body in place of that of the request, which says less, and names any model that it likes.
func (s *Stored) read(body []byte) (Request, error) {
	q, err := s.endpoint.Read(body)
	q.Form = true // the request's own body is sent as it is
	return q, err
}

// errStored is for what a provider says of something stored in a form that is not read.
var errStored = errors.New("ratelimit: what the provider has stored is not in a form that can be read")

// storedID is what ids look like of what a provider has stored.
var storedID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,200}$`)

// objectOf returns a JSON object whose keys are unambiguous, or nil: neither it nor an object in it has a key twice, not
// even in another case.
func objectOf(text []byte) (object map[string]any) {
	// Unmarshal comes first: it refuses what is nested so deeply that uniqueKeys would need more stack than there is.
	if json.Unmarshal(text, &object) != nil || !uniqueKeys(json.NewDecoder(bytes.NewReader(text))) {
		return nil
	}
	return object
}

// uniqueKeys reads a JSON value, and reports whether no object in it has a key twice.
func uniqueKeys(d *json.Decoder) bool {
	token, err := d.Token()
	if err != nil {
		return false
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return true
	}
	seen := map[string]bool{}
	for d.More() {
		if delim == '{' {
			token, err := d.Token()
			key, _ := token.(string)
			if key = folded([]byte(key)); err != nil || seen[key] {
				return false
			}
			seen[key] = true
		}
		if !uniqueKeys(d) {
			return false
		}
	}
	_, err = d.Token()
	return err == nil
}

// wholeNumber returns a number as a whole one that is not below it, if it is a number from 1 to [math.MaxInt32].
func wholeNumber(value any) (int64, bool) {
	n, ok := value.(float64)
	if !ok || n < 1 {
		return 0, false
	}
	return int64(math.Ceil(min(n, math.MaxInt32))), true
}
