// Package keys holds the gateway's virtual keys. Each belongs to a project, and is shown
// once, when it is created.
//
// A key is rl-<id>-<secret>. The id is public; of the secret only a hash is stored.
//
// Tokens of the admin API are kept in the same way, in a [Ring] of their own: a token is a key with a [Role].
package keys

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/internal/modelname"
	"dappco.re/go/core/go-ratelimit/project"
)

var (
	ErrUnknown = errors.New("ratelimit: there is no such key")
	ErrInvalid = errors.New("ratelimit: invalid key") // the key or the change is not valid; nothing has changed
)

// Key describes a key. It does not hold the secret. Times are in UTC, and in whole seconds.
type Key struct {
	ID      string    `json:"id"`             // the public part of the key
	Project string    `json:"project"`        // of a token: the project to which it is bound, with all below it; empty: all projects
	Role    Role      `json:"role,omitempty"` // of a token: what it may do; keys of clients have none
	Name    string    `json:"name,omitempty"` // what it is for
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"`

	// Limit is what calls with the key may use, beside the limits of its project. Models are
	// names or patterns of the models that the key may call, if its project may; none is all.
	Limit  project.Limit `json:"limit,omitzero"`
	Models []string      `json:"models,omitempty"`

	// Paused says that an operator has paused the key. A [Ring] neither knows nor keeps it: the admin API
	// fills it in.
	Paused bool `json:"paused,omitempty"`

	// LastUsed is when a call with the key was last counted, as far as that is known. The admin API fills it in, too.
	LastUsed time.Time `json:"last_used,omitzero"`

	// PreviousUntil is when the last replaced secret stops being valid. [Ring.List] and
	// [Ring.Rotate] set it while there is such a secret.
	PreviousUntil time.Time `json:"previous_until,omitzero"`
}

const (
	maxName   = 100 // bytes
	maxModels = 100
)

func (k *Key) validate() error {
	if k.Role != "" {
		if err := k.validateToken(); err != nil {
			return err
		}
	}
	if err := project.CheckID(k.Project); err != nil && (k.Role == "" || k.Project != "") {
		return fmt.Errorf("%w: %s", ErrInvalid, message.Detail(err, project.ErrInvalid))
	}
	if len(k.Name) > maxName {
		return fmt.Errorf("%w: its name has %d bytes: it may have %d", ErrInvalid, len(k.Name), maxName)
	}
	if !utf8.ValidString(k.Name) {
		return fmt.Errorf("%w: its name %q must be UTF-8", ErrInvalid, k.Name)
	}
	if strings.ContainsFunc(k.Name, unicode.IsControl) {
		return fmt.Errorf("%w: its name %q must not have control characters", ErrInvalid, k.Name)
	}
	return k.validateTerms()
}

// validateTerms returns what is wrong with the limit or the models of the key, or nil.
func (k *Key) validateTerms() error {
	l := k.Limit
	if err := l.Validate(); err != nil {
		return fmt.Errorf("%w: its limit: %s", ErrInvalid, message.Plain(err))
	}
	if l.Weight != 0 || l.Priority != 0 || l.MinShare != 0 || l.MaxShare != 0 || l.Dedicated {
		return fmt.Errorf("%w: its limit has a weight, a priority or a share: only projects have these", ErrInvalid)
	}
	if len(k.Models) > maxModels {
		return fmt.Errorf("%w: it has %d models: it may have %d; a pattern stands for many", ErrInvalid, len(k.Models), maxModels)
	}
	for _, name := range k.Models {
		if name == "" || !modelname.Valid(name) {
			return fmt.Errorf("%w: its model %.60q must be a name or a pattern: at most %d bytes of UTF-8, and no control characters", ErrInvalid, name, modelname.MaxBytes)
		}
	}
	return nil
}

// CheckTerms returns what is wrong with the limit or the models of a key, or nil.
func CheckTerms(limit project.Limit, models []string) error {
	return (&Key{Limit: limit, Models: models}).validateTerms()
}

// expiry returns the end of a duration from now on, rounded up to a whole second. A
// duration of 0 never ends, which is the zero time.
func expiry(now time.Time, d time.Duration) time.Time {
	if d == 0 {
		return time.Time{}
	}
	return now.Add(d).Add(time.Second - 1).UTC().Truncate(time.Second)
}
