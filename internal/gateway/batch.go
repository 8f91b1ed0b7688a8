package gateway

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/batch"
	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/internal/wire"
)

// submitsBatch returns how a request is served that submits a batch, or nil if it does not: with its
// calls in its body, as Anthropic and Gemini have it, or in a file, as OpenAI has it.
func (x *exchange) submitsBatch() func() *refusal {
	names := namesIn(x.target.Path)
	if model, ok := strings.CutSuffix(names.at(1), ":batchGenerateContent"); ok && x.r.Method == http.MethodPost && x.upstream.Kind == dialect.Gemini {
		return func() *refusal { return x.submit(func(b *call.Batch) *refusal { return x.readGenerate(b, model) }) }
	}
	switch {
	case x.r.Method != http.MethodPost || !names.is(1, "batches"):
		return nil
	case names.is(2, "messages"):
		return func() *refusal { return x.submit(x.readInline) }
	case dialect.ErrorAPI(x.upstream.Kind) == dialect.Chat:
		return func() *refusal { return x.submit(x.readFile) }
	}
	return nil
}

// submit charges a batch to the project, and forwards it. read reads the calls of the batch.
func (x *exchange) submit(read func(*call.Batch) *refusal) *refusal {
	if x.target.RawPath != "" {
		return refusalf(http.StatusBadRequest, "the path is escaped where it need not be")
	}
	if refused := firstRefusal(x.checkEncoding, x.readBody, x.checkBodyForKeys, x.checkLeft); refused != nil {
		return refused
	}
	delete(x.r.Header, "Accept-Encoding") // the gateway reads the answer
	b := &call.Batch{Limits: &x.g.limits, Prices: &x.setup.prices, Provider: x.Provider}
	if refused := read(b); refused != nil {
		return refused
	}
	if refused := x.checkBatch(b); refused != nil {
		return refused
	}
	if refused := x.chargeBatch(b); refused != nil {
		return refused
	}
	if refused := x.checkFile(); refused != nil {
		b.Cancel()
		return refused
	}
	opened := false
	defer func() {
		if !opened { // nothing will settle it
			b.Unknown()
		}
	}()
	d := x.upstream.deployments[0]
	x.Deployment = d.name
	response, err := x.send(d, &wire.Pieces{x.body}, int64(len(x.body)))
	if err != nil {
		if !x.sent {
			b.Cancel()
		}
		return x.unreached(err)
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		b.Failed(response.StatusCode)
		x.forward(response, response.Body)
		return nil
	}
	body, objects := x.readBatches(response)
	if len(objects) == 1 && objects[0].ID != "" && b.Reads() {
		opened = true
		x.g.batches.open(batchID{x.Provider, objects[0].ID}.name(), b)
	}
	x.forward(response, body)
	return nil
}

// checkBatch refuses a batch without calls, or with calls of models that the project may not call.
func (x *exchange) checkBatch(b *call.Batch) *refusal {
	if b.Calls() == 0 {
		return refusalf(http.StatusBadRequest, "the batch has no calls")
	}
	models := b.Models()
	for _, model := range models {
		if owner, allowed := x.forbids(model); allowed != nil {
			return refusalf(http.StatusForbidden, "%s may not call %q, but only %s", owner, model, strings.Join(allowed, ", "))
		}
	}
	model := books.Other
	if len(models) == 1 {
		x.Model, model = models[0], models[0]
	}
	if x.g.books.keeps(x.cfg) {
		b.Owner = &books.Owner{Project: x.path, Model: x.Provider + "/" + model, Key: x.Key}
	}
	return nil
}

// chargeBatch charges what the batch is expected to use, as a whole. It counts as one request. If it
// may wait, it waits for its turn.
func (x *exchange) chargeBatch(b *call.Batch) *refusal {
	x.models = b.Models()
	b.Deny(&x.call)
	c := x.batchCall()
	for _, model := range x.models {
		quota := x.upstream.quotaName(model, x.upstream.deployments[0].name)
		q, _ := x.g.limits.Models.Quota(quota)
		switch {
		case q.MaxEnqueuedTokens == 0:
		case len(x.models) > 1:
			return refusalf(http.StatusBadRequest, "the batch calls %d models, of which %q has max_enqueued_tokens: submit a batch for each model", len(x.models), model)
		default:
			x.Quota, c.Model, c.ShadowModel = quota, quota, x.g.modelMode(x.setup, quota) == config.ModeShadow
		}
	}
	return x.decide(func(ctx context.Context) (err error) {
		x.decision, err = b.Acquire(ctx, c)
		return err
	}, b.Cancel)
}

// expect adds a call with a body to a batch.
func (x *exchange) expect(b *call.Batch, r *dialect.Request, body []byte) error {
	if err := x.mention(body); err != nil {
		return err
	}
	free := *r == (dialect.Request{})
	r.Model = cmp.Or(r.Model, x.upstream.Unnamed)
	if owner, allowed := x.forbids(); allowed != nil && (r.Fallbacks || r.API == "") {
		return fmt.Errorf("%s may only call %s: the gateway cannot tell which model answers", owner, strings.Join(allowed, ", "))
	}
	if free {
		b.ExpectPriced(0)
		return nil
	}
	return b.Expect(x.Project, r, 1)
}

