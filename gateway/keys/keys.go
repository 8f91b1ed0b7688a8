// Package keys is the gateway's virtual keys: each stands for a project, and is shown
// once, when it is made.
//
// A key is rl-<id>-<secret>. The id may be seen; of the secret only a hash is kept.
package keys

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"dappco.re/go/core/go-ratelimit/project"
)

var (
	ErrUnknown = errors.New("ratelimit: there is no such key")
	ErrInvalid = errors.New("ratelimit: invalid key") // it, or what was to be done with it; nothing has changed
)

// Key is what is known of a key. It is not the key itself: that cannot be told from it.
// Times are in UTC, and in whole seconds.
type Key struct {
	ID      string    `json:"id"` // the part of the key that may be seen
	Project string    `json:"project"`
	Name    string    `json:"name,omitempty"` // what it is for
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"`

	// PreviousUntil is until when a secret is valid that was replaced. [Ring.List] and
	// [Ring.Rotate] say it, while there is one.
	PreviousUntil time.Time `json:"previous_until,omitzero"`
}

const maxName = 100

func (k *Key) validate() error {
	if err := project.CheckID(k.Project); err != nil {
		return fmt.Errorf("%w: %s", ErrInvalid, strings.TrimPrefix(err.Error(), project.ErrInvalid.Error()+": "))
	}
	if len(k.Name) > maxName {
		return fmt.Errorf("%w: its name has %d bytes: it may have %d", ErrInvalid, len(k.Name), maxName)
	}
	if !utf8.ValidString(k.Name) {
		return fmt.Errorf("%w: its name %q must be UTF-8", ErrInvalid, k.Name)
	}
	for _, r := range k.Name {
		if unicode.IsControl(r) {
			return fmt.Errorf("%w: its name %q must not have control characters", ErrInvalid, k.Name)
		}
	}
	return nil
}

// end returns when a time from now is over, in whole seconds: rather too late than too
// early. 0 has no end.
func end(now time.Time, d time.Duration) time.Time {
	if d == 0 {
		return time.Time{}
	}
	exact := now.Add(d).UTC()
	whole := exact.Truncate(time.Second)
	if whole.Before(exact) {
		whole = whole.Add(time.Second)
	}
	return whole
}
