package ratelimit_test

import (
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/settings"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

type quotas = map[string]ratelimit.ModelQuota

// In a bubble, a SQLite file has the bubble's clock, so times are exact. A limiter that is
// opened in a bubble must be closed there.

func openFile(t testing.TB, path string, q quotas) *ratelimit.RateLimiter {
	t.Helper()
	return openLedger(t, ratelimit.BackendSQLite, path, ratelimit.Config{Quotas: q})
}

// inMemory returns a limiter in memory. Its file does not exist.
func inMemory(t testing.TB, q quotas) *ratelimit.RateLimiter {
	t.Helper()
	return newYAML(t, filepath.Join(t.TempDir(), "none.yaml"), q)
}

// newYAML returns a limiter with a YAML file.
func newYAML(t testing.TB, path string, q quotas) *ratelimit.RateLimiter {
	t.Helper()
	return openLedger(t, ratelimit.BackendYAML, path, ratelimit.Config{Quotas: q})
}

func closeFile(t testing.TB, rl *ratelimit.RateLimiter) {
	t.Helper()
	if err := rl.Close(); err != nil {
		t.Fatal(err)
	}
}

// withSQL opens a file as another program would, and closes it.
func withSQL(t testing.TB, path string, fn func(*sql.DB)) {
	t.Helper()
	db, err := sql.Open("sqlite", path+"?_pragma=synchronous(off)&_pragma=busy_timeout(20000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	fn(db)
}

func execSQL(t testing.TB, path string, statements ...string) {
	t.Helper()
	withSQL(t, path, func(db *sql.DB) {
		for _, statement := range statements {
			if _, err := db.Exec(statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
	})
}

// rowsOf returns each row of a query as text.
func rowsOf(t testing.TB, path, query string) (list []string) {
	t.Helper()
	withSQL(t, path, func(db *sql.DB) { list = rows(t, db, query) })
	return list
}

func rows(t testing.TB, db *sql.DB, query string) (list []string) {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	columns, _ := rows.Columns()
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		if err := rows.Scan(values...); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		for i, value := range values {
			values[i] = *value.(*any)
		}
		list = append(list, strings.TrimSuffix(fmt.Sprintln(values...), "\n"))
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return list
}

// dump returns the whole content of a file.
func dump(t testing.TB, path string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	withSQL(t, path, func(db *sql.DB) {
		all["schema"] = rows(t, db, "SELECT sql FROM sqlite_schema ORDER BY name")
		all["version"] = rows(t, db, "PRAGMA user_version")
		for _, table := range rows(t, db, "SELECT name FROM sqlite_schema WHERE type = 'table'") {
			what := "*"
			if table == "journal" {
				what = "changes" // whose numbers only grow
			}
			all[table] = slices.Sorted(slices.Values(rows(t, db, "SELECT "+what+" FROM "+table)))
		}
	})
	return all
}

// oldSchema is the schema of older programs.
const oldSchema = `
CREATE TABLE IF NOT EXISTS quotas (
	model TEXT PRIMARY KEY,
	max_rpm INTEGER NOT NULL DEFAULT 0,
	max_tpm INTEGER NOT NULL DEFAULT 0,
	max_rpd INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS requests (
	model TEXT NOT NULL,
	ts INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS tokens (
	model TEXT NOT NULL,
	ts INTEGER NOT NULL,
	count INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS daily (
	model TEXT PRIMARY KEY,
	day_start INTEGER NOT NULL,
	day_count INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS idx_requests_model_ts ON requests(model, ts);
CREATE INDEX IF NOT EXISTS idx_tokens_model_ts ON tokens(model, ts);
`

// row is a row that an older program has written, at a time from now.
type row struct {
	table, model string
	in           time.Duration
	n            int64
}

// oldFile makes a file as an older program leaves it.
func oldFile(t testing.TB, q quotas, rows ...row) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "old.db")
	statements := []string{"PRAGMA journal_mode = WAL", oldSchema}
	for model, q := range q {
		statements = append(statements, fmt.Sprintf("INSERT INTO quotas VALUES ('%s', %d, %d, %d)", model, q.MaxRPM, q.MaxTPM, q.MaxRPD))
	}
	for _, r := range rows {
		at := time.Now().Add(r.in).UnixNano()
		values := fmt.Sprintf("'%s', %d, %d", r.model, at, r.n)
		if r.table == "requests" {
			values = fmt.Sprintf("'%s', %d", r.model, at)
		}
		statements = append(statements, fmt.Sprintf("INSERT INTO %s VALUES (%s)", r.table, values))
	}
	execSQL(t, path, statements...)
	return path
}

func wantStats(t testing.TB, rl *ratelimit.RateLimiter, model string, want ratelimit.ModelStats) {
	t.Helper()
	if got := rl.Stats(model); got != want {
		t.Errorf("stats of %s:\n  %+v\nwant\n  %+v", model, got, want)
	}
}

// fill takes until it is denied, and returns how much was admitted, and the denial.
func fill(rl *ratelimit.RateLimiter, model string, tokens int) (admitted int, d ratelimit.Decision) {
	for admitted < 10_000 {
		if _, d = rl.TryAcquire(model, tokens); !d.Allowed {
			break
		}
		admitted++
	}
	return admitted, d
}

func TestOldFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(30 * 24 * time.Hour)
		now := time.Now().UTC()
		path := oldFile(t,
			quotas{"m": {MaxRPM: 5, MaxTPM: 100, MaxRPD: 10}, "free": {}, "gemini-2.5-pro": {MaxRPM: 1, MaxTPM: 2, MaxRPD: 3}},
			row{"requests", "m", -71 * time.Second, 0},
			row{"requests", "m", -time.Minute, 0},      // has just left the minute
			row{"requests", "m", -10 * time.Second, 0}, // not in order
			row{"requests", "m", -time.Minute + 1, 0},  // is about to leave
			row{"requests", "m", -10 * time.Second, 0}, // twice at one time
			row{"tokens", "m", -61 * time.Second, 50},  // has left
			row{"tokens", "m", -time.Second, 20},       //
			row{"tokens", "m", -30 * time.Second, 40},  //
			row{"daily", "m", -23 * time.Hour, 6},      //
			row{"daily", "free", -24 * time.Hour, 9},   // has ended
			row{"daily", "ahead", 90 * time.Minute, 3}, // written with a clock that was ahead
			row{"requests", "ahead", time.Hour, 0},     //
			row{"tokens", "ahead", 100 * time.Hour, 7}, //
			row{"requests", "other", -time.Second, 0},  // a model without a quota
			row{"tokens", "gone", -90 * 24 * time.Hour, 7},
		)
		rl, err := ratelimit.NewWithSQLite(path)
		if err != nil {
			t.Fatal(err)
		}
		want := ratelimit.DefaultProfiles()[ratelimit.ProviderGemini].Models
		maps.Copy(want, quotas{"m": {MaxRPM: 5, MaxTPM: 100, MaxRPD: 10}, "free": {}, "gemini-2.5-pro": {MaxRPM: 1, MaxTPM: 2, MaxRPD: 3}})
		if got := rl.Quotas(); !maps.Equal(got, want) {
			t.Errorf("quotas are\n  %+v\nwant\n  %+v", got, want)
		}
		wantStats(t, rl, "m", ratelimit.ModelStats{RPM: 3, MaxRPM: 5, TPM: 60, MaxTPM: 100, RPD: 6, MaxRPD: 10, DayStart: now.Add(-23 * time.Hour)})
		wantStats(t, rl, "free", ratelimit.ModelStats{})
		wantStats(t, rl, "ahead", ratelimit.ModelStats{RPM: 1, TPM: 7, RPD: 3, DayStart: now})
		wantStats(t, rl, "other", ratelimit.ModelStats{RPM: 1})
		if state := rl.State(); len(state) != 3 {
			t.Errorf("state is %+v", state)
		}
		wantState := ratelimit.UsageStats{
			Requests: []time.Time{now.Add(-time.Minute + 1), now.Add(-10 * time.Second), now.Add(-10 * time.Second)},
			Tokens:   []ratelimit.TokenEntry{{Time: now.Add(-30 * time.Second), Count: 40}, {Time: now.Add(-time.Second), Count: 20}},
			DayStart: now.Add(-23 * time.Hour),
			DayCount: 6,
		}
		if got := rl.State()["m"]; !reflect.DeepEqual(got, wantState) {
			t.Errorf("state of m:\n  %+v\nwant\n  %+v", got, wantState)
		}

		if n, d := fill(rl, "m", 10); n != 2 || d.Code != ratelimit.DecisionRPMLimit || d.RetryAfter != 1 {
			t.Errorf("%d pass, and then %+v", n, d)
		}
		time.Sleep(time.Minute)
		if n, d := fill(rl, "m", 10); n != 2 || d.Code != ratelimit.DecisionRPDLimit || d.RetryAfter != time.Hour-time.Minute {
			t.Errorf("a minute later %d pass, and then %+v", n, d)
		}
		time.Sleep(time.Hour - time.Minute - 1)
		if rl.CanSend("m", 1) {
			t.Error("the day has ended before its time")
		}
		time.Sleep(time.Nanosecond)
		if n, _ := fill(rl, "m", 1); n != 5 {
			t.Errorf("the next day, %d pass", n)
		}
		time.Sleep(23 * time.Hour)
		wantStats(t, rl, "ahead", ratelimit.ModelStats{}) // rows from the future counted from the time when the file was opened
		closeFile(t, rl)
	})
}

