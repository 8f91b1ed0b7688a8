package admin

import (
	"context"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/control"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/internal/settings"
)

// Preview is the answer to a change with ?dry_run=true, which changes nothing.
type Preview struct {
	Before  any           `json:"before"`
	After   any           `json:"after"`
	Changed []FieldChange `json:"changed"`
	Lifted  []string      `json:"lifted"` // the limits that would be removed
}

// edit is a change of a document of type T: of what a project, a quota or a key has. next returns what the document
// becomes, and apply sets that, or returns errChanged if before is not there any more. spelled returns the document for
// people, with the configuration's mode in place of none; it may be nil.
type edit[T any] struct {
	action, subject string
	now             func() T
	spelled         func(T) T
	next            func(before T) (after T, err error)
	apply           func(ctx context.Context, before, after T) error

	// kind is what has the term of the change. held fills in what holds during a term that outlasts a reload; nil: the
	// change is none that a reload undoes, and has no term.
	kind string
	held func(before, after T, t *control.Term)
}

// errChanged is the error of an edit of a document that another gateway has changed since it was read.
var errChanged = problemf(http.StatusServiceUnavailable, "another gateway has changed it at the same time")

// unchanged returns errChanged for a replacement that has found another document.
func unchanged(replaced bool, err error) error {
	if err == nil && !replaced {
		return errChanged
	}
	return err
}

// maxTries is how often an edit is tried. Each time that it fails, another gateway has made a change.
const maxTries = 100

// perform makes an edit. It returns the limits that were removed, and for a dry run the preview. If another
// gateway changes the document at the same time, the edit is made again on what that has left.
func perform[T any](a *Admin, r *http.Request, e edit[T]) (lifted []string, preview *Preview, err error) {
	ask, err := readEditQuery(r)
	if err != nil {
		return nil, nil, err
	}
	a.changing.Lock()
	defer a.changing.Unlock()
	for range maxTries {
		if lifted, preview, err = try(a, r, e, ask); err != errChanged {
			break
		}
	}
	return lifted, preview, err
}

// try makes an edit of the document as it is in the store now. The caller has locked changing.
func try[T any](a *Admin, r *http.Request, e edit[T], ask editQuery) (lifted []string, preview *Preview, err error) {
	if err := a.refresh(r.Context()); err != nil {
		return nil, nil, err
	}
	before := e.now()
	after, err := e.next(before)
	if err != nil {
		return nil, nil, err
	}
	changed, lifted := changesOf(before, after)
	old, new := before, after
	if e.spelled != nil {
		old, new = e.spelled(before), e.spelled(after)
	}
	switch {
	case ask.dryRun:
		changed, _ = changesOf(old, new)
		return nil, &Preview{before, after, changed, lifted}, nil
	case len(lifted) > 0 && r.Method == http.MethodPut && !ask.replace:
		return nil, nil, liftsLimits(e.subject, lifted)
	case len(changed) == 0 && r.Method == http.MethodPatch && ask.term == (askedTerm{}):
		return lifted, nil, nil
	}
	if name := untimed(e.kind, changed); name != "" && !ask.term.until.IsZero() {
		return nil, nil, problemf(http.StatusBadRequest, "%s cannot be changed for a time: until=%s is only for limits and pauses, and of a key only for pauses", name, r.URL.Query().Get("until"))
	}
	if ask.term.holds() && e.held == nil {
		return nil, nil, problemf(http.StatusBadRequest, "until is not allowed here: this change stays until somebody undoes it")
	}
	ctx := context.WithoutCancel(r.Context()) // a change that has begun ends even if the client leaves
	return lifted, nil, a.record(r, change{
		action: e.action, subject: e.subject,
		before: func() any { return old },
		apply:  func() (any, error) { return new, applyWithTerm(ctx, a, e, before, after, ask.term) },
		reason: ask.term.reason, until: ask.term.until,
	})
}

// applyWithTerm makes a change and keeps its term. A term that outlasts a reload is stored first: if the gateway dies
// before the change is made, the end of the term finds nothing to undo, while a change without its term would never
// end.
func applyWithTerm[T any](ctx context.Context, a *Admin, e edit[T], before, after T, ask askedTerm) error {
	earlier := a.gateway.Controls().State().Term(e.kind, e.subject)
	term := termFor(e, before, after, ask)
	if ask.holds() {
		until := term
		until.LimitEarlier = earlier.Limit
		if err := setTerm(ctx, a, e, until); err != nil {
			return err
		}
	}
	err := e.apply(ctx, before, after)
	if err == nil {
		return setTerm(ctx, a, e, term)
	}
	if ask.holds() {
		if stays := setTerm(ctx, a, e, earlier); stays != nil {
			a.log.Warn("the term of a change that has failed stays", "of", e.subject, "error", stays)
		}
	}
	return err
}

// untimed returns the first field of a change that the end of its time would not undo, or "".
func untimed(kind string, changed []FieldChange) string {
	for _, c := range changed {
		switch {
		case c.Field == "paused":
		case kind == control.KeyTerm, IsSwitched(c.Field):
			return c.Field
		}
	}
	return ""
}

// termFor returns the term of a change.
func termFor[T any](e edit[T], before, after T, ask askedTerm) control.Term {
	term := control.Term{Reason: ask.reason, Until: ask.until}
	if ask.holds() && e.held != nil {
		e.held(before, after, &term)
	}
	return term
}

// setTerm keeps the term of a change. A change without one ends the term of an earlier change.
func setTerm[T any](ctx context.Context, a *Admin, e edit[T], term control.Term) error {
	board := a.gateway.Controls()
	if e.held == nil || reflect.DeepEqual(board.State().Term(e.kind, e.subject), term) {
		return nil
	}
	return board.SetTerm(ctx, e.kind, e.subject, term)
}

// liftsLimits refuses a PUT that would remove limits by leaving them out.
func liftsLimits(subject string, lifted []string) *Problem {
	p := problemf(http.StatusConflict, "nothing was changed: a PUT replaces everything, and this one would lift %s of %q: PATCH changes only the fields that it has; ?replace=true lifts them", strings.Join(lifted, ", "), subject)
	p.Lifted = lifted
	return p
}

// editQuery is what the parameters of a change say.
type editQuery struct {
	dryRun, replace bool
	term            askedTerm
}

func readEditQuery(r *http.Request) (ask editQuery, err error) {
	known := []string{"dry_run", "until", "reason"}
	if r.Method == http.MethodPut {
		known = append(known, "replace")
	}
	q, err := parameters(r, known...)
	if err == nil {
		ask.dryRun, err = flag(q, "dry_run")
	}
	if err == nil {
		ask.replace, err = flag(q, "replace")
	}
	if err == nil {
		ask.term, err = readTerm(q, time.Now())
	}
	return ask, err
}

// flag returns the value of a parameter that is true or false.
func flag(q url.Values, name string) (bool, error) {
	if !q.Has(name) {
		return false, nil
	}
	value, err := strconv.ParseBool(q.Get(name))
	if err != nil {
		return false, problemf(http.StatusBadRequest, "%s is %.40q: it must be true or false", name, q.Get(name))
	}
	return value, nil
}

// refresh reads what the store keeps of quotas, limits and pauses.
func (a *Admin) refresh(ctx context.Context) error {
	if hidden.Of[settings.Keeper](a.gateway.Models().Store()) == nil {
		return nil
	}
	if err := a.gateway.Models().Load(); err != nil {
		return err
	}
	if err := a.gateway.Projects().Load(ctx); err != nil {
		return err
	}
	return a.gateway.Controls().Load(ctx)
}
