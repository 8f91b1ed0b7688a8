package gateway

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// submitFile submits a batch of so many calls, and returns its id.
func (r *rig) submitFile(t *testing.T, calls int) string {
	t.Helper()
	return field(t, r.post(t, "/openai/v1/batches", submission(r.uploadFile(t, chatLines(calls, 100), "batch")), "X-Project-ID", "acme"), "id")
}

// A batch whose results nobody fetches stays charged what was reserved. In the end it is in the books,
// and its results do not change anything any more.
func TestBatchWithoutResults(t *testing.T) {
	r := newRig(t, batchRig, mockprovider.Config{})
	batch := r.submitFile(t, 2)
	reserved := full - r.dollars(t, "acme")
	if err := r.batches.closeThese(t.Context(), time.Now().Add(-time.Hour), 10); err != nil || r.noBatches(t) {
		t.Fatalf("a young batch is closed, or %v", err)
	}
	if err := r.batches.closeThese(t.Context(), time.Now().Add(time.Hour), 10); err != nil || !r.noBatches(t) {
		t.Fatalf("an old batch is open, or %v", err)
	}
	output := field(t, r.do(t, "GET", "/openai/v1/batches/"+batch, "", "X-Project-ID", "acme"), "output_file_id")
	r.do(t, "GET", "/openai/v1/files/"+output+"/content", "", "X-Project-ID", "acme")
	if got := full - r.dollars(t, "acme"); got != reserved || got == 0 {
		t.Errorf("%v are charged; %v were reserved", got, reserved)
	}
	sum, err := r.Usage(t.Context(), books.Query{Project: "acme"})
	if err != nil || sum.Total[books.Requests] != 2 || sum.Total[books.Nanodollars] != int64(reserved) {
		t.Errorf("the books have %+v, %v", sum, err)
	}
}

// If too many batches are open, the oldest is closed.
func TestTooManyBatches(t *testing.T) {
	r := newRig(t, batchRig, mockprovider.Config{})
	var ids []string
	for range 3 {
		ids = append(ids, r.submitFile(t, 1))
	}
	if err := r.batches.closeThese(t.Context(), time.Time{}, 2); err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		if open, err := r.batches.of(batchID{"openai", id}.name()); (open != nil) != (i > 0) || err != nil {
			t.Errorf("batch %d of 3: it is open: %t, %v", i, open != nil, err)
		}
	}
}

// What cannot be read of a batch is logged, and forgotten. A batch that cannot be kept is logged, and
// stays charged.
func TestBatchesThatAreNotKept(t *testing.T) {
	r := newRig(t, batchRig, mockprovider.Config{})
	log := new(testkit.Log)
	r.log = slog.New(slog.NewTextHandler(log, nil))
	for _, note := range []string{"", "{", "[]", `{"units":[99]}`} {
		name := batchID{"openai", "batch_x"}.name()
		if err := r.batches.vault.Deposit(t.Context(), name, nil, []byte(note)); err != nil {
			t.Fatal(err)
		}
		if b, err := r.batches.of(name); b != nil || err != nil || !r.noBatches(t) {
			t.Errorf("%q is open, or %v", note, err)
		}
	}
	if n := strings.Count(log.String(), "what the store has kept of it cannot be read"); n != 4 {
		t.Errorf("%d of 4 faults are in the log:\n%s", n, log)
	}
	r.batches.open(batchID{"openai", strings.Repeat("x", 1000)}.name(), new(call.Batch))
	if !strings.Contains(log.String(), "its id is too long") {
		t.Errorf("the log has %s", log)
	}
}

// A client that lists its batches while the store is lost does not wait until the store was asked in vain about
// each of them.
func TestBatchesAreListedWithoutTheStore(t *testing.T) {
	r := newRig(t, batchRig, mockprovider.Config{})
	log := new(testkit.Log)
	r.log = slog.New(slog.NewTextHandler(log, nil))
	if err := r.limits.Models.Store().Close(); err != nil {
		t.Fatal(err)
	}
	const list = `{"data":[{"id":"a","status":"completed"},{"id":"b","status":"completed"}]}`
	x := &exchange{g: r.Gateway, upstream: r.setup.Load().upstreams["openai"]}
	body, err := io.ReadAll(x.followBatches(&http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(list))}))
	if string(body) != list || err != nil {
		t.Errorf("%s, %v", body, err)
	}
	if n := strings.Count(log.String(), "a batch is not settled"); n != 1 {
		t.Errorf("the store was asked about %d batches; want 1:\n%s", n, log)
	}
}

// What a newer gateway has the store keep, under a name that this one does not know, stays there, and keeps no other batch
// from being closed.
func TestUnknownDepositsStay(t *testing.T) {
	r := newRig(t, batchRig, mockprovider.Config{})
	const name = "from-the-future/openai/1"
	if err := r.batches.vault.Deposit(t.Context(), name, nil, []byte(`[1]`)); err != nil {
		t.Fatal(err)
	}
	batch := r.submitFile(t, 2)
	if err := r.batches.closeThese(t.Context(), time.Now().Add(time.Hour), 10); err != nil {
		t.Fatal(err)
	}
	if open := r.batches.find(batchID{"openai", batch}.name()); open != nil {
		t.Error("the batch is open")
	}
	if _, note, err := r.batches.vault.FindDeposit(t.Context(), name); err != nil || note == nil {
		t.Errorf("the other deposit is gone: %v", err)
	}
}