// A day begins with the call that finds that the last day has ended, so requests of its first
// minute may be older than the day.
func TestOldFileWhoseDayHasJustBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now().UTC()
		path := oldFile(t, quotas{"m": {MaxRPM: 5, MaxRPD: 3}},
			row{"requests", "m", -50 * time.Second, 0},
			row{"requests", "m", -30 * time.Second, 0},
			row{"requests", "m", -10 * time.Second, 0},
			row{"daily", "m", -20 * time.Second, 1},
		)
		rl := openFile(t, path, nil)
		wantStats(t, rl, "m", ratelimit.ModelStats{RPM: 3, MaxRPM: 5, RPD: 1, MaxRPD: 3, DayStart: now.Add(-20 * time.Second)})
		if n, d := fill(rl, "m", 0); n != 2 || d.RetryAfter != 24*time.Hour-20*time.Second {
			t.Errorf("%d pass, and then %+v", n, d)
		}
		closeFile(t, rl)
	})
}

func TestOldFileIsImportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := oldFile(t, quotas{"m": {MaxRPM: 10, MaxTPM: 100, MaxRPD: 20}},
			row{"requests", "m", -time.Second, 0}, row{"requests", "m", -time.Second, 0},
			row{"tokens", "m", -time.Second, 30}, row{"daily", "m", -time.Hour, 7})
		day := time.Now().Add(-time.Hour).UTC()
		used := func(rpm, tpm, rpd int) ratelimit.ModelStats {
			return ratelimit.ModelStats{RPM: rpm, MaxRPM: 10, TPM: tpm, MaxTPM: 100, RPD: rpd, MaxRPD: 20, DayStart: day}
		}
		var limiters [4]*ratelimit.RateLimiter
		var wg sync.WaitGroup
		for i := range limiters {
			wg.Go(func() { limiters[i] = openFile(t, path, nil) })
		}
		wg.Wait()
		for _, rl := range limiters {
			wantStats(t, rl, "m", used(2, 30, 7))
		}
		limiters[0].RecordUsage("m", 5, 5)
		for _, rl := range limiters {
			closeFile(t, rl)
		}
		wantStats(t, openFile(t, path, nil), "m", used(3, 40, 8))

		// What an older program writes from now on does not count.
		execSQL(t, path, fmt.Sprintf("INSERT INTO requests VALUES ('m', %d)", time.Now().UnixNano()), "DELETE FROM daily")
		rl := openFile(t, path, nil)
		wantStats(t, rl, "m", used(3, 40, 8))
		rl.Reset("m")
		closeFile(t, rl)
		day = time.Time{}
		wantStats(t, openFile(t, path, nil), "m", used(0, 0, 0))
	})
}

