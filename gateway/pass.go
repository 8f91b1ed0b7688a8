package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
)

// pass hands on what is no call of a model: it counts as a request of the project's.
func (x *exchange) pass() *refusal {
	if strings.HasSuffix(x.target.Path, "/invoke-with-bidirectional-stream") {
		return x.bad(http.StatusBadRequest, "streams in both directions are not supported: the gateway could not count their tokens")
	}
	if (x.upstream.Kind == llm.Gemini || x.upstream.Kind == llm.Vertex) && wraps(x.target.Path) {
		return x.bad(http.StatusBadRequest, "batches of requests and remote procedure calls are not supported: the gateway could not see which models they call")
	}
	if len(x.rules.Models) > 0 && !harmless(x.r.Method, x.target.Path) {
		return x.bad(http.StatusForbidden, fmt.Sprintf("project %q may only call %s: the gateway cannot tell which model this request is for", x.Project, strings.Join(x.rules.Models, ", ")))
	}
	if x.r.ContentLength > mostPassed {
		return x.tooLong(mostPassed)
	}
	d := x.upstream.deployments[0]
	x.Deployment = d.name
	body := newUpload(x)
	defer body.end()
	sent, length, no := x.passed(d, body)
	if no != nil {
		return no
	}
	if no := x.charge(); no != nil {
		return no
	}
	response, err := x.send(d, sent, length)
	switch {
	case err != nil && body.late():
		return x.bad(http.StatusRequestTimeout, fmt.Sprintf("nothing of the body has come for %v", x.cfg.Server.BodyTimeout))
	case err != nil && body.long():
		return x.tooLong(mostPassed)
	case err != nil:
		return x.unreached(err)
	}
	defer response.Body.Close()
	x.hand(response, response.Body)
	return nil
}

// charge charges one request to the project, in its turn if it may wait for that.
func (x *exchange) charge() (no *refusal) {
	began := time.Now()
	ctx := &inLine{Context: x.ctx, serving: x.g.serving}
	defer ctx.leave()
	x.call.Project = x.Project
	d, err := x.g.limits.Projects.Spend(ctx, project.Call{Project: x.Project, MaxWait: x.patience()})
	x.decision = ratelimit.Decision{Allowed: d.Allowed, Limit: d.Exceeded, RetryAfter: d.RetryAfter, Project: &d}
	x.Waited = time.Since(began)
	switch {
	case err == nil && x.decision.Allowed:
		return nil
	case x.ctx.Err() != nil:
		return x.leave()
	case ctx.Err() != nil:
		return x.busy()
	case err == nil, call.Denied(x.ctx, err):
		return x.denied(err)
	}
	return x.failed(err)
}

// wraps reports whether a path is one on which all of Google's APIs take calls of their methods
// in another form: many HTTP requests in one body, or gRPC and what stands for it in browsers.
func wraps(path string) bool {
	first, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	method := strings.HasPrefix(first, "google.") && rest != "" // google.ai.generativelanguage.v1.GenerativeService/GenerateContent
	return method || first == "$rpc" || first == "batch"
}

// harmless reports whether a request that is no call of a model that can be read calls
// none for certain.
func harmless(method, path string) bool {
	if method == http.MethodGet || method == http.MethodHead || method == http.MethodDelete || method == http.MethodOptions {
		return true
	}
	return strings.HasSuffix(path, "/count_tokens") || strings.HasSuffix(path, ":countTokens") || strings.HasSuffix(path, "/input_tokens") || strings.HasSuffix(path, "/count-tokens")
}
