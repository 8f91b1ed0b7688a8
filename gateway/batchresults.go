package gateway

import (
	"io"
	"net/http"

	"dappco.re/go/core/go-ratelimit/internal/batch"
	"dappco.re/go/core/go-ratelimit/internal/call"
)

// batchAnswer returns what reads the answer to a request that is no call of a model: one that says how
// a batch stands, or has its results. Other answers are forwarded unread.
func (x *exchange) batchAnswer() func(*http.Response) io.Reader {
	unread := func(response *http.Response) io.Reader { return response.Body }
	at := namesIn(x.target.Path)
	get := x.r.Method == http.MethodGet && x.r.Header["Range"] == nil
	var read func(*http.Response) io.Reader
	switch {
	case get && at(1) == "content" && at(3) == "files":
		read = x.settles(fileName(x.Provider, at(2)))
	case get && at(1) == "results" && at(3) == "batches":
		read = x.settles(batchID{x.Provider, at(2)}.name())
	case get && (at(1) == "batches" || at(2) == "batches"), at(1) == "cancel" && at(3) == "batches":
		read = x.followBatches
	}
	if read == nil {
		return unread
	}
	delete(x.r.Header, "Accept-Encoding") // the gateway reads the answer
	return read
}

// followBatches finds out in which files the results of batches are. A batch that has ended without
// any has used nothing.
func (x *exchange) followBatches(response *http.Response) io.Reader {
	body, objects := readBatches(response)
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
		case open.project == x.Project:
			open.Results().Settle()
		}
	}
	return body
}

// settles returns what reads the results of an open batch, by its name in the store, as they pass, and settles
// the batch when all have passed. It is nil if the project has no such batch.
func (x *exchange) settles(name string) func(*http.Response) io.Reader {
	open, err := x.g.batches.of(name)
	if err != nil || open == nil || open.project != x.Project {
		return nil
	}
	return func(response *http.Response) io.Reader {
		if response.StatusCode != http.StatusOK || response.Header["Content-Encoding"] != nil {
			return response.Body
		}
		r := &resultsReader{body: response.Body, results: open.Results()}
		r.lines = batch.Lines{Max: maxResult, Grow: x.grow, Each: r.each}
		return r
	}
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
	result, err := batch.ReadResult(line)
	switch {
	case err != nil:
		r.results.Unread()
	case result.Failed:
		r.results.AddFailed()
	default:
		r.results.Add(result.Model, result.Used)
	}
	return nil
}