// An older program reads what Persist has written, and its own statements work.
func TestOldProgramOnOurFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "limits.db")
		rl := openFile(t, path, quotas{
			"m":    {MaxRPM: 5, MaxTPM: 100, MaxRPD: 10, MaxInputTPM: 50, MaxOutputTPM: 51, MaxTPD: 52, MaxConcurrent: 4, DayResetsAt: "00:00 UTC"},
			"free": {},
		})
		time.Sleep(90 * time.Minute)
		midnight := time.Now().Add(-90 * time.Minute).UnixNano()
		var want [2]int64
		for i := range want {
			time.Sleep(time.Nanosecond)
			want[i] = time.Now().UnixNano()
			res, d := rl.TryAcquire("m", 10)
			if !d.Allowed {
				t.Fatalf("%+v", d)
			}
			res.Commit(5, 5+i)
		}
		rl.RecordUsage("nobody's", 1, 2)
		for range 2 { // the second Persist replaces the rows of the first
			mustPersist(t, rl)
			for query, want := range map[string][]string{
				"SELECT model, max_rpm, max_tpm, max_rpd FROM quotas ORDER BY model":   {"free 0 0 0", "m 5 100 10"},
				"SELECT model, ts FROM requests WHERE model = 'm' ORDER BY ts":         {fmt.Sprint("m ", want[0]), fmt.Sprint("m ", want[1])},
				"SELECT model, ts, count FROM tokens WHERE model = 'm' ORDER BY ts":    {fmt.Sprint("m ", want[0], " 10"), fmt.Sprint("m ", want[1], " 11")},
				"SELECT model, ts, count FROM tokens WHERE model = 'nobody''s'":        {fmt.Sprint("nobody's ", want[1], " 3")},
				"SELECT model, day_start, day_count FROM daily WHERE model = 'm'":      {fmt.Sprint("m ", midnight, " 2")},
				"SELECT model, day_start, day_count FROM daily WHERE model LIKE 'no%'": {fmt.Sprint("nobody's ", want[1], " 1")},
				"SELECT count(*) FROM requests":                                        {"3"},
				"SELECT type FROM pragma_table_info('requests')":                       {"TEXT", "INTEGER"},
				"SELECT name FROM pragma_table_info('tokens')":                         {"model", "ts", "count"},
				"SELECT name FROM pragma_table_info('daily')":                          {"model", "day_start", "day_count"},
				"SELECT name FROM sqlite_schema WHERE name LIKE 'idx%' ORDER BY name":  {"idx_requests_model_ts", "idx_tokens_model_ts"},
				"PRAGMA journal_mode": {"wal"},
			} {
				if got := rowsOf(t, path, query); !slices.Equal(got, want) {
					t.Errorf("%s: %q; want %q", query, got, want)
				}
			}
		}
		time.Sleep(24 * time.Hour)
		mustPersist(t, rl)
		for _, table := range []string{"requests", "tokens", "daily"} {
			if got := rowsOf(t, path, "SELECT * FROM "+table); got != nil {
				t.Errorf("the day after, %s has %q", table, got)
			}
		}

		execSQL(t, path, oldSchema,
			"INSERT INTO quotas (model, max_rpm, max_tpm, max_rpd) VALUES ('new', 1, 2, 3)",
			"INSERT INTO quotas (model, max_rpm, max_tpm, max_rpd) VALUES ('m', 9, 0, 0) ON CONFLICT(model) DO UPDATE SET max_rpm = excluded.max_rpm",
			"INSERT INTO requests (model, ts) VALUES ('m', 5)", "INSERT INTO tokens (model, ts, count) VALUES ('m', 5, 5)",
			"INSERT INTO daily (model, day_start, day_count) VALUES ('m', 5, 5)")
		got := openFile(t, path, nil).Quotas()
		if got["new"] != (ratelimit.ModelQuota{MaxRPM: 1, MaxTPM: 2, MaxRPD: 3}) || got["m"].MaxRPM != 9 || got["m"].MaxTPD != 52 {
			t.Errorf("%+v", got)
		}
		execSQL(t, path, "DELETE FROM quotas", "INSERT INTO quotas (model, max_rpm, max_tpm, max_rpd) VALUES ('m', 1, 2, 3)")
		if got := openFile(t, path, quotas{"x": {}}).Quotas(); !maps.Equal(got, quotas{"x": {}, "m": {MaxRPM: 1, MaxTPM: 2, MaxRPD: 3}}) {
			t.Errorf("%+v", got)
		}
	})
}

var everyField = ratelimit.ModelQuota{MaxRPM: 1, MaxTPM: 2, MaxRPD: 3, MaxInputTPM: 4, MaxOutputTPM: 5, MaxTPD: 6, MaxConcurrent: 7, DayResetsAt: "00:00 America/Los_Angeles"}

// pollOften lets limiters on a file see soon, in real time, what others have changed.
func pollOften(t *testing.T) {
	usual := settings.PollInterval
	settings.PollInterval = 10 * time.Millisecond
	t.Cleanup(func() { settings.PollInterval = usual })
}

