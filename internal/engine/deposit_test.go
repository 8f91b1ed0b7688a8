package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/accounts"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/store"
)

// unheard is a store that keeps deposits, but whose answers to that are lost.
type unheard struct {
	store.Store
	accounts.Depository
}

func (s unheard) Deposit(ctx context.Context, id string, r store.Receipt, note []byte) error {
	return errors.Join(s.Depository.Deposit(ctx, id, r, note), errLost)
}

// A reservation whose deposit has failed is its caller's again. So the store must not keep it, even if only its
// answer was lost: it would be settled and booked twice.
func TestDepositThatFailsIsNotKept(t *testing.T) {
	memory := store.NewMemory()
	b := newBench(t, unheard{memory, hidden.Of[accounts.Depository](memory)})
	acme := b.own("acme", perMinute(engine.AllTokens, 100))
	r := b.take(callOf("acme", 50), acme)
	if err := r.Deposit(t.Context(), "d", nil); !errors.Is(err, errLost) {
		t.Errorf("deposited: %v", err)
	}
	if d, err := b.FindDeposit(t.Context(), "d"); d != nil || err != nil {
		t.Errorf("the store has the deposit %v, %v", d, err)
	}
	if !r.Commit(llm.Tokens{Input: 20}) {
		t.Error("the reservation has ended")
	}
	b.wantUsed(acme, 20)
}

// A deposit of another reservation stays where it is.
func TestDepositOfAnotherStays(t *testing.T) {
	b := newBench(t, store.NewMemory())
	acme := b.own("acme", perMinute(engine.AllTokens, 100))
	b.must(b.take(callOf("acme", 10), acme).Deposit(t.Context(), "d", nil))
	if err := b.take(callOf("acme", 20), acme).Deposit(t.Context(), "d", nil); !errors.Is(err, accounts.ErrDeposited) {
		t.Errorf("deposited: %v", err)
	}
	if d, err := b.FindDeposit(t.Context(), "d"); d == nil || err != nil {
		t.Errorf("the store has the deposit %v, %v", d, err)
	}
}

// What a deposit gives back when it is committed comes back to the share of its project as well, in all pools
// that it was charged in.
func TestDepositIsCorrectedInShares(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		acme := b.own("acme", engine.Limit{Name: "day", Unit: engine.AllTokens, Limit: limit.PerDay(1000).ResetAt(0, nil)}, perMinute(engine.AllTokens, 10))
		search, chat := b.NewBelow(acme, "search/", "acme/search"), b.NewBelow(acme, "chat/", "acme/chat")
		b.take(callOf("acme/chat", 10), chat.Append(nil)...)
		batch := callOf("acme/search", 600)
		engine.SetPart(batch, engine.Batch)
		b.must(b.take(batch, search.Append(nil)...).Deposit(t.Context(), "d", nil))
		time.Sleep(time.Hour)
		d, err := b.FindDeposit(t.Context(), "d")
		if err != nil {
			t.Fatal(err)
		}
		d.CommitPriced(llm.Tokens{Input: 100}, -1, true, nil, search.Append(nil))
		b.wantUsed(acme, 110, 0)
		b.wantShared("after the commit", acme)
	})
}

// The deposit of a call is settled in all of its scopes: its model's, by the weights of its quota, and its project's. It
// gives its slots back, and takes no others while it is kept.
func TestDepositOfACall(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		model, acme := b.shared("model", nil), b.own("acme", perHour(engine.AllTokens, 1000), atATime(1))
		weight, err := llm.ParseWeight("2")
		b.must(err)
		b.must(b.SetRules(model, &engine.Rules{Limits: []engine.Limit{perHour(engine.Tokens, 1000)}, Count: llm.TokenWeights{Output: weight}}))
		r := b.take(&engine.Call{Project: "acme", Tokens: llm.Tokens{Input: 100, Output: 400}}, model, acme)
		r.Keep()
		b.must(r.Deposit(t.Context(), "d", nil))
		b.wantUsed(acme, 1, 500)
		time.Sleep(engine.Lease + time.Minute)
		b.wantUsed(acme, 0, 500)
		d, err := b.FindDeposit(t.Context(), "d")
		if err != nil {
			t.Fatal(err)
		}
		d.CommitPriced(llm.Tokens{Input: 100, Output: 50}, -1, true, nil, acme.Append(nil))
		b.wantUsed(acme, 0, 150)
		b.wantUsed(model, 200)
	})
}

// A call that was deposited holds nothing of the share of its project any more: nobody would say when it is given back.
func TestDepositHoldsNothingOfItsShare(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		model, acme, other := b.shared("model", nil, atATime(4)), b.own("acme"), b.own("other")
		b.take(callOf("other", 1), model, other)
		for _, id := range []string{"one", "two"} {
			b.must(b.take(callOf("acme", 1), model, acme).Deposit(t.Context(), id, nil))
		}
		for _, each := range b.Shares(model) {
			want := map[string]int{"acme": 0, "other": 1}[each.Project]
			if used := each.Limits[0].Used; used != want {
				t.Errorf("%s holds %d; want %d", each.Project, used, want)
			}
		}
	})
}

// perHour returns a limit on a unit in any hour.
func perHour(u engine.Unit, n int64) engine.Limit {
	return engine.Limit{Name: u.String(), Unit: u, Limit: limit.New(n, time.Hour).Using(limit.SlidingLog)}
}
