package control

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/project"
)

// Term is for how long a change at run time holds, and why it was made. Without a term, limits that the configuration
// names are those of the configuration again when that is next read, and everything else stays.
type Term struct {
	Reason string    `json:"reason,omitempty"`
	Until  time.Time `json:"until,omitzero"` // when the change ends; zero: never

	// Limit or Quota is what holds meanwhile, whatever the configuration says; nil: nothing of the configuration was
	// changed.
	Limit *project.Limit        `json:"limit,omitempty"`
	Quota *ratelimit.ModelQuota `json:"quota,omitempty"`

	// Before is what the project or the model had, and has again if the configuration does not name it; nil: none of
	// its own.
	LimitBefore *project.Limit        `json:"limit_before,omitempty"`
	QuotaBefore *ratelimit.ModelQuota `json:"quota_before,omitempty"`

	// LimitEarlier is the limit of an earlier change with a term, until this change is made: if the gateway dies before,
	// the end of the term undoes the earlier change.
	LimitEarlier *project.Limit `json:"limit_earlier,omitempty"`

	Resume bool `json:"resume,omitempty"` // the end of the term ends a pause
}

// The kinds of what has a term, with what stands before its name.
const (
	ProjectTerm = "project/"
	ModelTerm   = "model/"
	KeyTerm     = "key/"

	maxReason = 200
)

// CheckReason returns what is wrong with a reason, or nil.
func CheckReason(reason string) error {
	if len(reason) > maxReason || !utf8.ValidString(reason) || strings.ContainsFunc(reason, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Errorf("reason must be a line of at most %d bytes of UTF-8", maxReason)
	}
	return nil
}

func checkTerm(name string, t Term) error {
	for _, kind := range []string{ProjectTerm, ModelTerm, KeyTerm} {
		if strings.HasPrefix(name, kind) {
			return CheckReason(t.Reason)
		}
	}
	return fmt.Errorf("%.40q has no kind that is known", name)
}

// Term returns the term of the last change of something: its kind and its name.
func (s *State) Term(kind, name string) Term { return s.terms[kind+name] }

// Terms calls f with the terms of all that have one, by kind and name.
func (s *State) Terms(f func(key string, t Term)) {
	for key, t := range s.terms {
		f(key, t)
	}
}

// SetTerm sets the term of something. The zero Term is none.
func (b *Board) SetTerm(ctx context.Context, kind, name string, t Term) error {
	_, err := put(ctx, b, termPrefix, kind+name, nil, t, func(s *State) *map[string]Term { return &s.terms })
	return err
}

// EndTerm removes a term if it is still this one, and reports whether it was: of several gateways, one ends it.
func (b *Board) EndTerm(ctx context.Context, key string, was Term) (bool, error) {
	return put(ctx, b, termPrefix, key, &was, Term{}, func(s *State) *map[string]Term { return &s.terms })
}