func TestQuotasOfFile(t *testing.T) {
	pollOften(t)
	path := filepath.Join(t.TempDir(), "limits.db")
	wantQuota := func(rl *ratelimit.RateLimiter, model string, want ratelimit.ModelQuota) {
		t.Helper()
		if got := rl.Quotas()[model]; got != want {
			t.Errorf("quota of %s: %+v; want %+v", model, got, want)
		}
	}
	a := openFile(t, path, quotas{"m": {MaxRPM: 1}, "a": {MaxRPM: 2}})
	b := openFile(t, path, quotas{"m": {MaxRPM: 10}, "b": {MaxRPM: 20}})
	wantQuota(a, "m", ratelimit.ModelQuota{MaxRPM: 1})
	wantQuota(b, "m", ratelimit.ModelQuota{MaxRPM: 10})

	// SetQuota writes to the file at once. The file's quota wins over Config, and over the
	// quotas that another limiter persists.
	for _, quota := range []ratelimit.ModelQuota{{MaxRPM: 9, MaxTPM: 9}, everyField} {
		mustSetQuota(t, a, "m", quota)
	}
	testkit.Eventually(t, "the other limiter follows", func() bool { return b.Quotas()["m"] == everyField })
	wantQuota(openFile(t, path, quotas{"m": {MaxRPM: 100}}), "m", everyField)
	for range 2 {
		mustPersist(t, b)
	}
	mustLoad(t, a)
	wantQuota(a, "m", everyField)
	wantQuota(a, "a", ratelimit.ModelQuota{MaxRPM: 2})
	wantQuota(a, "b", ratelimit.ModelQuota{MaxRPM: 20}) // b has written the quotas that the file did not have
	mustLoad(t, b)
	wantQuota(b, "m", everyField)
	wantQuota(b, "a", ratelimit.ModelQuota{}) // a has not persisted
	mustPersist(t, a)
	mustLoad(t, b)
	wantQuota(b, "a", ratelimit.ModelQuota{MaxRPM: 2})

	if err := b.AddProvider(ratelimit.ProviderAnthropic); err != nil {
		t.Fatal(err)
	}
	mustLoad(t, a)
	wantQuota(a, "claude-opus-4", ratelimit.ModelQuota{MaxRPM: 50, MaxTPM: 40_000})
	wantQuota(a, "m", everyField)

	// An invalid quota changes nothing, neither in memory nor in the file.
	for name, quota := range (quotas{
		"m":             {MaxRPM: -1},
		"b":             {DayResetsAt: "noon"},
		"":              {MaxRPM: 1},
		"a\nb":          {MaxRPM: 1},
		"\xff":          {MaxRPM: 1},
		"gpt\x00":       {},
		"claude-opus-4": {MaxTPM: 1 << 60},
	}) {
		before := dump(t, path)
		if err := b.SetQuota(name, quota); err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") {
			t.Errorf("SetQuota(%q, %+v): %v", name, quota, err)
		}
		testkit.Equal(t, fmt.Sprintf("the file after SetQuota(%q, %+v)", name, quota), before, dump(t, path))
		if maps.Equal(quotas{name: b.Quotas()[name]}, quotas{name: quota}) && quota != (ratelimit.ModelQuota{}) {
			t.Errorf("SetQuota(%q, %+v) has changed the quota", name, quota)
		}
	}
	if err := b.AddProvider("nobody"); err == nil {
		t.Error("nobody was added")
	}

	// A file that has become invalid changes nothing in memory.
	execSQL(t, path, "UPDATE quotas SET max_rpm = -5 WHERE model = 'b'", "UPDATE quotas SET max_rpm = 5 WHERE model = 'm'")
	before := a.Quotas()
	if err := a.Load(); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "max_rpm of -5") {
		t.Errorf("Load: %v", err)
	}
	if !maps.Equal(a.Quotas(), before) {
		t.Errorf("Load failed, and left %+v", a.Quotas())
	}
	if _, err := ratelimit.NewWithSQLite(path); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "max_rpm of -5") {
		t.Errorf("opening it: %v", err)
	}
}

// The last quota that is set counts, in memory as in the file.
func TestSetQuotaAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.db")
	rl := openFile(t, path, quotas{"m": {}})
	for range 100 {
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() { rl.SetQuota("m", ratelimit.ModelQuota{MaxRPM: 1 + i}) })
		}
		wg.Wait()
		set := rl.Quotas()
		mustLoad(t, rl)
		if saved := rl.Quotas(); !maps.Equal(set, saved) {
			t.Fatalf("%+v in memory, %+v in the file", set, saved)
		}
	}
}

// A quota that is not in the file is not in memory either.
func TestSetQuotaThatCannotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.db")
	rl := openFile(t, path, quotas{"m": {MaxRPM: 1}})
	execSQL(t, path, "CREATE TRIGGER no BEFORE INSERT ON quotas BEGIN SELECT RAISE(ABORT, 'not today'); END")
	for name, set := range map[string]func() error{
		"SetQuota":    func() error { return rl.SetQuota("m", ratelimit.ModelQuota{MaxRPM: 100}) },
		"AddProvider": func() error { return rl.AddProvider(ratelimit.ProviderOpenAI) },
		"Persist":     rl.Persist,
	} {
		if err := set(); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "not today") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := rl.Quotas(); !maps.Equal(got, quotas{"m": {MaxRPM: 1}}) {
		t.Errorf("%+v", got)
	}
	if n, _ := fill(rl, "m", 1); n != 1 {
		t.Errorf("%d pass", n)
	}
	execSQL(t, path, "DROP TRIGGER no")
	if err := rl.Persist(); err != nil {
		t.Errorf("and again: %v", err)
	}
}

func TestClosedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.db")
	rl := openFile(t, path, quotas{"m": {MaxRPM: 5, MaxConcurrent: 5}, "free": {}})
	reserved, _ := rl.TryAcquire("m", 1)
	freely, _ := rl.TryAcquire("free", 1)
	for range 2 {
		closeFile(t, rl)
	}
	if res, d := rl.TryAcquire("m", 1); res != nil || d.Allowed || d.Code != ratelimit.DecisionStoreLost || d.RetryAfter <= 0 || d.Reason() == "" {
		t.Errorf("TryAcquire: %v, %+v", res, d)
	}
	if d := rl.Decide("m", 1); d.Allowed || d.Code != ratelimit.DecisionStoreLost || d.Reason() == "" {
		t.Errorf("Decide: %+v", d)
	}
	if rl.CanSend("m", 1) {
		t.Error("CanSend says yes")
	}
	if res, err := rl.Acquire(t.Context(), "m", 1); res != nil || !errors.Is(err, store.ErrClosed) {
		t.Errorf("Acquire: %v, %v", res, err)
	}
	for name, call := range map[string]func() error{
		"WaitForCapacity": func() error { return rl.WaitForCapacity(t.Context(), "m", 1) },
		"SetQuota":        func() error { return rl.SetQuota("m", ratelimit.ModelQuota{MaxRPM: 100}) },
		"AddProvider":     func() error { return rl.AddProvider(ratelimit.ProviderOpenAI) },
		"Load":            rl.Load,
		"Persist":         rl.Persist,
	} {
		if err := call(); !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := rl.Quotas(); !maps.Equal(got, quotas{"m": {MaxRPM: 5, MaxConcurrent: 5}, "free": {}}) {
		t.Errorf("quotas are %+v", got)
	}
	rl.BackgroundPrune(time.Hour)()

	// Other methods can report an error only by Persist and Close.
	for name, call := range map[string]func(){
		"Commit":         func() { reserved.Commit(1, 1) },
		"Commit of free": func() { freely.Commit(1, 1) },
		"RecordUsage":    func() { rl.RecordUsage("m", 1, 1) },
		"Reset":          func() { rl.Reset("m") },
		"Stats":          func() { rl.Stats("m") },
		"AllStats":       func() { rl.AllStats() },
		"State":          func() { rl.State() },
		"Models":         func() { _ = slices.Collect(rl.Models()) },
	} {
		if err := rl.Close(); err != nil {
			t.Errorf("before %s: %v", name, err)
		}
		call()
		if err := rl.Close(); !errors.Is(err, store.ErrClosed) {
			t.Errorf("after %s: %v", name, err)
		}
	}
	if got := slices.Collect(rl.Models()); !slices.Equal(got, []string{"free", "m"}) {
		t.Errorf("models are %q", got)
	}
}

func TestDefaultPaths(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	other := filepath.Join(t.TempDir(), "new", "folder")
	for name, tt := range map[string]struct {
		open func() (*ratelimit.RateLimiter, error)
		want string
	}{
		"nothing": {func() (*ratelimit.RateLimiter, error) { return ratelimit.NewWithSQLite("") }, filepath.Join(home, ".core", "ratelimits.db")},
		"a backend": {func() (*ratelimit.RateLimiter, error) {
			return ratelimit.NewWithConfig(ratelimit.Config{Backend: ratelimit.BackendSQLite})
		}, filepath.Join(home, ".core", "ratelimits.db")},
		"a path": {func() (*ratelimit.RateLimiter, error) { return ratelimit.NewWithSQLite(filepath.Join(other, "1.db")) }, filepath.Join(other, "1.db")},
		"the config's": {func() (*ratelimit.RateLimiter, error) {
			return ratelimit.NewWithConfig(ratelimit.Config{Backend: "sqlite", FilePath: filepath.Join(other, "2.db")})
		}, filepath.Join(other, "2.db")},
		"the config's, once more": {func() (*ratelimit.RateLimiter, error) {
			return ratelimit.NewWithSQLiteConfig("", ratelimit.Config{FilePath: filepath.Join(other, "5.db")})
		}, filepath.Join(other, "5.db")},
		"both": {func() (*ratelimit.RateLimiter, error) {
			return ratelimit.NewWithSQLiteConfig(filepath.Join(other, "3.db"), ratelimit.Config{FilePath: filepath.Join(other, "4.db")})
		}, filepath.Join(other, "3.db")},
		"odd characters": {func() (*ratelimit.RateLimiter, error) {
			return ratelimit.NewWithSQLite(filepath.Join(other, "a?mode=memory&b=%20#c.db"))
		}, filepath.Join(other, "a?mode=memory&b=%20#c.db")},
	} {
		t.Run(name, func(t *testing.T) {
			os.Remove(tt.want)
			rl, err := tt.open()
			if err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(rl.Quotas(), ratelimit.DefaultProfiles()[ratelimit.ProviderGemini].Models) {
				t.Errorf("quotas are %+v", rl.Quotas())
			}
			closeFile(t, rl)
			info, err := os.Stat(tt.want)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode() != 0o600 {
				t.Errorf("its mode is %v", info.Mode())
			}
		})
	}
	if _, err := os.Stat(filepath.Join(other, "4.db")); !errors.Is(err, os.ErrNotExist) {
		t.Error("the config's path was used, too")
	}
}

func TestBadFiles(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good.db")
	rl := openFile(t, good, quotas{"m": {MaxRPM: 1}})
	fill(rl, "m", 1)
	closeFile(t, rl)
	bytes, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		make func(path string) error
		want string
	}{
		"not a database":     {func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("quotas: {}\n", 100)), 0o600) }, "not a SQLite database"},
		"a YAML file":        {func(path string) error { return os.WriteFile(path, []byte("quotas: {}\n"), 0o600) }, "not a SQLite database"},
		"a folder":           {func(path string) error { return os.Mkdir(path, 0o700) }, "must be a file"},
		"a newer version":    {func(path string) error { execSQL(t, path, "PRAGMA user_version = 4"); return nil }, "version is 4"},
		"a version of none":  {func(path string) error { execSQL(t, path, "PRAGMA user_version = -1"); return nil }, "version is -1"},
		"cut short":          {func(path string) error { return os.WriteFile(path, bytes[:len(bytes)/2], 0o600) }, ""},
		"cut in its head":    {func(path string) error { return os.WriteFile(path, bytes[:50], 0o600) }, ""},
		"its first page":     {func(path string) error { return os.WriteFile(path, bytes[:4096], 0o600) }, ""},
		"a dangling link":    {func(path string) error { return os.Symlink(filepath.Join(dir, "no", "such", "file"), path) }, ""},
		"under a file":       {func(path string) error { return os.WriteFile(filepath.Dir(path), nil, 0o600) }, ""},
		"tables of others":   {func(path string) error { execSQL(t, path, "CREATE TABLE quotas (name TEXT)"); return nil }, "no such column"},
		"a view":             {func(path string) error { execSQL(t, path, "CREATE VIEW quotas AS SELECT 1 AS model"); return nil }, "view"},
		"accounts of others": {func(path string) error { execSQL(t, path, "CREATE TABLE ledger (id)"); return nil }, "ledger"},
		"no accounts":        {func(path string) error { execSQL(t, path, "PRAGMA user_version = 1"); return nil }, "accounts"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "it", "limits.db")
			if name != "under a file" {
				if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := tt.make(path); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(path)
			for range 2 {
				rl, err := ratelimit.NewWithSQLite(path)
				if err == nil {
					rl.Close()
					t.Fatal("it was opened")
				}
				if !strings.HasPrefix(err.Error(), "ratelimit: ") || strings.Count(err.Error(), "ratelimit: ") != 1 {
					t.Errorf("%v: not one prefix", err)
				}
				if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v: it must name %s, and say %q", err, path, tt.want)
				}
			}
			if after, _ := os.ReadFile(path); len(after) < len(before) {
				t.Errorf("it had %d bytes, and now it has %d", len(before), len(after))
			}
		})
	}

	t.Run("zero bytes", func(t *testing.T) { // a new file is empty, too
		path := filepath.Join(t.TempDir(), "limits.db")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if n, _ := fill(openFile(t, path, quotas{"m": {MaxRPM: 3}}), "m", 1); n != 3 {
			t.Errorf("%d pass", n)
		}
	})
}

