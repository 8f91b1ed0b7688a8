package opentelemetry

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"dappco.re/go/core/go-ratelimit/event"
)

const spanName = "rate_limiter.allow"

// Attributes of spans and metrics.
const (
	keyProject         = attribute.Key("project_id")
	keyLimitExceeded   = attribute.Key("limit_exceeded")
	keyRemainingMinute = attribute.Key("remaining_minute")
	keyModel           = attribute.Key("gen_ai.request.model")
	keyTokenType       = attribute.Key("gen_ai.token.type")
	keyOutcome         = attribute.Key("ratelimit.outcome")
	keyLimit           = attribute.Key("ratelimit.limit")
	keyCause           = attribute.Key("ratelimit.cause")
	keyShadow          = attribute.Key("ratelimit.shadow")
	keyWaited          = attribute.Key("ratelimit.waited_seconds")
	keyMode            = attribute.Key("ratelimit.mode")
	keyOwner           = attribute.Key("ratelimit.owner")
	keyPercent         = attribute.Key("ratelimit.percent")
)

// span makes the span of a decision that was made just now. It builds nothing for a span that is
// not recorded.
func (o *Observer) span(ctx context.Context, e *event.Event) {
	span := o.startSpan(ctx, e.Waited)
	if span.IsRecording() {
		describe(span, e)
	}
	span.End()
}

// startSpan returns a span that began a while ago.
func (o *Observer) startSpan(ctx context.Context, ago time.Duration) (span trace.Span) {
	if ago <= 0 {
		_, span = o.tracer.Start(ctx, spanName)
		return span
	}
	_, span = o.tracer.Start(ctx, spanName, trace.WithTimestamp(time.Now().Add(-ago)))
	return span
}

func describe(span trace.Span, e *event.Event) {
	attributes := append(make([]attribute.KeyValue, 0, 7),
		keyOutcome.String(string(e.Kind)),
		keyShadow.Bool(e.Shadow),
		keyWaited.Float64(e.Waited.Seconds()),
	)
	if e.Project != "" {
		attributes = append(attributes, keyProject.String(e.Project))
	}
	if e.Model != "" {
		attributes = append(attributes, keyModel.String(e.Model))
	}
	if e.Limit != "" && e.Kind != event.Admitted {
		attributes = append(attributes, keyLimitExceeded.String(e.Limit))
	}
	if e.RemainingMinute >= 0 {
		attributes = append(attributes, keyRemainingMinute.Int64(e.RemainingMinute))
	}
	span.SetAttributes(attributes...)
	switch e.Kind {
	case event.Admitted:
		span.SetStatus(codes.Ok, "request allowed")
	case event.Lost:
		span.SetStatus(codes.Error, cmp.Or(e.Err, errNoReason).Error())
	}
}

var errNoReason = errors.New("ratelimit: the store could not be asked")