// readGenerate reads the calls of a batch of Gemini's in the body. Of those in a file, it is known what was read when the
// file was uploaded. A batch with a file that was not read is a request to an endpoint that the gateway does not read.
func (x *exchange) readGenerate(b *call.Batch, model string) *refusal {
	file, err := batch.EachGenerate(x.body, model, func(r dialect.Request, body []byte) error { return x.expect(b, &r, body) })
	if err != nil {
		return refusalf(http.StatusBadRequest, "%s", message.Plain(err))
	}
	if file == "" {
		return nil
	}
	if owner, allowed := x.forbids(model); allowed != nil {
		return refusalf(http.StatusForbidden, "%s may not call %q, but only %s", owner, model, strings.Join(allowed, ", "))
	}
	if _, priced := x.upstream.EndpointPrice(x.r.Method, x.target.Path); !priced {
		if known, refused := x.expectFile(b, file, model); known || refused != nil {
			return refused
		}
	}
	b.ExpectPriced(x.passedPrice())
	refused := x.checkUnknown()
	if refused != nil {
		refused.Message += "; or the file must be uploaded through the gateway, with one request in each line"
	}
	return refused
}

// readInline reads the calls in the body.
func (x *exchange) readInline(b *call.Batch) *refusal {
	err := batch.EachInline(x.body, func(r dialect.Request, body []byte) error { return x.expect(b, &r, body) })
	if err != nil {
		return refusalf(http.StatusBadRequest, "%s", message.Plain(err))
	}
	return nil
}

// readFile reads the calls in the file that the body names, from the provider.
func (x *exchange) readFile(b *call.Batch) *refusal {
	id, err := batch.InputFile(x.body)
	if err != nil {
		return refusalf(http.StatusBadRequest, "%s", message.Plain(err))
	}
	if !x.g.batches.reads.begin(x.Project) {
		return tooManyFiles()
	}
	defer x.g.batches.reads.end(x.Project)
	response, err := x.fetchFile(id)
	if err != nil {
		return x.unreached(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return refusalf(http.StatusBadRequest, "the calls in the file %q cannot be counted: the provider answers with %d when the gateway reads it", id, response.StatusCode)
	}
	return x.readLines(response.Body, id, func(line []byte) error {
		r, body, err := batch.ReadLine(line, x.upstream.Kind)
		if err != nil {
			return err
		}
		return x.expect(b, &r, body)
	})
}

// fetchFile asks the provider for a file, with the account that the batch is submitted with.
func (x *exchange) fetchFile(id string) (*http.Response, error) {
	path := strings.TrimRight(x.target.Path, "/")
	target := x.target
	target.Path = path[:len(path)-len("/batches")] + "/files/" + id + "/content"
	return x.get(x.r.Header, target)
}

// get sends a request of the gateway's own for a client's request, with its account and copies of its headers.
func (x *exchange) get(h http.Header, target url.URL) (*http.Response, error) {
	request, before, id, took := x.r, x.target, x.RequestID, x.Upstream
	defer func() { x.r, x.target, x.RequestID, x.Upstream = request, before, id, took }()
	own := *x.r
	own.Method, own.ContentLength, own.Header = http.MethodGet, 0, maps.Clone(h)
	for _, field := range []string{"Content-Type", "Content-Length", "Idempotency-Key", "Accept-Encoding"} {
		delete(own.Header, field)
	}
	x.r, x.target = &own, target
	return x.send(x.upstream.deployments[0], http.NoBody, 0)
}

// maxBatchAnswer is how many bytes are read of an answer that is about batches: a list has a hundred.
const maxBatchAnswer = 1 << 20

// readBatches reads which batches an answer is about. It returns the whole body, for the client.
func (x *exchange) readBatches(response *http.Response) (io.Reader, []batch.Object) {
	if response.StatusCode/100 != 2 || response.Header["Content-Encoding"] != nil {
		return response.Body, nil
	}
	if x.upstream.Kind == dialect.Gemini {
		text, _ := x.readAnswer(response.Body, maxResult) // an error comes again, or what was not read follows
		return io.MultiReader(bytes.NewReader(text), response.Body), batch.ReadOperation(text)
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxBatchAnswer)) // an error comes again
	objects := batch.ReadObjects(text)
	if changed := x.replaceResultsURLs(text); len(changed) < len(text) {
		text, response.ContentLength = changed, -1
		response.Header.Del("Content-Length")
	}
	return io.MultiReader(bytes.NewReader(text), response.Body), objects
}

// readAnswer reads an answer of at most the given number of bytes. It reserves memory from the bound on all bodies as
// the answer grows.
func (x *exchange) readAnswer(r io.Reader, most int) (text []byte, err error) {
	for len(text) < most {
		if len(text) == cap(text) {
			if text, err = x.grow(text, int64(min(max(2*len(text), 1<<16), most))); err != nil {
				return text, err
			}
		}
		n, err := r.Read(text[len(text):min(cap(text), most)])
		text = text[:len(text)+n]
		if err != nil {
			return text, err
		}
	}
	return text, nil
}

// resultsURL finds the address of the results of a batch of Anthropic's: what stands before it, its host, its path.
var resultsURL = regexp.MustCompile(`("results_url"\s*:\s*")https?:(?:\\?/){2}([^/"\\]+)([^"]*)`)

// replaceResultsURLs replaces the addresses of the results of batches of Anthropic's. SDKs would fetch the results from
// the provider itself, with a virtual key. They add an address without a host to their own base URL, which is that of
// the gateway, so the path of the provider's base_url must not be in it either.
func (x *exchange) replaceResultsURLs(text []byte) []byte {
	base := x.upstream.deployments[0].base.EscapedPath()
	return resultsURL.ReplaceAllFunc(text, func(found []byte) []byte {
		part := resultsURL.FindSubmatch(found)
		path := strings.ReplaceAll(string(part[3]), `\/`, "/")
		if below(path, base) {
			path = path[len(base):]
		}
		return append(part[1], path...)
	})
}
