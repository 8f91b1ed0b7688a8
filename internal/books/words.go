package books

import (
	"fmt"
	"strconv"
	"time"
)

// Words are a query as it stands in a URL or on a command line. Empty words have their defaults.
type Words struct {
	By      string // dimensions, separated by commas; the default is none
	Since   string // see ParseTime; the default is DefaultSince
	Until   string // see ParseTime; the default is now
	Project string
	Depth   string // a number; the default is 0
}

// DefaultSince is how long ago a query begins that does not say since when.
const DefaultSince = "30d"

// Query returns the query, or what is wrong with it and what is allowed.
func (w Words) Query(now time.Time) (q Query, err error) {
	if w.Since == "" {
		w.Since = DefaultSince
	}
	since, err := ParseTime(w.Since, now)
	if err != nil {
		return q, err
	}
	q = Query{Since: since.Unix(), Project: w.Project, By: ParseBy(w.By)}
	if w.Until != "" {
		until, err := ParseTime(w.Until, now)
		if err != nil {
			return q, err
		}
		q.Until = until.Unix()
	}
	if w.Depth != "" {
		q.Depth, err = strconv.Atoi(w.Depth)
		if err != nil {
			return q, fmt.Errorf("ratelimit: a depth of %.40q: it must be 1 or more, or 0 for whole paths", w.Depth)
		}
	}
	return q, q.Validate()
}

// Words returns the query in words.
func (q *Query) Words() (w Words) {
	for i, d := range q.By {
		if i > 0 {
			w.By += ","
		}
		w.By += string(d)
	}
	w.Project = q.Project
	w.Since = time.Unix(q.Since, 0).UTC().Format(time.RFC3339)
	if q.Until != 0 {
		w.Until = time.Unix(q.Until, 0).UTC().Format(time.RFC3339)
	}
	if q.Depth > 0 {
		w.Depth = strconv.Itoa(q.Depth)
	}
	return w
}
