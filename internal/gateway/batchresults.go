package gateway

import (
	"io"
	"maps"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/batch"
	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
)

// batchAnswer returns what reads the answer to a request that is no call of a model: one that says how
// a batch stands, or has its results, or the response of a call in the background. It is nil for other answers, which
// are forwarded unread. Whoever fetches the results settles the batch: they are the provider's own word.
func (x *exchange) batchAnswer() func(*http.Response) io.Reader {
	names := namesIn(x.target.Path)
	get := x.r.Method == http.MethodGet
	var read func(*http.Response) io.Reader
	switch {
	case get && names.is(1, "content") && names.is(3, "files"):
		read = x.readFileResults(names.at(2))
	case get && x.upstream.Kind == dialect.Gemini && names.is(2, "files"):
		open := x.resultsIn(names.at(1))
		if open == nil {
			return nil
		}
		read = x.readResults(func() *openBatch { return open })
	case get && names.is(1, "results") && names.is(3, "batches"):
		read = x.readResults(func() *openBatch { return x.g.batches.find(batchID{x.Provider, names.at(2)}.name()) })
	case get && (names.is(1, "batches") || names.is(2, "batches")), names.is(1, "cancel") && names.is(3, "batches"):
		read = x.followBatches
	case get:
		read = x.readResponse(x.target.Path)
	case names.is(1, "cancel"):
		read = x.readResponse(path.Dir(strings.TrimRight(x.target.Path, "/")))
	}
	if read == nil {
		return nil
	}
	for _, field := range partialFields {
		delete(x.r.Header, field) // the gateway reads the answer, all of it
	}
	x.askAllFields()
	return read
}

// resultsIn returns the open batch of Gemini's whose results are downloaded, or nil. name is the last one of the path.
func (x *exchange) resultsIn(name string) *openBatch {
	file, ok := strings.CutSuffix(name, ":download")
	if !ok {
		return nil
	}
	return x.g.batches.find(fileName(x.Provider, file))
}

// followBatches finds out in which files the results of batches are. A batch that has ended without
// any has used nothing.
func (x *exchange) followBatches(response *http.Response) io.Reader {
	body, objects := x.readBatches(response)
	for _, o := range objects {
		if !o.Ended() {
			continue
		}
		open, err := x.g.batches.of(batchID{x.Provider, o.ID}.name())
		switch {
		case err != nil:
			return body // the store cannot be asked about the others either
		case open == nil:
		case o.OutputFile != "":
			x.g.batches.setFile(open, o.OutputFile)
		case o.Inline != nil || o.Succeeded():
			settleInline(open, o.Inline)
		default:
			open.Results().Settle()
		}
	}
	return body
}

// settleInline settles a batch of Gemini's by the results in its operation. Each of its calls must have one there.
func settleInline(open *openBatch, list []batch.InlineResult) {
	r := resultsReader{results: open.Results()}
	for i := range list {
		r.add(list[i].Read())
	}
	if len(list) < open.Calls() {
		r.results.Unread()
	}
	r.results.Settle()
}

// readResults returns what reads the results of an open batch as they pass, and settles the batch when all have
// passed. find returns the batch, or nil if there is none.
func (x *exchange) readResults(find func() *openBatch) func(*http.Response) io.Reader {
	return func(response *http.Response) io.Reader {
		if response.StatusCode != http.StatusOK || response.Header["Content-Encoding"] != nil {
			return response.Body
		}
		open := find()
		if open == nil {
			return response.Body
		}
		r := &resultsReader{body: response.Body, results: open.Results()}
		r.lines = batch.Lines{Max: maxResult, Grow: x.grow, Each: r.each}
		return r
	}
}

// readFileResults is readResults for a file. If no client has asked how its batch stands, and learned the file's id
// from that, the gateway asks the provider which batch the file is of.
func (x *exchange) readFileResults(file string) func(*http.Response) io.Reader {
	target, header := x.target, maps.Clone(x.r.Header) // sending changes them
	return x.readResults(func() *openBatch {
		if open := x.g.batches.find(fileName(x.Provider, file)); open != nil {
			return open
		}
		return x.findBatch(header, target, file)
	})
}

const (
	maxBatchPages = 10  // how many pages the gateway reads of the list of batches at the provider
	batchPage     = 100 // batches of a page, the most that providers allow
)

// findBatch returns the open batch whose results are in a file, from the provider's list of batches, or nil. header
// and target are those of the request for the file.
func (x *exchange) findBatch(header http.Header, target url.URL, file string) *openBatch {
	at := strings.LastIndex(strings.ToLower(target.Path), "/files/")
	if at < 0 {
		return nil
	}
	target.Path, target.RawPath = target.Path[:at]+"/batches", ""
	query := url.Values{"limit": {strconv.Itoa(batchPage)}}
	if version := target.Query()["api-version"]; version != nil { // Azure's
		query["api-version"] = version
	}
	for range maxBatchPages {
		target.RawQuery = query.Encode()
		response, err := x.get(header, target)
		if err != nil {
			return nil
		}
		_, objects := x.readBatches(response)
		response.Body.Close()
		for _, o := range objects {
			if o.OutputFile == file {
				return x.g.batches.find(batchID{x.Provider, o.ID}.name())
			}
		}
		if len(objects) < batchPage {
			return nil
		}
		query.Set("after", objects[len(objects)-1].ID)
	}
	return nil
}

// maxResult is the most bytes of a result of one call.
const maxResult = 32 << 20

// resultsReader reads the results of a batch as they pass.
type resultsReader struct {
	body    io.Reader
	lines   batch.Lines
	results *call.Results
}

func (r *resultsReader) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	if _, fault := r.lines.Write(p[:n]); fault != nil {
		r.results.Unread()
	}
	if err == io.EOF {
		if r.lines.Close() != nil {
			r.results.Unread()
		}
		r.results.Settle()
	}
	return n, err
}

// each reads one result. One that cannot be read does not end the reading.
func (r *resultsReader) each(line []byte) error {
	r.add(batch.ReadResult(line))
	return nil
}

// add adds one result, or says that it could not be read.
func (r *resultsReader) add(result batch.Result, err error) {
	switch {
	case err != nil:
		r.results.Unread()
	case result.Free:
		r.results.AddFree()
	default:
		r.results.Add(result.Model, result.Used)
	}
}
