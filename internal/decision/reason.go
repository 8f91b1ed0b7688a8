package decision

import (
	"fmt"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/internal/numeral"
	"dappco.re/go/core/go-ratelimit/limit"
)

// Reason says for people what denies the call: empty where nothing does.
func (d *Decision) Reason() string {
	if busy := d.Busy(); busy != "" {
		return fmt.Sprintf("%s: try again in %v", busy, message.Wait(d.RetryAfter))
	}
	s := d.Denying()
	switch {
	case d.Share.Window != nil:
		return d.Share.reason(d.Owner, d.RetryAfter)
	case s == nil:
		return ""
	case d.RetryAfter == limit.Never:
		return "more than " + s.May()
	case d.Local:
		return fmt.Sprintf("the store does not answer, and the part of what %s that may pass here meanwhile is used: try again in %v", s.May(), message.Wait(d.RetryAfter))
	case s.Held:
		return fmt.Sprintf("%s, and calls under way have reserved %s of what is used: try again in %v", s.Left(), s.Window.quantity(s.Reserved), message.Wait(d.RetryAfter))
	case s.Window.Total():
		return s.Left() + ", and it does not reset"
	}
	return fmt.Sprintf("%s, which is too little: try again in %v", s.Left(), message.Wait(d.RetryAfter))
}

// String returns the answer, and the reason of a denial, as a sentence.
func (d Decision) String() string {
	if d.Allowed {
		return "allowed"
	}
	return strings.TrimSuffix("denied: "+d.Reason(), ": ")
}

// OwnerText returns the owner of a limit as a sentence names it: project "acme", or key "k". Owners
// that are keys and runs have a space in them, and projects have none.
func OwnerText(owner string) string {
	kind, id, ok := strings.Cut(owner, " ")
	if !ok {
		kind, id = "project", owner
	}
	return fmt.Sprintf("%s %q", kind, id)
}

// Err returns the error that says which limit denies a request.
func Err(d *Decision) error {
	if d.Share.Window != nil {
		return fmt.Errorf("%w: %s", ErrExceeded, d.Reason())
	}
	all := d.Windows()
	for i := range all {
		if s := &all[i]; s.Window.Name == d.Limit && (s.Owner == d.Owner || d.Owner == "") {
			return s.Window.exceeded
		}
	}
	return ErrExceeded
}

// reason says for people how much of a window of its owner the project may use.
func (s *DeniedShare) reason(owner string, retry time.Duration) string {
	w := s.Window
	if retry == limit.Never {
		return fmt.Sprintf("more than the %s %s of %s that %s may use at most", w.amount(s.Max), w.per(), OwnerText(owner), OwnerText(s.Project))
	}
	others, siblings := "", "projects"
	if strings.HasPrefix(s.Project, "key ") {
		siblings = "keys of the project"
	}
	if s.Projects > 1 {
		others = fmt.Sprintf(" while %d %s share them", s.Projects, siblings)
	}
	return fmt.Sprintf("%s has a share of %s of the %s %s of %s%s, and has used %s: try again in %v",
		OwnerText(s.Project), w.quantity(s.Max), w.amount(w.Count), w.per(), OwnerText(owner), others, w.quantity(s.Used), message.Wait(retry))
}

// Busy says for people that as many calls are under way as a limit on calls at a time allows: empty
// where no such limit denies.
func (d *Decision) Busy() string {
	if d.Limit != Concurrent || d.slots == 0 {
		return ""
	}
	return fmt.Sprintf("%s has %s calls under way, as many as it may", OwnerText(d.Owner), numeral.Grouped(d.slots))
}

// Denying returns where the owner of the limit that denies stands in it, or nil if no window denies.
func (d *Decision) Denying() *Standing {
	all := d.Windows()
	for i := range all {
		if s := &all[i]; s.Window.Name == d.Limit && s.Owner == d.Owner {
			return s
		}
	}
	return nil
}

// Left says how much is left of the window: project "acme" has $0.12 of its $5,000.00 of November
// left.
func (s *Standing) Left() string {
	return fmt.Sprintf("%s has %s of its %s %s left", OwnerText(s.Owner), s.Window.quantity(s.Remaining), s.Window.amount(s.Window.Count), s.period())
}

// ReservedText says how much of what is used calls under way hold, and will give back in part: " ($0.60 of what is used
// is only reserved, by calls under way)". It is empty if they hold nothing.
func (s *Standing) ReservedText() string {
	if s.Reserved <= 0 {
		return ""
	}
	return fmt.Sprintf(" (%s of what is used is only reserved, by calls under way)", s.Window.quantity(s.Reserved))
}

// May says what the owner of the window may use: project "acme" may use $5,000.00 a month.
func (s *Standing) May() string {
	return fmt.Sprintf("%s may use %s %s", OwnerText(s.Owner), s.Window.amount(s.Window.Count), s.Window.per())
}

// period returns the period that the window is in now: "of November", "of this week", "a minute".
func (s *Standing) period() string {
	w := s.Window
	switch {
	case w.months != nil:
		// The decision may be some time old, so the time that is looked at is well before the window's end.
		late := time.Now().Add(s.ResetAfter - 24*time.Hour)
		return "of " + late.In(w.months).Month().String()
	case w.Calendar:
		return "of this " + w.unit()
	}
	return w.per()
}
