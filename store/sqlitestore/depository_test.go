package sqlitestore

import (
	"errors"
	"path/filepath"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/accounts"
	"dappco.re/go/core/go-ratelimit/internal/transaction"
)

// A deposit that cannot be read is an error, and can be dropped.
func TestCorruptDeposit(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "limits.db"))
	if err := inside(s).Deposit(t.Context(), "d", nil, nil); err != nil {
		t.Fatal(err)
	}
	err := s.update(t.Context(), func(tx transaction.Tx) error {
		_, err := tx.Exec("UPDATE deposits SET deposit = ?", []byte("{"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if id, _, err := inside(s).FindDeposit(t.Context(), "d"); id != "d" || !errors.Is(err, accounts.ErrDeposit) {
		t.Errorf("%q, %v", id, err)
	}
	if err := inside(s).SettleDeposit(t.Context(), "d", nil, nil); !errors.Is(err, accounts.ErrDeposit) {
		t.Errorf("it is settled: %v", err)
	}
	if err := inside(s).DropDeposit(t.Context(), "d"); err != nil {
		t.Error(err)
	}
	if id, _, err := inside(s).FindDeposit(t.Context(), "d"); id != "" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
}
