package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// A server that is started anew without its data, or that was flushed, has forgotten what was used. Each
// part of the keyspace has a birth mark, which the first call writes, and which every call knows. A call
// that finds another one does nothing. Then the server counts as lost until this node has put back what
// the server last said.

// errForgotten is the error of a batch that has not run, because the server has forgotten what was used.
var errForgotten = fmt.Errorf("%w: it has forgotten what was used, which is being put back", ErrLost)

// call calls the function of the library. If the link does not know the server's birth mark yet, it calls again with it.
func (l *link) call(ctx context.Context, b *batch) (rueidis.RedisResult, error) {
	for {
		born, err := l.bornOf(b)
		if err != nil {
			return rueidis.RedisResult{}, err
		}
		result := l.client.Do(ctx, l.command(b, born))
		if err, ok := rueidis.IsRedisErr(result.Error()); ok && strings.HasSuffix(err.Error(), "Function not found") {
			if err := l.load(ctx, b); err != nil {
				return rueidis.RedisResult{}, err
			}
			result = l.client.Do(ctx, l.command(b, born))
		}
		err = result.Error()
		mark, differs := birthMarkOf(err)
		if !differs {
			return result, err
		}
		if l.learn(b.queue, mark) {
			return result, errForgotten
		}
	}
}

// load loads the library at the server of a batch, which is new or has forgotten it. In a cluster, each server has
// libraries of its own, and the key of the marker determines the server.
func (l *link) load(ctx context.Context, b *batch) error {
	load := l.client.B().FunctionLoad().Replace().FunctionCode(l.text).Build()
	if !l.cfg.cluster {
		return l.client.Do(ctx, load).Error()
	}
	return l.client.Dedicated(func(c rueidis.DedicatedClient) error {
		return c.DoMulti(ctx, l.client.B().Exists().Key(l.marker(b)).Build(), load)[1].Error()
	})
}

// bornOf returns the birth mark that a batch is sent with. It returns an error if the batch must wait until
// what the server has forgotten is put back.
func (l *link) bornOf(b *batch) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !b.probes && slices.Contains(b.queue.breaker.forgot, b.queue.part) {
		return "", errForgotten
	}
	return b.queue.born, nil
}

// birthMarkOf returns the server's birth mark, if an error says that it differs from the link's.
func birthMarkOf(err error) (mark string, ok bool) {
	reply, ok := rueidis.IsRedisErr(err)
	if !ok {
		return "", false
	}
	return strings.CutPrefix(reply.Error(), "BORN ")
}

// learn records the server's birth mark. It reports whether the server has forgotten what it knew, and
// opens the breaker then.
func (l *link) learn(q *queue, mark string) (forgot bool) {
	l.mu.Lock()
	forgot = q.born != "" && q.born != mark && l.cfg.restore != nil
	q.born = mark
	if forgot && !slices.Contains(q.breaker.forgot, q.part) {
		q.breaker.forgot = append(q.breaker.forgot, q.part)
	}
	l.mu.Unlock()
	if forgot {
		l.trip(q, errForgotten)
	}
	return forgot
}

// restore puts back what the server has forgotten, and reports whether nothing is left to put back.
func (l *link) restore(b *breaker) bool {
	for {
		l.mu.Lock()
		if len(b.forgot) == 0 {
			l.mu.Unlock()
			return true
		}
		part := b.forgot[0]
		q := l.queue(part)
		born := q.born
		l.mu.Unlock()
		if l.cfg.restore(part) != nil {
			return false
		}
		l.mu.Lock()
		if q.born == born { // otherwise it has forgotten that, too
			b.forgot = slices.DeleteFunc(b.forgot, func(p int) bool { return p == part })
		}
		l.mu.Unlock()
	}
}

// direct sends an op by itself, although the breaker of its part is open.
func (l *link) direct(o *op) error {
	l.mu.Lock()
	b := l.newBatch(l.queue(o.part))
	l.mu.Unlock()
	b.requests, b.reads, b.probes, b.firstTry = []*op{o}, o.reads, true, time.Now()
	r, err := l.try(b)
	if err != nil {
		return err
	}
	o.result = resultOf(r, 0)
	return o.err
}

// failTakes answers the waiting callers of takes in a batch that the server was not ready for. What it has forgotten
// is put back only when their answers are not awaited any more: see awaitCalls.
func (l *link) failTakes(b *batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	takes := func(o *op) bool { return o.dropLate && o.waits() }
	for _, o := range b.ops {
		if takes(o) {
			o.unanswered = b.mayHaveRun
			defer o.resolve(result{err: errForgotten})
		}
	}
	if !b.mayHaveRun {
		b.ops = slices.DeleteFunc(b.ops, takes)
	}
}
