package ratelimit_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// usedYAML writes a file with quotas and usage of every kind, and returns these.
func usedYAML(t testing.TB) (path string, rl *ratelimit.RateLimiter) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "limits.yaml")
	every := ratelimit.ModelQuota{MaxRPM: 10, MaxTPM: 200, MaxRPD: 30, MaxInputTPM: 400, MaxOutputTPM: 50, MaxTPD: 600, MaxConcurrent: 7, DayResetsAt: "00:00 America/Los_Angeles"}
	rl = newYAML(t, path, quotas{"every": every, "few": {MaxRPM: 3}, "free": {}, "a/b 'c'": {MaxTPM: 9}})
	for i := range 3 {
		for model := range rl.Quotas() {
			rl.RecordUsage(model, i, 2)
		}
		rl.RecordUsage("nobody's", 5, 5)
		time.Sleep(time.Second + 1)
	}
	mustPersist(t, rl)
	return path, rl
}

func TestMigrate(t *testing.T) {
	for name, make := range map[string]func(t *testing.T, path string){
		"a new file":   func(*testing.T, string) {},
		"a new folder": func(t *testing.T, path string) { os.Remove(filepath.Dir(path)) },
		"an old file": func(t *testing.T, path string) {
			execSQL(t, path, oldSchema, "INSERT INTO quotas VALUES ('old', 1, 2, 3)",
				fmt.Sprintf("INSERT INTO requests VALUES ('every', %d)", time.Now().UnixNano()),
				fmt.Sprintf("INSERT INTO daily VALUES ('old', %d, 5)", time.Now().UnixNano()))
		},
		"one in use": func(t *testing.T, path string) {
			rl := openFile(t, path, quotas{"every": {MaxRPM: 9}, "old": {MaxRPM: 1, MaxConcurrent: 1}})
			mustPersist(t, rl)
			for _, model := range []string{"every", "old", "older"} {
				rl.RecordUsage(model, 1, 1)
				rl.TryAcquire(model, 1)
			}
			mustPersist(t, rl)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				yaml, from := usedYAML(t)
				path := filepath.Join(t.TempDir(), "folder", "limits.db")
				if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				make(t, path)
				var tables []map[string][]string
				for range 2 {
					if err := ratelimit.MigrateYAMLToSQLite(yaml, path); err != nil {
						t.Fatal(err)
					}
					all := dump(t, path)
					delete(all, "ledger")   // accounts differ in their bytes
					delete(all, "settings") // each migration is announced there, with a number
					tables = append(tables, all)
				}
				testkit.Equal(t, "the second file", tables[0], tables[1])
				s := from.State()["every"]
				for query, want := range map[string][]string{
					"SELECT model, max_rpm, max_tpm, max_rpd FROM quotas ORDER BY model":                                             {"a/b 'c' 0 9 0", "every 10 200 30", "few 3 0 0", "free 0 0 0"},
					"SELECT max_input_tpm, max_output_tpm, max_tpd, max_concurrent, day_resets_at FROM quotas WHERE model = 'every'": {"400 50 600 7 00:00 America/Los_Angeles"},
					"SELECT ts FROM requests WHERE model = 'every' ORDER BY ts":                                                      {fmt.Sprint(s.Requests[0].UnixNano()), fmt.Sprint(s.Requests[1].UnixNano()), fmt.Sprint(s.Requests[2].UnixNano())},
					"SELECT ts, count FROM tokens WHERE model = 'every' ORDER BY ts LIMIT 1":                                         {fmt.Sprint(s.Tokens[0].Time.UnixNano(), " 2")},
					"SELECT day_start, day_count FROM daily WHERE model = 'every'":                                                   {fmt.Sprint(s.DayStart.UnixNano(), " 3")},
					"SELECT model FROM daily ORDER BY model":                                                                         {"a/b 'c'", "every", "few", "free", "nobody's"},
					"SELECT count(*) FROM requests":                                                                                  {"15"},
				} {
					if got := rowsOf(t, path, query); !slices.Equal(got, want) {
						t.Errorf("%s: %q; want %q", query, got, want)
					}
				}
				migrated := openFile(t, path, quotas{"few": {MaxRPM: 1}})
				if found := difference(from, map[string]*ratelimit.RateLimiter{name: migrated}); found != "" {
					t.Error(found)
				}
			})
		})
	}
}

// Migrated usage counts at once for limiters that have the file open.
func TestMigrateUnderOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		yaml, _ := usedYAML(t)
		path := filepath.Join(t.TempDir(), "limits.db")
		rl := openFile(t, path, quotas{"few": {MaxRPM: 4}})
		synctest.Wait() // it has loaded the quotas of the file once, and looks again later
		reserved, _ := rl.TryAcquire("few", 1)
		if err := ratelimit.MigrateYAMLToSQLite(yaml, path); err != nil {
			t.Fatal(err)
		}
		reserved.Cancel() // its usage was replaced, so there is nothing to refund
		if n, _ := fill(rl, "few", 1); n != 1 {
			t.Errorf("%d pass", n)
		}
		mustLoad(t, rl)
		if got := rl.Quotas()["few"].MaxRPM; got != 3 {
			t.Errorf("the quota is %d", got)
		}
		mustPersist(t, rl)
	})
}

