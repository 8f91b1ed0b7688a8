package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/internal/modelname"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
)

// Question is a call of which an operator asks whether it would pass.
type Question struct {
	Provider string // empty: the only one that has the model
	Model    string // as a request names it, or the name of a quota
	Sum      int    // how many tokens the call uses, if input and output are not known apart
	Tokens   llm.Tokens
	Project  string // empty: that of the key, or that of requests without one
	Key      string // the id of a virtual key
	User     string
	Run      string
}

// Verdict is whether a call would pass now.
type Verdict struct {
	ratelimit.Decision
	Code    string // that of the Decision, or "forbidden", "unpriced" or, of what an operator has paused, "paused"
	Reason  string
	Quota   string // that would be charged
	Record  Record // says who would make the call
	At      time.Time
	Limits  []ratelimit.LimitAnswer
	MaxWait time.Duration
}

// The codes of verdicts on calls that no limit denies, and that are refused all the same.
const (
	CodeForbidden = "forbidden" // the project or the key may not call the model
	CodeUnpriced  = "unpriced"  // dollars are limited, and the model has no price
)

// ErrQuestion is the error of a question that is not valid.
var ErrQuestion = errors.New("ratelimit: the question is not valid")

// questionf returns what is wrong with a question.
func questionf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrQuestion, fmt.Sprintf(format, args...))
}

// Decide says whether a call would pass now. All limits are asked as for a real call, and nothing is
// charged.
func (g *Gateway) Decide(ctx context.Context, q Question) (v Verdict, err error) {
	s := g.setup.Load()
	x := &exchange{g: g, setup: s, cfg: s.cfg, ctx: ctx}
	if err := x.askFor(&q); err != nil {
		return v, err
	}
	v = Verdict{Record: x.Record, At: time.Now()}
	v.MaxWait = g.Terms(x.path).MaxWait
	if owner, models := x.forbids(q.Model, x.call.Request.Model); models != nil {
		v.Code, v.Reason = CodeForbidden, fmt.Sprintf("%s may not call %.200q, but only %s", owner, q.Model, strings.Join(models, ", "))
		v.RetryAfter = ratelimit.Never
		return v, nil
	}
	if refused := x.checkPaused(); refused != nil {
		v.Code, v.Reason, v.Limit, v.Record = codePaused, strings.TrimPrefix(refused.Message, "not sent: "), x.Limit, x.Record
		return v, nil
	}
	return v, x.decideAnywhere(ctx, &q, &v)
}

// askFor makes the exchange that of the call in a question.
func (x *exchange) askFor(q *Question) error {
	var err error
	if x.upstream, q.Model, err = x.setup.upstreamOf(q.Provider, q.Model); err != nil {
		return err
	}
	x.Provider, x.Model = x.upstream.name, q.Model
	if err := x.askAs(q); err != nil {
		return err
	}
	x.call.Request.Model, x.call.Request.Provider = q.Model, x.upstream.Kind
	if m, _ := x.upstream.Find(q.Model); slices.Contains(m.Aliases, q.Model) {
		x.call.Request.Model = m.Name
	}
	x.models = append(x.modelRoom[:0], x.call.Request.Model)
	x.setOwners()
	x.call.Limits, x.call.Prices, x.call.Provider = &x.g.limits, &x.setup.prices, x.Provider
	return nil
}

// askAs finds out whose call a question is about.
func (x *exchange) askAs(q *Question) error {
	x.Project = cmp.Or(q.Project, defaultProject)
	if q.Key != "" {
		all := x.g.keys.List()
		i := slices.IndexFunc(all, func(k keys.Key) bool { return k.ID == q.Key })
		switch {
		case i < 0:
			return questionf("there is no key %.40q: GET /v1/keys lists all keys", q.Key)
		case q.Project != "" && q.Project != all[i].Project:
			return questionf("key %q belongs to project %q, and not to %.200q", q.Key, all[i].Project, q.Project)
		}
		x.Key, x.Project, x.keyModels = q.Key, all[i].Project, all[i].Models
	}
	if err := project.CheckID(x.Project); err != nil {
		return questionf("project: %s", message.Detail(err, project.ErrInvalid))
	}
	if q.Run != "" && x.cfg.Runs != (config.Runs{}) {
		if err := project.CheckRun(q.Run); err != nil {
			return questionf("run: %s", message.Detail(err, project.ErrInvalid))
		}
		x.Run = q.Run
	}
	if refused := x.setUser(q.User); refused != nil {
		return questionf("%s", refused.Message)
	}
	return nil
}

// decideAnywhere asks the limits of each deployment, as choose does, until one would let the call pass.
// Otherwise the verdict is that of the one that would let it pass soonest.
func (x *exchange) decideAnywhere(ctx context.Context, q *Question, v *Verdict) error {
	for i, d := range x.candidates() {
		var asked ratelimit.Asked
		x.Quota = x.upstream.quotaName(x.call.Request.Model, d.name)
		x.call.Model, x.call.Asked = x.Quota, &asked
		x.call.ShadowModel = x.g.modelMode(x.setup, x.Quota) == config.ModeShadow
		decision, err := x.call.Decide(ctx, q.Sum, q.Tokens)
		if errors.Is(err, project.ErrUnpriced) {
			v.Code, v.Reason, v.Quota, v.RetryAfter = CodeUnpriced, x.call.Why(&decision, err), x.Quota, ratelimit.Never
			return nil
		}
		if err != nil {
			return err
		}
		if i > 0 && !decision.Allowed && decision.RetryAfter >= v.RetryAfter {
			continue
		}
		v.Decision, v.Code, v.Quota, v.Limits, v.Reason = decision, string(decision.Code), x.Quota, asked.Limits(), decision.Reason()
		if decision.Allowed {
			return nil
		}
		v.Reason = x.call.Why(&decision, nil)
	}
	return nil
}

// upstreamOf returns the provider of a model, and the model as the provider knows it. Without the name
// of a provider, the model may be the name of a quota, or one that only one provider has.
func (s *setup) upstreamOf(provider, model string) (*upstream, string, error) {
	if model == "" {
		return nil, "", questionf("model is empty: it must name a model, or a quota")
	}
	if !modelname.Valid(model) { // comparing takes time that grows with the square of a name's length
		return nil, "", questionf("model is %.40q: it must have at most %d bytes of UTF-8, and no control characters", model, modelname.MaxBytes)
	}
	all := strings.Join(slices.Sorted(maps.Keys(s.upstreams)), ", ")
	if provider != "" && s.upstreams[provider] == nil {
		return nil, "", questionf("provider is %.80q: it must be one of %s", provider, all)
	}
	if provider == "" {
		provider, model = s.findProvider(model)
	}
	u := s.upstreams[provider]
	if u == nil {
		return nil, "", questionf("no provider is known to have model %.200q, or several have it: provider must be one of %s", model, all)
	}
	for _, d := range u.deployments {
		if d.name != "" {
			model = strings.TrimSuffix(model, "@"+d.name)
		}
	}
	return u, model, nil
}

// findProvider returns the provider of a model or a quota, and the name of the model there. The
// provider is empty if more than one may be meant.
func (s *setup) findProvider(name string) (provider, model string) {
	if before, after, ok := strings.Cut(name, "/"); ok && s.upstreams[before] != nil {
		return before, after
	}
	if _, ok := s.declared[name]; ok {
		return s.providerOf(name), name
	}
	var known []string
	for each, u := range s.upstreams {
		if _, ok := u.Find(name); ok || len(s.upstreams) == 1 {
			known = append(known, each)
		}
	}
	if len(known) != 1 {
		return "", name
	}
	return known[0], name
}
