package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
)

// accessLog logs requests: every request that did not pass, and a sample of those that did.
type accessLog struct {
	log    *slog.Logger
	sample atomic.Uint64 // one in this many requests that passed is logged
	passed atomic.Uint64 // requests so far
}

func newAccessLog(log *slog.Logger, sample int) *accessLog {
	a := &accessLog{log: log}
	a.resample(sample)
	return a
}

func (a *accessLog) resample(sample int) { a.sample.Store(uint64(max(sample, 1))) }

// write logs a request, unless it passed and is not in the sample.
func (a *accessLog) write(rec *Record) {
	level := levelOf(rec)
	if !a.log.Enabled(context.Background(), level) || !a.sampled(rec) {
		return
	}
	var room [maxAttrs]slog.Attr
	a.log.LogAttrs(context.Background(), level, "request", attrsOf(rec, room[:0])...)
}

// sampled reports whether to log a request. The first that passed is in the sample.
func (a *accessLog) sampled(rec *Record) bool {
	sample := a.sample.Load()
	if sample == 1 || rec.Outcome != Passed {
		return true
	}
	return (a.passed.Add(1)-1)%sample == 0
}

func levelOf(rec *Record) slog.Level {
	switch rec.Outcome {
	case Passed:
		return slog.LevelInfo
	case Lost:
		return slog.LevelError
	case Failed:
		if rec.Status < http.StatusBadRequest || rec.Status >= http.StatusInternalServerError {
			return slog.LevelError // the provider is at fault; a 4xx is the client's fault
		}
		return slog.LevelWarn
	default:
		return slog.LevelWarn
	}
}

// maxAttrs is the largest number of attributes of a line.
const maxAttrs = 26

// attrsOf appends the attributes of a line: the fields of a Record that are not empty, with
// durations in seconds.
func attrsOf(rec *Record, attrs []slog.Attr) []slog.Attr {
	text := func(name, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(name, value))
		}
	}
	number := func(name string, value int) {
		if value != 0 {
			attrs = append(attrs, slog.Int(name, value))
		}
	}
	flag := func(name string, value bool) {
		if value {
			attrs = append(attrs, slog.Bool(name, true))
		}
	}
	attrs = append(attrs, slog.Uint64("seq", rec.Seq), slog.Time("came", rec.Time), slog.String("outcome", string(rec.Outcome)))
	text("id", rec.ID)
	number("status", rec.Status)
	text("client", rec.Client)
	text("method", rec.Method)
	text("path", rec.Path)
	text("project", rec.Project)
	text("key", rec.Key)
	text("provider", rec.Provider)
	text("deployment", rec.Deployment)
	text("model", rec.Model)
	text("quota", rec.Quota)
	flag("stream", rec.Stream)
	text("limit", rec.Limit)
	attrs = append(attrs, slog.Float64("took", rec.Took.Seconds()))
	if rec.Waited > 0 {
		attrs = append(attrs, slog.Float64("waited", rec.Waited.Seconds()))
	}
	if rec.Upstream > 0 {
		attrs = append(attrs, slog.Float64("upstream", rec.Upstream.Seconds()))
	}
	text("request_id", rec.RequestID)
	number("retries", rec.Retries)
	number("input_tokens", rec.Input)
	number("output_tokens", rec.Output)
	number("cached_tokens", rec.Cached)
	flag("exact", rec.Exact)
	text("error", rec.Error)
	return attrs
}
