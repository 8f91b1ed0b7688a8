package grpclimit

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"dappco.re/go/core/go-ratelimit/internal/admit"
	"dappco.re/go/core/go-ratelimit/internal/kind"
)

// minDelay is the least RetryDelay. A call that may try again at once, because another call is
// just being decided, must not do so in a busy loop.
const minDelay = 10 * time.Millisecond

// refusal returns the error of a call that does not pass.
func refusal(ctx context.Context, id string, result *admit.Result) error {
	switch result.Answer {
	case admit.Invalid:
		return status.Error(codes.InvalidArgument, result.Reason())
	case admit.Lost:
		return status.Error(codes.Unavailable, result.Reason())
	case admit.Left:
		return status.FromContextError(ctx.Err()).Err()
	}
	details := []protoadapt.MessageV1{quotaFailure(id, result)}
	if result.Answer == admit.Later {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(max(result.Decision.RetryAfter, minDelay))})
	}
	refused := status.New(codes.ResourceExhausted, result.Reason())
	if detailed, err := refused.WithDetails(details...); err == nil {
		refused = detailed
	}
	return refused.Err()
}

// quotaFailure names the windows that deny a call. For a call that waited behind others, it
// names the window that the others wait for.
func quotaFailure(id string, result *admit.Result) *errdetails.QuotaFailure {
	failure := &errdetails.QuotaFailure{}
	windows := result.Windows()
	for i := range windows {
		s := &windows[i]
		if result.Denial(s) == 0 {
			continue
		}
		unit := kind.Counted(s.Window.Unit)
		failure.Violations = append(failure.Violations, &errdetails.QuotaFailure_Violation{
			Subject:     subject(s.Owner),
			Description: fmt.Sprintf("%d %s in %v, of which %d are left", s.Window.Count, unit, s.Window.Period, s.Remaining),
			QuotaMetric: unit,
			QuotaId:     result.Name(s),
			QuotaValue:  s.Window.Count,
		})
	}
	if failure.Violations == nil {
		failure.Violations = []*errdetails.QuotaFailure_Violation{{Subject: subject(cmp.Or(result.Decision.Owner, id)), QuotaId: result.Exceeded()}}
	}
	return failure
}

// subject returns the owner of a window as a subject, such as "project:acme" or "key:k". It is empty
// for a plain limiter, whose keys are not shown.
func subject(owner string) string {
	kind, id, ok := strings.Cut(owner, " ")
	switch {
	case owner == "":
		return ""
	case !ok:
		return "project:" + owner
	}
	return kind + ":" + id
}