// While another process has the file locked for longer than calls wait, no call passes, and
// each gets an error; calls that only read need not wait. Afterwards all is as before.
func TestLockedFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "limits.db")
	yaml := filepath.Join(t.TempDir(), "limits.yaml")
	if err := newYAML(t, yaml, quotas{"m": {MaxRPM: 100}}).Persist(); err != nil {
		t.Fatal(err)
	}
	rl, other := openFile(t, path, quotas{"m": {MaxRPM: 3}}), openFile(t, path, quotas{"m": {MaxRPM: 3}})
	reserved, _ := rl.TryAcquire("m", 1)
	before := dump(t, path)
	withSQL(t, path, func(db *sql.DB) {
		if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil {
			t.Fatal(err)
		}
		if d := other.Decide("m", 1); !d.Allowed || d.Stats.RPM != 1 {
			t.Errorf("Decide: %+v", d)
		}
		var wg sync.WaitGroup
		reserved.Commit(1, 1) // Persist returns the error
		for name, call := range map[string]func() error{
			"TryAcquire": func() error {
				res, d := rl.TryAcquire("m", 1)
				if res != nil || d.Allowed || d.Code != ratelimit.DecisionStoreLost {
					t.Errorf("TryAcquire: %v, %+v", res, d)
				}
				return errors.New(d.Reason())
			},
			"NewWithSQLite": func() error {
				_, err := ratelimit.NewWithSQLite(path)
				return err
			},
			"SetQuota":            func() error { return other.SetQuota("m", ratelimit.ModelQuota{MaxRPM: 100}) },
			"MigrateYAMLToSQLite": func() error { return ratelimit.MigrateYAMLToSQLite(yaml, path) },
		} {
			wg.Go(func() {
				since := time.Now()
				err := call()
				if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "locked") {
					t.Errorf("%s: %v", name, err)
				}
				if waited := time.Since(since); waited < 4*time.Second {
					t.Errorf("%s has waited for no more than %v", name, waited)
				}
			})
		}
		wg.Wait()
		if _, err := db.Exec("ROLLBACK"); err != nil {
			t.Fatal(err)
		}
	})
	after := dump(t, path)
	for _, accounts := range []string{"ledger", "journal"} { // one that could not open the file may fold the changes when it ends
		delete(before, accounts)
		delete(after, accounts)
	}
	testkit.Equal(t, "the file", before, after)
	if n, _ := fill(rl, "m", 1); n != 2 {
		t.Errorf("%d pass", n)
	}
	if err := rl.Persist(); err == nil || !strings.Contains(err.Error(), "locked") {
		t.Errorf("Persist says nothing of Commit: %v", err)
	}
	if err := rl.Persist(); err != nil {
		t.Errorf("the second time: %v", err)
	}
}

// limited is the quota of the model m in the tests of tampering.
var limited = ratelimit.ModelQuota{MaxRPM: 3, MaxTPM: 30, MaxRPD: 5}

// usedFile returns a file in which m has some usage, written by an older program or by this
// one.
func usedFile(t testing.TB, old bool) (path string) {
	t.Helper()
	if old {
		return oldFile(t, quotas{"m": limited},
			row{"requests", "m", -time.Second, 0}, row{"tokens", "m", -time.Second, 10}, row{"daily", "m", -time.Second, 1})
	}
	path = filepath.Join(t.TempDir(), "used.db")
	rl := openFile(t, path, quotas{"m": limited})
	if _, d := rl.TryAcquire("m", 10); !d.Allowed {
		t.Fatalf("%+v", d)
	}
	mustPersist(t, rl)
	closeFile(t, rl)
	return path
}

// wantSafe opens a file that somebody has tampered with. Either it is refused with an error
// that names the file, or it limits as it should, and recovers.
func wantSafe(t testing.TB, path string) (opened bool) {
	t.Helper()
	defer func() {
		if fault := recover(); fault != nil {
			t.Errorf("it panics: %v", fault)
		}
	}()
	rl, err := ratelimit.NewWithSQLiteConfig(path, ratelimit.Config{Quotas: quotas{"m": limited}})
	if err != nil {
		if !strings.HasPrefix(err.Error(), "ratelimit: ") || !strings.Contains(err.Error(), path) {
			t.Errorf("%v: it must name the file", err)
		}
		return false
	}
	defer rl.Close()
	for model := range rl.Models() {
		q := rl.Quotas()[model]
		n := 0
		for range 8 {
			if _, d := rl.TryAcquire(model, 10); d.Allowed {
				n++
			}
		}
		for what, most := range map[string]int{"requests a minute": q.MaxRPM, "tokens a minute": q.MaxTPM / 10, "requests a day": q.MaxRPD} {
			if n > max(most, 0) && (most > 0 || q.MaxTPM > 0 && what == "tokens a minute") {
				t.Errorf("%d pass of %q, which has %d %s", n, model, most, what)
			}
		}
	}
	// None of these may panic. Some fail, which Persist reports.
	rl.AllStats()
	rl.State()
	rl.RecordUsage("m", 1, 1)
	rl.Load()
	rl.Persist()
	if err := rl.SetQuota("m", limited); err != nil && !strings.Contains(err.Error(), path) {
		t.Errorf("SetQuota: %v", err)
	}
	if rl.Quotas()["m"] != limited {
		return true
	}

	// In three days all usage has ended, or an unreadable account is reset.
	time.Sleep(73 * time.Hour)
	if d := rl.Decide("m", 10); d.Code == ratelimit.DecisionStoreLost {
		rl.Reset("m")
	}
	if n, d := fill(rl, "m", 10); n != 3 {
		t.Errorf("three days later %d pass, and then %+v", n, d)
	}
	return true
}

