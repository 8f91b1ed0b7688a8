package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

var errOverloaded = fmt.Errorf("%w: overloaded: %d operations wait to be sent", ErrLost, mostWaiting)

// outcome is what an error means for the batch that it was the answer to.
type outcome uint8

const (
	unknown outcome = iota // it may have run
	unsent                 // it has not run, and may soon
	late                   // it has not run: the server's clock is not what it was taken for
	refused                // it has not run, and will not soon
)

// refusal is an answer that makes no sense.
type refusal struct{ error }

// passing are the errors of servers that will serve soon, or elsewhere.
var passing = []string{
	"ASK", "BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MOVED", "NOREPLICAS", "READONLY", "TRYAGAIN", "UNBLOCKED",
}

// advice says what to do about an error.
var advice = map[string]string{
	"LOADING":    "the server is reading its data, and will serve after that",
	"MISCONF":    "the server cannot save its data: see its log",
	"NOAUTH":     "set user and password",
	"NOPERM":     "the user needs EVAL, EVALSHA, and the commands and keys of the scripts",
	"NOREPLICAS": "the server has fewer replicas than its min-replicas-to-write",
	"OOM":        "raise the server's maxmemory",
	"READONLY":   "the server is a replica: connect to its master",
	"WRONGPASS":  "check user and password",
}

func outcomeOf(err error) outcome {
	if _, ok := err.(refusal); ok {
		return refused
	}
	if _, ok := isLate(err); ok {
		return late
	}
	if reply, ok := rueidis.IsRedisErr(err); ok {
		if slices.Contains(passing, code(reply)) {
			return unsent
		}
		return refused
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return unsent
	}
	return unknown
}

// code returns an error reply's first word.
func code(err *rueidis.RedisError) string {
	code, _, _ := strings.Cut(err.Error(), " ")
	return code
}

// isLate returns the server's Unix ns if it says that a batch came too late.
func isLate(err error) (at int64, ok bool) {
	reply, ok := rueidis.IsRedisErr(err)
	if !ok {
		return 0, false
	}
	var sec, micros int64
	if _, err := fmt.Sscanf(reply.Error(), "LATE %d %d", &sec, &micros); err != nil {
		return 0, false
	}
	return sec*1e9 + micros*1e3, true
}

// because returns ErrLost with its cause; nil: there was no answer.
func (l *link) because(q *queue, cause error) error {
	if cause == nil || errors.Is(cause, context.DeadlineExceeded) {
		return fmt.Errorf("%w: no answer within %v from %s", ErrLost, l.cfg.timeout, l.where(q.part))
	}
	reply, ok := rueidis.IsRedisErr(cause)
	if !ok {
		return fmt.Errorf("%w: no connection to %s: %w", ErrLost, l.where(q.part), cause)
	}
	if advice := advice[code(reply)]; advice != "" {
		return fmt.Errorf("%w: %s says: %w (%s)", ErrLost, l.where(q.part), cause, advice)
	}
	return fmt.Errorf("%w: %s says: %w", ErrLost, l.where(q.part), cause)
}

// where names the server of a part.
func (l *link) where(part int) string {
	if l.cfg.cluster {
		return fmt.Sprintf("the master of slot %d", slotOf(strconv.Itoa(part)))
	}
	var addresses []string
	for address := range l.client.Nodes() {
		addresses = append(addresses, address)
	}
	slices.Sort(addresses)
	return strings.Join(addresses, ", ")
}

// left returns the error of a caller that leaves before its op was answered.
func (l *link) left(ctx context.Context, o *op, was state, cause error) error {
	err := ctx.Err()
	switch {
	case err != nil && was == queued:
		return fmt.Errorf("ratelimit: not asked: %w", err)
	case err != nil:
		return fmt.Errorf("ratelimit: asked, but left before the answer: %w", err)
	case was == queued:
		return fmt.Errorf("%w: not asked within %v: others before it still wait for %s", ErrLost, l.cfg.timeout, l.where(o.part))
	}
	return l.because(l.queue(o.part), cause)
}
