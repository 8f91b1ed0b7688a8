package gateway

import (
	"slices"
	"time"
)

// Filter says which requests are wanted. The zero Filter wants all.
type Filter struct {
	Project  string // of this project, or of one below it
	Model    string // as the request names it, or the name of the quota
	Key      string // the id of a virtual key
	Outcomes []Outcome
	Since    time.Time // that came then or later
}

// Match reports whether a request is wanted.
func (f *Filter) Match(rec *Record) bool {
	return (f.Project == "" || rec.isOf(f.Project)) &&
		(f.Model == "" || rec.Model == f.Model || rec.Quota == f.Model) &&
		(f.Key == "" || rec.Key == f.Key) &&
		(f.Outcomes == nil || slices.Contains(f.Outcomes, rec.Outcome)) &&
		!rec.Time.Before(f.Since)
}