// account returns an account as a literal of SQL.
func account(limits []limit.Limit, at time.Time, n int64) string {
	var a limit.Account
	a.Settle(limits, limit.Receipt{At: at.UnixNano()}, at.UnixNano(), n)
	bytes, _ := a.AppendBinary(nil)
	return fmt.Sprintf("x'%x'", bytes)
}

func TestTamperedFile(t *testing.T) {
	minute := []limit.Limit{limit.PerMinute(3).Using(limit.SlidingLog)}
	day := []limit.Limit{limit.PerDay(5).Anchored()}
	loose := func(table string) string {
		return fmt.Sprintf("CREATE TABLE loose AS SELECT * FROM %s; DROP TABLE %s; ALTER TABLE loose RENAME TO %s;", table, table, table)
	}
	set := func(what string) string { return "UPDATE ledger SET " + what }
	for _, tt := range []struct {
		name   string
		old    bool
		opened bool
		tamper func(now time.Time) string
	}{
		{"negative day", true, true, func(time.Time) string { return "UPDATE daily SET day_count = -1000" }},
		{"negative tokens", true, true, func(time.Time) string { return "UPDATE tokens SET count = -1000" }},
		{"huge day", true, true, func(time.Time) string { return "UPDATE daily SET day_count = 9223372036854775807" }},
		{"huge tokens", true, true, func(time.Time) string { return "UPDATE tokens SET count = 9223372036854775807" }},
		{"huge tokens twice", true, true, func(time.Time) string {
			return "UPDATE tokens SET count = 9223372036854775807; INSERT INTO tokens SELECT model, ts + 1, count FROM tokens; INSERT INTO tokens SELECT model, ts + 2, count FROM tokens"
		}},
		{"many requests", true, true, func(time.Time) string {
			return "INSERT INTO requests WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 4500) SELECT 'm', ts + i FROM requests, c"
		}},
		{"last times", true, true, func(time.Time) string {
			return "UPDATE requests SET ts = 9223372036854775807; UPDATE tokens SET ts = 9223372036854775807; UPDATE daily SET day_start = 9223372036854775807"
		}},
		{"first times", true, true, func(time.Time) string {
			return "UPDATE requests SET ts = -9223372036854775808; UPDATE tokens SET ts = -9223372036854775808; UPDATE daily SET day_start = -9223372036854775808"
		}},
		{"zero times", true, true, func(time.Time) string {
			return "UPDATE requests SET ts = 0; UPDATE tokens SET ts = 0; UPDATE daily SET day_start = 0"
		}},
		{"numbers as text", true, true, func(time.Time) string { return "UPDATE requests SET ts = '5'; UPDATE quotas SET max_rpm = '2'" }},
		{"a time of text", true, false, func(time.Time) string { return "UPDATE requests SET ts = 'now'" }},
		{"a time of bytes", true, false, func(time.Time) string { return "UPDATE tokens SET ts = x'00'" }},
		{"half a nanosecond", true, false, func(time.Time) string { return "UPDATE daily SET day_start = 1.5" }},
		{"infinite", true, false, func(time.Time) string { return "UPDATE daily SET day_count = 9e999" }},
		{"no time", true, false, func(time.Time) string { return loose("requests") + "UPDATE requests SET ts = NULL" }},
		{"no count", true, false, func(time.Time) string { return loose("tokens") + "UPDATE tokens SET count = NULL" }},
		{"no model", true, false, func(time.Time) string { return loose("daily") + "UPDATE daily SET model = NULL" }},
		{"no name", true, false, func(time.Time) string { return "UPDATE requests SET model = ''" }},
		{"a name with a newline", true, false, func(time.Time) string { return "UPDATE tokens SET model = 'a' || char(10)" }},
		{"a name that is no text", true, false, func(time.Time) string { return "UPDATE daily SET model = x'ff'" }},
		{"a long name", true, false, func(time.Time) string { return "UPDATE requests SET model = hex(zeroblob(300))" }},
		{"the same name twice", true, true, func(time.Time) string { return "INSERT INTO daily SELECT CAST(model AS BLOB), day_start, 4 FROM daily" }},

		{"negative quota", false, false, func(time.Time) string { return "UPDATE quotas SET max_rpm = -1" }},
		{"negative newer quota", false, false, func(time.Time) string { return "UPDATE quotas SET max_concurrent = -1" }},
		{"huge quota", false, false, func(time.Time) string { return "UPDATE quotas SET max_tpm = 9223372036854775807" }},
		{"quota of text", false, false, func(time.Time) string { return "UPDATE quotas SET max_rpd = 'many'" }},
		{"half a request", false, false, func(time.Time) string { return "UPDATE quotas SET max_rpd = 0.5" }},
		{"no quota", false, false, func(time.Time) string { return loose("quotas") + "UPDATE quotas SET max_rpm = NULL" }},
		{"no quota's name", false, false, func(time.Time) string { return loose("quotas") + "UPDATE quotas SET model = NULL" }},
		{"an empty name", false, false, func(time.Time) string { return "INSERT INTO quotas (model) VALUES ('')" }},
		{"a name with a zero", false, false, func(time.Time) string { return "INSERT INTO quotas (model) VALUES (x'6100')" }},
		{"a day that never resets", false, false, func(time.Time) string { return "UPDATE quotas SET day_resets_at = '25:00 UTC'" }},
		{"a zone of nowhere", false, false, func(time.Time) string { return "UPDATE quotas SET day_resets_at = '00:00 Middle/Earth'" }},
		{"a day as text of two", false, false, func(time.Time) string { return "UPDATE quotas SET day_resets_at = '00:00 UTC; 5/min'" }},

		{"empty accounts", false, true, func(time.Time) string { return set("account = x''") }},
		{"accounts of zeros", false, true, func(time.Time) string { return set("account = zeroblob(100)") }},
		{"long accounts", false, true, func(time.Time) string { return set("account = zeroblob(1000000)") }},
		{"accounts cut short", false, true, func(time.Time) string { return set("account = substr(account, 1, length(account) - 1)") }},
		{"accounts made longer", false, true, func(time.Time) string { return set("account = CAST(account || x'01' AS BLOB)") }},
		{"full for ever", false, true, func(time.Time) string { return set("full_at = 9223372036854775807") }},
		{"never full", false, true, func(time.Time) string { return set("full_at = -9223372036854775808") }},
		{"requests as tokens", false, true, func(time.Time) string {
			return set("account = (SELECT account FROM ledger WHERE key = CAST('model/m/requests' AS BLOB))")
		}},
		{"a log of the future", false, true, func(now time.Time) string { return set("account = " + account(minute, now.Add(100*24*time.Hour), 3)) }},
		{"a day of the future", false, true, func(now time.Time) string { return set("account = " + account(day, now.Add(100*24*time.Hour), 5)) }},
		{"a log of the past", false, true, func(now time.Time) string { return set("account = " + account(minute, now.Add(-1000*24*time.Hour), 3)) }},
		{"a huge day", false, true, func(now time.Time) string { return set("account = " + account(day, now, 1<<62)) }},
		{"a bucket", false, true, func(now time.Time) string {
			return set("account = " + account([]limit.Limit{limit.PerMinute(3)}, now, 3))
		}},
		{"keys of nobody", false, true, func(time.Time) string {
			return `INSERT INTO ledger SELECT CAST(k AS BLOB), full_at, account FROM ledger JOIN
				(SELECT 'nonsense' k UNION SELECT 'model/' UNION SELECT 'model' UNION SELECT 'model/m' UNION SELECT 'model/m/nonsense' UNION SELECT 'model//requests' UNION
				SELECT 'model/%zz/requests' UNION SELECT 'model/%00/requests' UNION SELECT 'model/%6d/requests' UNION SELECT 'model/%ff/tokens')
				WHERE key = CAST('model/m/requests' AS BLOB)`
		}},
		{"no accounts", false, true, func(time.Time) string { return "DELETE FROM ledger" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(30 * 24 * time.Hour)
				path := usedFile(t, tt.old)
				execSQL(t, path, tt.tamper(time.Now()))
				if opened := wantSafe(t, path); opened != tt.opened {
					t.Errorf("opened: %v", opened)
				}
			})
		})
	}
}