func TestMigrateNothing(t *testing.T) {
	for name, yaml := range map[string]string{
		"missing":     filepath.Join(t.TempDir(), "no", "such.yaml"),
		"a directory": t.TempDir(),
		"broken":      yamlFile(t, "quotas:\n  m:\n    max_rpm: 7\n  n: ["),
		"a bad quota": yamlFile(t, "quotas:\n  a:\n    max_rpm: 7\n  m:\n    max_rpm: -7\n"),
		"a bad day":   yamlFile(t, "quotas:\n  m:\n    max_rpm: 7\n    day_resets_at: noon\n"),
		"a bad name":  yamlFile(t, "state:\n  \"\":\n    requests: []\n    tokens: []\n    day_start: 0001-01-01T00:00:00Z\n    day_count: 0\n"),
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "folder")
			path := filepath.Join(dir, "limits.db")
			wantFault := func() {
				t.Helper()
				err := ratelimit.MigrateYAMLToSQLite(yaml, path)
				if err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") || !strings.Contains(err.Error(), yaml) {
					t.Errorf("%v: it must name %s", err, yaml)
				}
				if missing := errors.Is(err, fs.ErrNotExist); missing != (name == "missing") {
					t.Errorf("missing: %v", missing)
				}
			}
			wantFault()
			if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("it has made %s", dir)
			}
			rl := openFile(t, path, quotas{"m": {MaxRPM: 2}})
			mustTake(t, rl, 1)
			mustPersist(t, rl)
			closeFile(t, rl)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			wantFault()
			if after, err := os.ReadFile(path); err != nil || string(before) != string(after) {
				t.Errorf("the file is another, %v", err)
			}
		})
	}
}

// A migration that fails half-way changes nothing.
func TestMigrateFails(t *testing.T) {
	const no = "SELECT RAISE(ABORT, 'not today'); END"
	for _, old := range []bool{true, false} {
		for name, trigger := range map[string]string{
			"removing quotas":   "CREATE TRIGGER no BEFORE DELETE ON quotas BEGIN " + no,
			"first quota":       "CREATE TRIGGER no BEFORE INSERT ON quotas BEGIN " + no,
			"some quota":        "CREATE TRIGGER no BEFORE INSERT ON quotas WHEN new.model = 'few' BEGIN " + no,
			"removing requests": "CREATE TRIGGER no BEFORE DELETE ON requests BEGIN " + no,
			"some request":      "CREATE TRIGGER no BEFORE INSERT ON requests WHEN new.model = 'every' BEGIN " + no,
			"last tokens":       "CREATE TRIGGER no AFTER INSERT ON tokens WHEN new.model = 'free' BEGIN " + no,
			"some day":          "CREATE TRIGGER no AFTER INSERT ON daily WHEN new.model = 'few' BEGIN " + no,
			"removing accounts": "CREATE TRIGGER no BEFORE DELETE ON ledger BEGIN " + no,
			"some account":      "CREATE TRIGGER no AFTER INSERT ON ledger WHEN new.key = CAST('model/few/tokens' AS BLOB) BEGIN " + no,
		} {
			if old && !slices.Contains([]string{"removing requests", "some quota", "some day"}, name) {
				continue // an older file has no accounts, and the rest is the same
			}
			t.Run(fmt.Sprintf("%s of an old file %v", name, old), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					yaml, _ := usedYAML(t)
					path := usedFile(t, old)
					execSQL(t, path, trigger)
					before := dump(t, path)
					for range 2 {
						err := ratelimit.MigrateYAMLToSQLite(yaml, path)
						if err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "not today") {
							t.Fatalf("it must name %s: %v", path, err)
						}
					}
					after := dump(t, path)
					if old { // an older program accepts these
						for _, all := range []map[string][]string{before, after} {
							for _, table := range []string{"ledger", "journal", "clock", "books", "books_pages", "deposits", "schema", "settings", "version"} {
								delete(all, table)
							}
						}
					}
					testkit.Equal(t, "the file", before, after)
					execSQL(t, path, "DROP TRIGGER no")
					rl := openFile(t, path, nil)
					if !maps.Equal(quotas{"m": rl.Quotas()["m"]}, quotas{"m": limited}) {
						t.Errorf("%+v", rl.Quotas())
					}
					if s := rl.Stats("m"); s.RPM != 1 || s.TPM != 10 || s.RPD != 1 {
						t.Errorf("%+v", s)
					}
				})
			})
		}
	}
}

func TestMigrateToBadFiles(t *testing.T) {
	yaml := filepath.Join(t.TempDir(), "limits.yaml")
	mustPersist(t, newYAML(t, yaml, quotas{"m": {MaxRPM: 5}}))
	for name, path := range map[string]string{
		"itself":     yaml,
		"a folder":   t.TempDir(),
		"not SQLite": yamlFile(t, "%s", 0),
	} {
		before, _ := os.ReadFile(path)
		if err := ratelimit.MigrateYAMLToSQLite(yaml, path); err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
		if after, _ := os.ReadFile(path); string(before) != string(after) {
			t.Errorf("%s: it has changed", name)
		}
	}
	if err := ratelimit.MigrateYAMLToSQLite(yaml, ""); err == nil {
		t.Error("no path")
	}
}
