package gateway

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"time"

	deposits "dappco.re/go/core/go-ratelimit/internal/accounts"
	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
)

// openBatches are the batches that were submitted and whose results have not been fetched, and the calls in the
// background whose responses have not been fetched. The store keeps what is reserved for them, so that any gateway that
// shares it can settle them, also after a restart.
type openBatches struct {
	g       *Gateway
	vault   deposits.Depository
	reads   fileReads
	uploads uploads
	more    chan struct{}     // a batch was opened
	polls   map[string]polled // the calls whose responses the gateway fetches, by their names in the store
	stop    context.CancelFunc
	running sync.WaitGroup
}

// batchID is the id of a batch at a provider.
type batchID struct{ provider, id string }

// name returns the name of the batch in the store.
func (b batchID) name() string { return "batch/" + url.PathEscape(b.provider) + "/" + b.id }

// fileName returns the name in the store of a batch whose results are in a file.
func fileName(provider, file string) string { return "file/" + url.PathEscape(provider) + "/" + file }

// responseName returns the name in the store of a call in the background, by the id of its response.
func responseName(provider, id string) string {
	return "response/" + url.PathEscape(provider) + "/" + id
}

// openBatch is a batch that has no results yet.
type openBatch struct {
	*call.Batch
	name string // in the store
}

const (
	maxOpenBatches = 10_000
	maxBatchAge    = 31 * 24 * time.Hour // no provider keeps results for longer
	maxBatchName   = 512                 // bytes
	batchTimeout   = 5 * time.Second     // for the store
	closeEvery     = time.Hour           // how often batches are closed whose results nobody has fetched
)

// newOpenBatches begins to close batches whose results do not come.
func newOpenBatches(g *Gateway) *openBatches {
	o := &openBatches{g: g, more: make(chan struct{}, 1)}
	o.vault = hidden.Of[deposits.Depository](g.limits.Models.Store())
	ctx, stop := context.WithCancel(context.Background())
	o.stop = stop
	if o.vault != nil {
		o.running.Go(func() { o.closeDue(ctx) })
		o.running.Go(func() { o.pollDue(ctx) })
	}
	return o
}

// open deposits a batch in the store under a name. If the store cannot keep it, the batch stays charged what was reserved.
func (o *openBatches) open(name string, b *call.Batch) {
	ctx, cancel := context.WithTimeout(context.Background(), batchTimeout)
	defer cancel()
	err := errors.New("its id is too long")
	if len(name) <= maxBatchName {
		err = b.Deposit(ctx, name)
	}
	if err != nil {
		o.g.log.Warn("a batch stays charged what was reserved: the store does not keep it", "batch", name[:min(len(name), maxBatchName)], "error", err)
		b.Unknown()
		return
	}
	select {
	case o.more <- struct{}{}:
	default:
	}
}

// of returns an open batch by its name in the store; nil, if there is none or it cannot be read. An error is that
// of a store that cannot be asked.
func (o *openBatches) of(name string) (*openBatch, error) {
	ctx, cancel := context.WithTimeout(context.Background(), batchTimeout)
	defer cancel()
	b, id, err := call.FindBatch(ctx, &o.g.limits, &o.g.setup.Load().prices, name)
	switch {
	case errors.Is(err, deposits.ErrDeposit):
		o.g.log.Error("a batch stays charged what was reserved: what the store has kept of it cannot be read", "batch", id, "error", err)
		o.vault.DropDeposit(ctx, id) // an error comes again
		return nil, nil
	case err != nil:
		o.g.log.Warn("a batch is not settled: fetch its results again when the store answers", "batch", name, "error", err)
		return nil, err
	case b == nil:
		return nil, nil
	}
	return &openBatch{b, id}, nil
}

// find returns the open batch with a name as the method of does, or nil if there is none or the store cannot be asked.
func (o *openBatches) find(name string) *openBatch {
	b, _ := o.of(name)
	return b
}

// setFile stores in which file of its provider the results of an open batch are.
func (o *openBatches) setFile(b *openBatch, file string) {
	ctx, cancel := context.WithTimeout(context.Background(), batchTimeout)
	defer cancel()
	if err := o.vault.NameDeposit(ctx, b.name, fileName(b.Provider, file)); err != nil {
		o.g.log.Warn("the file of a batch's results is not known: ask for the batch again", "batch", b.name, "error", err)
	}
}

// closeDue closes batches at the start, every hour, and when there are more, until ctx ends.
func (o *openBatches) closeDue(ctx context.Context) {
	again := time.NewTicker(closeEvery)
	defer again.Stop()
	for {
		if err := o.closeThese(ctx, time.Now().Add(-maxBatchAge), maxOpenBatches); err != nil && ctx.Err() == nil {
			o.g.log.Warn("batches whose results have not come are not closed yet", "error", err)
		}
		select {
		case <-again.C:
		case <-o.more:
		case <-ctx.Done():
			return
		}
	}
}

// closeThese closes batches from before a time, the oldest of those beyond a number, and those that
// another gateway has begun to settle when it ended. The latter are settled as that gateway has begun,
// and the others stay charged what was reserved for them. What a newer gateway has the store keep under a name that this
// one does not know is left to that gateway.
func (o *openBatches) closeThese(ctx context.Context, before time.Time, most int) error {
	names, err := o.vault.DueDeposits(ctx, before.UnixNano(), most)
	for _, name := range names {
		switch {
		case isDigest(name):
			o.vault.DropDeposit(ctx, name) // an error comes again
			continue
		case !strings.HasPrefix(name, "batch/") && !strings.HasPrefix(name, "response/"):
			continue
		}
		b, err := o.of(name)
		if err != nil {
			return err
		}
		if b != nil {
			o.g.log.Info("a batch is closed: its results did not come, too many are open, or a gateway has ended before it was settled", "batch", name)
			b.Unknown()
		}
	}
	return err
}

// close ends the closing of batches. Those that are open stay in the store.
func (o *openBatches) close() {
	o.stop()
	o.running.Wait()
}