// A file may have more calls of a model than can be listed.
func TestTamperedFileWithAHugeLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := usedFile(t, false)
		log := []limit.Limit{limit.PerMinute(3).Using(limit.SlidingLog)}
		execSQL(t, path, "UPDATE ledger SET account = "+account(log, time.Now(), 1<<61))
		rl := openFile(t, path, nil)
		if n := len(rl.State()["m"].Requests); n == 0 || n > 1<<20 {
			t.Errorf("%d requests are listed", n)
		}
		if d := rl.Decide("m", 1); d.Code != overRPM || d.RetryAfter != time.Minute || d.Stats.RPM < 3 {
			t.Errorf("%+v", d)
		}
		time.Sleep(time.Minute)
		if n, _ := fill(rl, "m", 10); n != 3 {
			t.Errorf("%d pass", n)
		}
	})
}

// tamperings are the values that FuzzTamperedDatabase sets.
var tamperings = []struct{ table, column string }{
	{"quotas", "model"}, {"quotas", "max_rpm"}, {"quotas", "max_tpm"}, {"quotas", "max_rpd"},
	{"requests", "model"}, {"requests", "ts"},
	{"tokens", "model"}, {"tokens", "ts"}, {"tokens", "count"},
	{"daily", "model"}, {"daily", "day_start"}, {"daily", "day_count"},
	{"quotas", "max_input_tpm"}, {"quotas", "max_output_tpm"}, {"quotas", "max_tpd"}, {"quotas", "max_concurrent"}, {"quotas", "day_resets_at"},
	{"ledger", "key"}, {"ledger", "full_at"}, {"ledger", "account"},
}

const oldTamperings = 12 // how many of the tamperings concern the tables of older programs

func FuzzTamperedDatabase(f *testing.F) {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range tamperings {
		f.Add(uint8(i), uint8(i), int64(-1), []byte("m"), i < oldTamperings)
	}
	var a limit.Account
	a.Settle([]limit.Limit{limit.PerMinute(3).Using(limit.SlidingLog), limit.PerDay(5).Anchored()}, limit.Receipt{At: now.UnixNano()}, now.UnixNano(), 2)
	bytes, _ := a.AppendBinary(nil)
	f.Add(uint8(len(tamperings)-1), uint8(3), int64(0), bytes, false)
	f.Fuzz(func(t *testing.T, where, kind uint8, number int64, text []byte, old bool) {
		what := tamperings[int(where)%len(tamperings)]
		if old {
			what = tamperings[int(where)%oldTamperings]
		}
		value := []any{number, float64(number) / 2, string(text), text, nil}[kind%5]
		synctest.Test(t, func(t *testing.T) {
			path := usedFile(t, old)
			withSQL(t, path, func(db *sql.DB) {
				if value == nil && what.table != "ledger" {
					db.Exec(fmt.Sprintf("CREATE TABLE loose AS SELECT * FROM %s; DROP TABLE %s; ALTER TABLE loose RENAME TO %s", what.table, what.table, what.table))
				}
				db.Exec(fmt.Sprintf("UPDATE OR IGNORE %s SET %s = ?", what.table, what.column), value)
			})
			wantSafe(t, path)
		})
	})
}
