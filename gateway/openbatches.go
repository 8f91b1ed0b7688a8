package gateway

import (
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/call"
)

// openBatches are the batches that were submitted through a gateway and whose results have not been
// fetched. What a batch has reserved is known to the gateway alone that has sent it, so that no other
// can settle it: the others tell that gateway what the results say.
type openBatches struct {
	tell func(batchMessage) // tells the other gateways; nil: there are none

	mu     sync.Mutex
	byID   map[batchID]*openBatch
	byFile map[batchID]*openBatch // by the file of their results
	oldest []*openBatch           // in the order in which they came, with some that were settled
}

// batchID is the id of a batch or of a file at a provider.
type batchID struct{ provider, id string }

// openBatch is a batch that has no results yet.
type openBatch struct {
	*call.Batch
	project string
	id      batchID
	file    batchID // of its results; zero: it is not known
	at      time.Time
	remote  bool // another gateway has sent it
}

const (
	maxOpenBatches = 10_000
	maxBatchAge    = 31 * 24 * time.Hour // no provider keeps results for longer
)

// open adds a batch. If there are too many, the oldest stays charged what was reserved for it, and so
// do those whose results cannot be fetched any more.
func (o *openBatches) open(id batchID, project string, b *call.Batch) {
	o.add(&openBatch{Batch: b, project: project, id: id, at: time.Now()})
	models, at := b.Announce()
	o.send(batchMessage{Provider: id.provider, ID: id.id, Project: project, Models: models, At: at})
}

// add adds a batch of any gateway.
func (o *openBatches) add(added *openBatch) {
	id := added.id
	var left []*openBatch
	o.mu.Lock()
	if o.byID == nil {
		o.byID, o.byFile = map[batchID]*openBatch{}, map[batchID]*openBatch{}
	}
	if same := o.byID[id]; same != nil { // the provider has answered with the same batch again
		o.remove(same)
		left = append(left, same)
	}
	o.byID[id] = added
	o.oldest = append(o.oldest, added)
	for first := o.oldest[0]; len(o.oldest) > maxOpenBatches || time.Since(first.at) > maxBatchAge || o.byID[first.id] != first; first = o.oldest[0] {
		o.oldest = o.oldest[1:]
		if o.remove(first) {
			left = append(left, first)
		}
	}
	o.mu.Unlock()
	for _, each := range left {
		each.Unknown()
	}
}

// remove removes a batch, and reports whether it was open.
func (o *openBatches) remove(b *openBatch) bool {
	if o.byID[b.id] != b {
		return false
	}
	delete(o.byID, b.id)
	if o.byFile[b.file] == b {
		delete(o.byFile, b.file)
	}
	return true
}

// none reports whether no batch is open.
func (o *openBatches) none() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.byID) == 0
}

// of returns an open batch by its id, or nil.
func (o *openBatches) of(id batchID) *openBatch {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.byID[id]
}

// ofFile returns the open batch whose results a file has, or nil.
func (o *openBatches) ofFile(id batchID) *openBatch {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.byFile[id]
}

// setFile says in which file the results of an open batch are, and reports whether that is new.
func (o *openBatches) setFile(b *openBatch, file batchID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byID[b.id] != b || b.file == file {
		return false
	}
	b.file = file
	o.byFile[file] = b
	return true
}

// settle settles a batch by its results, once.
func (o *openBatches) settle(b *openBatch, results *call.Results) {
	o.mu.Lock()
	open := o.remove(b)
	o.mu.Unlock()
	switch {
	case open && b.remote:
		o.send(batchMessage{Provider: b.id.provider, ID: b.id.id, Project: b.project, Total: &results.Total})
	case open:
		results.Settle()
	}
}

// close leaves all batches charged what was reserved for them.
func (o *openBatches) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, b := range o.byID {
		b.Unknown()
	}
	o.byID = nil
}
