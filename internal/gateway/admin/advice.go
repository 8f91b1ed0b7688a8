package admin

import (
	"fmt"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/decision"
	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/numeral"
	"dappco.re/go/core/go-ratelimit/price"
)

// sentence says what became of a request, and why.
func sentence(e *gateway.Explained) string {
	what := "The request"
	if e.Model != "" {
		what = fmt.Sprintf("The call of model %q", e.Model)
	}
	if e.Project != "" {
		what += fmt.Sprintf(" by project %q", e.Project)
	}
	if e.User != "" {
		what += fmt.Sprintf(" for user %q", e.User)
	}
	why := strings.TrimPrefix(e.Error, "not sent: ")
	if e.Waited >= time.Millisecond && e.Outcome != gateway.Refused {
		what += fmt.Sprintf(" waited %s, and", e.Waited.Round(time.Millisecond))
	}
	switch e.Outcome {
	case gateway.Passed:
		if e.ShadowLimit != "" {
			return fmt.Sprintf("%s passed: %s of %s would have denied it, and is in shadow.", what, e.ShadowLimit, shadowOwner(e))
		}
		return what + " passed: every limit had enough left."
	case gateway.Denied:
		return what + " was denied: " + why + "."
	case gateway.Refused:
		return what + " was refused before any limit was asked: " + why + "."
	case gateway.Throttled:
		return fmt.Sprintf("%s was admitted by every limit here, and throttled by the provider, which answered with %d.", what, e.Status)
	case gateway.Lost:
		return what + " was denied because the store that counts did not answer."
	case gateway.Cut:
		return what + " was admitted, and its answer was " + why + "."
	case gateway.Left:
		return what + " ended because the client left."
	}
	if why == "" {
		why = fmt.Sprintf("the provider answered with %d", e.Status)
	}
	return what + " was admitted by every limit, and failed: " + why + "."
}

// shadowOwner returns the owner of the limit in shadow that would have denied a request, for people.
func shadowOwner(e *gateway.Explained) string {
	if e.ShadowOwner == e.Quota {
		return fmt.Sprintf("model %q", e.Quota)
	}
	return decision.OwnerText(e.ShadowOwner)
}

// longestWait is the longest wait that is advised. SDKs wait ten minutes for an answer.
const longestWait = 10 * time.Minute

// advice says what would have to change for a request that was denied.
func advice(e *gateway.Explained, limits []AskedLimit) []string {
	list := []string{}
	if e.Outcome != gateway.Denied {
		return list
	}
	if e.Limit == gateway.LimitPaused {
		return append(list, fmt.Sprintf("Resume %s %q.", e.Scope, e.Owner))
	}
	wait, denied := 0.0, false
	for i := range limits {
		if l := &limits[i]; !l.Enough {
			list, denied = append(list, l.advice()), true
			if l.Unit != "calls" { // nobody knows when a call ends: its lease is only the latest time
				wait = max(wait, l.RetryAfter)
			}
			if l.Never || l.forGood() {
				return list // to wait does not help
			}
		}
	}
	switch {
	case denied && wait == 0 && e.MaxWait == 0:
		list = append(list, fmt.Sprintf("Raise max_wait of project %q (0s): its calls do not wait.", e.Project))
	case denied && e.MaxWait.Seconds() <= wait && wait > 0 && wait <= longestWait.Seconds():
		list = append(list, fmt.Sprintf("Raise max_wait of project %q (%s) above %s: this call would have passed.", e.Project, inWords(e.MaxWait.Seconds()), inWords(wait)))
	case !denied && e.Status == 403:
		list = append(list, "Give the model a price in prices of the configuration, or set in unpriced what calls without a price cost; for a request that does not call a model, as in unpriced: {request: 0.04}.")
	case !denied:
		list = append(list, "Every limit had enough left, but earlier calls are waiting: send it again later, or raise max_wait of its project, so that it waits, too.")
	}
	return list
}

// forGood reports whether what is used of the limit does not come back.
func (l *AskedLimit) forGood() bool { return l.Scope == "run" || l.Limit == "dollars" }

// advice says what would have to change so that the limit lets the call pass.
func (l *AskedLimit) advice() string {
	raise := fmt.Sprintf("raise %s of %s %q from %s to at least %s", l.Setting, l.Scope, l.Owner, l.amount(l.Max), l.amount(l.Max-l.Remaining+l.Needed))
	if l.Scope == "run" {
		raise = fmt.Sprintf("raise %s of the configuration from %s to at least %s", l.Setting, l.amount(l.Max), l.amount(l.Max-l.Remaining+l.Needed))
	}
	wait, less := "Wait "+inWords(l.RetryAfter), "Ask for at most "+l.amount(l.Max)+" at once"
	if l.Unit == "nanodollars" {
		less = "Lower the cost of the call to at most " + l.amount(l.Max) + ", with a shorter prompt or a smaller max_tokens"
	}
	switch {
	case l.Limit == "paused":
		return fmt.Sprintf("%s: the provider takes no calls of %q until then.", wait, l.Owner)
	case l.Never && l.Share != nil:
		return fmt.Sprintf("%s, or raise max_share of the project: the call needs %s.", less, l.amount(l.Needed))
	case l.Never:
		return fmt.Sprintf("%s, or raise %s of %s %q to at least %s.", less, l.Setting, l.Scope, l.Owner, l.amount(l.Needed))
	case l.Share != nil:
		of := fmt.Sprintf("%s of %s %q", LimitInWords(strings.TrimSuffix(l.Limit, "_share")), l.Scope, l.Owner)
		used := fmt.Sprintf("used %s of its share of %s", l.amount(l.Share.Used), l.amount(l.Share.Max))
		if l.Share.Projects < 2 {
			return fmt.Sprintf("%s, or raise the project's max_share: it has %s of %s.", wait, used, of)
		}
		return fmt.Sprintf("%s, or raise the project's weight or its min_share: %d projects share %s, and this one has %s.", wait, l.Share.Projects, of, used)
	case l.Scope == "run":
		return "Begin a new run, or " + raise + ": the budget of a run does not reset."
	case l.forGood():
		return capital(raise) + ": it does not reset."
	case l.Setting == "pace":
		return fmt.Sprintf("%s, or raise burst of model %q: its quota is paced, and at most %s pass at once.", wait, l.Owner, l.amount(l.Max))
	case l.Unit == "calls":
		return fmt.Sprintf("Wait until one of the %d calls under way ends, or %s.", l.Max-l.Remaining, raise)
	}
	return wait + ", or " + raise + "."
}

// amount returns an amount of what the limit counts, for people.
func (l *AskedLimit) amount(n int64) string {
	if l.Unit == "nanodollars" {
		return price.Amount(n).String()
	}
	return numeral.Grouped(n) + " " + l.Unit
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// inWords returns seconds for people, rounded up: the longer, the coarser.
func inWords(seconds float64) string {
	const day = 24 * time.Hour
	d, unit := time.Duration(seconds*float64(time.Second)), time.Second
	switch {
	case d < time.Second:
		unit = time.Millisecond
	case d > 2*day:
		return fmt.Sprintf("%d days", (d+day-1)/day)
	case d > time.Hour:
		unit = time.Minute
	}
	text := (d + unit - 1).Truncate(unit).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}
