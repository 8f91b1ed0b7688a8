package gateway

import (
	"errors"
	"io"
	"net/http"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/batch"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
)

// maxStored is the most bytes of what a provider says of something that it has stored.
const maxStored = 1 << 16

// sendTime is more time than it takes to send a request, beside its wait in line.
const sendTime = time.Minute

// fewPaths is how many descriptions a request may have fetched without being counted among those that read files.
const fewPaths = 2

// notRead stands for a request to an endpoint that the gateway knows, in a form that it does not read.
var notRead = new(refusal)

// readStored reads a request whose cost depends on something that the provider has stored: a video, or a file with which
// a model is trained. about is false if the body says everything. An endpoint that has a price of its own is not read.
func (x *exchange) readStored() (about bool, refused *refusal) {
	stored, err := x.endpoint.Stored(x.target.Path, x.r.Header.Get("Content-Type"), x.body)
	if err != nil {
		return true, refusalf(http.StatusBadRequest, "%s", message.Plain(err))
	}
	if stored == nil {
		return false, nil
	}
	_, priced := x.upstream.EndpointPrice(x.r.Method, x.target.Path)
	switch {
	case x.target.RawPath != "":
		return true, refusalf(http.StatusBadRequest, "the path is escaped where it need not be")
	case priced || len(stored.Paths) == 0:
		return true, notRead
	}
	return true, x.fetchStored(stored)
}

// fetchStored asks the provider for what a request is about, with the account that the request is made with, and reads
// the request with it. A project that has nothing left is refused before. Of what has an id, a provider changes nothing
// but when a cache ends.
func (x *exchange) fetchStored(stored *dialect.Stored) *refusal {
	if refused := x.checkLeftBefore(); refused != nil {
		return refused
	}
	if stored.Lines || len(stored.Paths) > fewPaths {
		if !x.g.batches.reads.begin(x.Project) {
			return tooManyFiles()
		}
		defer x.g.batches.reads.end(x.Project)
	}
	stored.Now, stored.Late = x.g.now(), x.maxWait()+sendTime
	for _, path := range stored.Paths {
		if refused := x.fetchOne(stored, path); refused != nil {
			return refused
		}
	}
	r, err := stored.Request()
	if err != nil || r.Model == "" && x.endpoint.API.IsAbout() {
		return refusalf(http.StatusBadRequest, "what the request costs is not known: what the provider says of %.200q is not what the gateway expects", stored.Paths)
	}
	x.call.Request = r
	return nil
}

// readSearched reads a response whose tools search vector stores: these live longer for that. Where nothing limits dollars
// or byte days, a store of which the provider does not say enough is not counted.
func (x *exchange) readSearched() *refusal {
	stored := x.call.Request.SearchedStores(x.target.Path)
	if stored == nil {
		return nil
	}
	limits, owners := hidden.Of[engine.Projects](x.g.limits.Projects), engine.OwnersOf(&x.call.Call)
	limited, _, err := limits.LimitedBy(owners, kind.ByteDays.Name())
	if limited == "" && err == nil {
		if !x.call.PricesStorage() {
			return nil
		}
		limited, _, err = limits.LimitedBy(owners, project.Dollars)
	}
	if err != nil {
		return x.undecided(err)
	}
	own := x.call.Request
	var refused *refusal
	if len(stored.Paths) > 0 {
		refused = x.fetchStored(stored)
	} else {
		refused = refusalf(http.StatusBadRequest, "what the request costs is not known: vector_store_ids of its tools must be ids of vector stores, %d at most", dialect.MostSearchedStores)
	}
	if limited == "" && (refused != nil || x.call.Request.Units[llm.ByteDays] < 0) {
		x.call.Request, refused = own, nil
		x.Limit, x.Scope, x.Owner, x.Error = "", "", "", ""
	}
	return refused
}

// fetchOne asks the provider for what is at a path, and adds it to what is stored.
func (x *exchange) fetchOne(stored *dialect.Stored, path string) *refusal {
	sent, target := x.sent, x.target
	target.Path = path
	if query := target.Query(); query.Has("updateMask") || query.Has("update_mask") { // which only a change has
		query.Del("updateMask")
		query.Del("update_mask")
		target.RawQuery = query.Encode()
	}
	response, err := x.get(x.r.Header, target)
	if x.sent = sent; err != nil {
		return x.unreached(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return refusalf(http.StatusBadRequest, "what the request costs is not known: the provider answers with %d when the gateway asks for %.200q", response.StatusCode, path)
	}
	if stored.Lines {
		return x.readLines(response.Body, path, stored.Add)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxStored))
	if err != nil {
		return x.unreached(err)
	}
	stored.Add(text)
	return nil
}

// checkLeftBefore is checkLeft for a call that is no batch. A change of a cache may cost nothing but its request.
func (x *exchange) checkLeftBefore() *refusal {
	before := x.call
	defer func() { x.call = before }()
	if x.r.Method == http.MethodPatch {
		return x.checkAtLeast(0)
	}
	return x.checkLeft()
}

// readLines gives each line of a file of the provider's to a function. name is what a refusal calls the file.
func (x *exchange) readLines(body io.Reader, name string, each func(line []byte) error) *refusal {
	lines := &batch.Lines{Max: int(x.cfg.Server.MaxBody), Grow: x.grow, Each: each}
	_, err := io.Copy(lines, io.LimitReader(body, maxPassed+1))
	switch fault := lines.Close(); {
	case errors.Is(fault, errNoMemory):
		return noMemory()
	case err == nil && fault == nil && lines.Bytes() > maxPassed:
		return refusalf(http.StatusRequestEntityTooLarge, "the file %q is longer than %d bytes", name, maxPassed)
	case fault != nil && (err == nil || errors.Is(err, fault)):
		return refusalf(http.StatusBadRequest, "the file %q: %s", name, message.Plain(fault))
	case err != nil:
		return x.unreached(err)
	}
	return nil
}
