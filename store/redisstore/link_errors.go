package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"dappco.re/go/core/go-ratelimit/store"
	"github.com/redis/rueidis"
)

// ErrLost says that Redis did not answer in time, or cannot serve.
var ErrLost = errors.New("ratelimit: cannot reach Redis")

var errOverloaded = fmt.Errorf("%w: overloaded: %d operations wait to be sent", ErrLost, maxQueued)

// outcome is what an error means for a batch.
type outcome uint8

const (
	outcomeUnknown  outcome = iota // the batch may have run
	outcomeNotRun                  // the batch has not run, and may run if it is sent again
	outcomeTooLate                 // the batch has not run: it came too late by the server's clock
	outcomeRejected                // the batch has not run, and will not if it is sent again soon
)

// malformed is the error for an answer that cannot be decoded.
type malformed struct{ error }

// transient are the codes of errors after which a batch may run if it is sent again. "Function" is that of "Function not
// found": the library was loaded at the server that had the slot before, or somebody has flushed it since.
var transient = []string{
	"ASK", "BUSY", "CLUSTERDOWN", "Function", "LOADING", "MASTERDOWN", "MOVED", "NOREPLICAS", "READONLY", "TRYAGAIN", "UNBLOCKED",
}

// advice says what the operator can do about an error, by its code.
var advice = map[string]string{
	"LOADING":    "the server is reading its data, and will serve after that",
	"MISCONF":    "the server cannot save its data: see its log",
	"NOAUTH":     "set user and password",
	"NOPERM":     "the user needs FUNCTION, FCALL, EVAL, EVALSHA, and the commands and keys of the scripts",
	"NOREPLICAS": "the server has fewer replicas than its min-replicas-to-write",
	"OOM":        "raise the server's maxmemory",
	"READONLY":   "the server is a replica: connect to its master",
	"WRONGPASS":  "check user and password",
	"unknown":    "Redis 7.0 or newer is needed, or Valkey", // unknown command 'FCALL'
}

func outcomeOf(err error) outcome {
	if _, ok := err.(malformed); ok {
		return outcomeRejected
	}
	if errors.Is(err, errForgotten) {
		return outcomeNotRun
	}
	if _, ok := isLate(err); ok {
		return outcomeTooLate
	}
	if reply, ok := rueidis.IsRedisErr(err); ok {
		if slices.Contains(transient, code(reply)) {
			return outcomeNotRun
		}
		return outcomeRejected
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return outcomeNotRun
	}
	return outcomeUnknown
}

// code returns the code of an error reply, which is its first word.
func code(err *rueidis.RedisError) string {
	code, _, _ := strings.Cut(err.Error(), " ")
	return code
}

// isLate returns the server's time in Unix nanoseconds if it says that a batch came too late.
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

// lostError returns ErrLost with its cause. A nil cause means that there was no answer.
func (l *link) lostError(q *queue, cause error) error {
	if errors.Is(cause, errForgotten) {
		return cause
	}
	if cause == nil || errors.Is(cause, context.DeadlineExceeded) {
		return fmt.Errorf("%w: no answer within %v from %s", ErrLost, l.cfg.timeout, l.serverName(q.part))
	}
	if _, ok := rueidis.IsRedisErr(cause); !ok {
		return fmt.Errorf("%w: no connection to %s: %w", ErrLost, l.serverName(q.part), cause)
	}
	return fmt.Errorf("%w: %s says: %w", ErrLost, l.serverName(q.part), advised(cause))
}

// advised adds advice to an error of the server, if there is any.
func advised(err error) error {
	if reply, ok := rueidis.IsRedisErr(err); ok && advice[code(reply)] != "" {
		return fmt.Errorf("%w (%s)", err, advice[code(reply)])
	}
	return err
}

// commandError returns the error of a command that is no script call.
func commandError(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, rueidis.ErrClosing):
		return store.ErrClosed
	case ctx.Err() != nil:
		return fmt.Errorf("ratelimit: waiting for redis: %w", ctx.Err())
	}
	return fmt.Errorf("%w: %w", ErrLost, advised(err))
}

// serverName names the server of a part.
func (l *link) serverName(part int) string {
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

// abandonError returns the error of a caller that leaves before its op was answered.
func (l *link) abandonError(ctx context.Context, o *op, was state, cause error) error {
	err := ctx.Err()
	switch {
	case err != nil && was == opQueued:
		return fmt.Errorf("ratelimit: not asked: %w", err)
	case err != nil:
		return fmt.Errorf("ratelimit: asked, but left before the answer: %w", err)
	case was == opQueued:
		return fmt.Errorf("%w: not asked within %v: others before it still wait for %s", ErrLost, l.cfg.timeout, l.serverName(o.part))
	}
	return l.lostError(l.queue(o.part), cause)
}
