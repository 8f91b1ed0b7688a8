package gateway

import (
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// Models that clients invent leave a bounded number of rows in the state file. Once, 16,000
// of them left 32,000 rows and 49 MiB. A model with a quota is counted in any case.
func TestInventedModelsLeaveFewRows(t *testing.T) {
	const names = 1050
	path := filepath.Join(t.TempDir(), "state.db")
	t.Run("gateway", func(t *testing.T) {
		r := newRig(t, "state: "+path+`
providers:
  openai: {base_url: MOCK, models: {gpt-4o: {max_rpm: 100000, max_rpd: 100000}}}
`, mockprovider.Config{})
		var callers sync.WaitGroup
		for caller := range 4 {
			callers.Go(func() {
				for i := caller; i < names; i += 4 {
					body := strings.Replace(hello, "gpt-4o", fmt.Sprintf("invented-%d-x", i), 1)
					if a := r.post(t, chat, body); a.status != http.StatusOK {
						t.Errorf("%d %s", a.status, a.body)
					}
				}
				r.post(t, chat, hello)
			})
		}
		callers.Wait()
	})
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for table, most := range map[string]int{"ledger": 2 * 1010, "requests": 1010, "tokens": 1010, "daily": 1010} {
		var n int
		if err := db.QueryRow("SELECT COUNT(*) FROM " + table).Scan(&n); err != nil || n > most {
			t.Errorf("%s has %d rows, %v; want at most %d", table, n, err, most)
		}
	}
	var n int
	if err := db.QueryRow("SELECT day_count FROM daily WHERE model = 'gpt-4o'").Scan(&n); err != nil || n != 4 {
		t.Errorf("the model with a quota has %d requests, %v; want 4", n, err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 4<<20 {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
}
