package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
)

// accessLog logs requests: every request that did not pass, and a sample of those that did.
type accessLog struct {
	log    *slog.Logger
	sample atomic.Uint64 // one in this many requests that passed is logged
	passed atomic.Uint64 // how many requests have passed so far
}

func newAccessLog(log *slog.Logger, sample int) *accessLog {
	a := &accessLog{log: log}
	a.resample(sample)
	return a
}

func (a *accessLog) resample(sample int) { a.sample.Store(uint64(max(sample, 1))) }

// write logs a request, unless the request passed and is not in the sample.
func (a *accessLog) write(rec *Record) {
	level := levelOf(rec)
	if !a.log.Enabled(context.Background(), level) || !a.sampled(rec) {
		return
	}
	var room [maxAttrs]slog.Attr
	a.log.LogAttrs(context.Background(), level, "request", attrsOf(rec, room[:0])...)
}

// sampled reports whether to log a request. The first that passed is in the sample, and so are all that a
// limit in shadow would have denied.
func (a *accessLog) sampled(rec *Record) bool {
	sample := a.sample.Load()
	if sample == 1 || rec.Outcome != Passed || rec.ShadowLimit != "" {
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
const maxAttrs = 33

// attrsOf appends the attributes of a line: the fields of a Record that are not empty, with
// durations in seconds.
func attrsOf(rec *Record, attrs []slog.Attr) []slog.Attr {
	return slices.DeleteFunc(append(attrs,
		slog.Uint64("seq", rec.Seq),
		slog.Time("came", rec.Time),
		slog.String("outcome", string(rec.Outcome)),
		slog.String("id", rec.ID),
		slog.Int("status", rec.Status),
		slog.String("client", rec.Client),
		slog.String("method", rec.Method),
		slog.String("path", rec.Path),
		slog.String("project", rec.Project),
		slog.String("user", rec.User),
		slog.String("run", rec.Run),
		slog.String("key", rec.Key),
		slog.String("provider", rec.Provider),
		slog.String("deployment", rec.Deployment),
		slog.String("model", rec.Model),
		slog.String("quota", rec.Quota),
		slog.Bool("stream", rec.Stream),
		slog.String("limit", rec.Limit),
		slog.String("shadow_limit", rec.ShadowLimit),
		slog.String("shadow_owner", rec.ShadowOwner),
		slog.Int("fit", rec.Fit),
		slog.String("scope", rec.Scope),
		slog.String("owner", rec.Owner),
		slog.Float64("took", rec.Took.Seconds()),
		slog.Float64("waited", rec.Waited.Seconds()),
		slog.Float64("upstream", rec.Upstream.Seconds()),
		slog.String("request_id", rec.RequestID),
		slog.Int("retries", rec.Retries),
		slog.Int("input_tokens", rec.Input),
		slog.Int("output_tokens", rec.Output),
		slog.Int("cached_tokens", rec.Cached),
		slog.Bool("exact", rec.Exact),
		slog.String("error", rec.Error),
	), func(a slog.Attr) bool { return a.Key != "took" && slices.ContainsFunc(emptyValues, a.Value.Equal) })
}

var emptyValues = []slog.Value{slog.StringValue(""), slog.IntValue(0), slog.BoolValue(false), slog.Float64Value(0)}
