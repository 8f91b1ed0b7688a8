package sqlitestore

import (
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/limit"
)

// A path is the name of a file, whatever characters it has.
func TestPaths(t *testing.T) {
	for _, path := range []string{
		"limits.db", "a b", "what?", "a?mode=memory", "a?_pragma=user_version(7)&vfs=none", "#1", "a#b?c", "100%", "%41", "%00",
		"a&b=c", "a+b", "a;b", `a"b'c`, "ä\u202e\U0001f512", "a\xffb", "-", ":memory:", "file:x", "file::memory:?cache=shared", "file:///tmp/x",
		"new/folder/of its?own/limits.db", "./x/../y",
	} {
		t.Run(path, func(t *testing.T) {
			t.Chdir(t.TempDir())
			want := filepath.Clean(path)
			for used := range int64(2) {
				s := openAt(t, path)
				wantUsed(t, s, "key", perDay(10), used)
				take(t, s, charge("key", 1, perDay(10)))
				if got := files(t, "."); !slices.Equal(got, []string{want, want + "-shm", want + "-wal"}) {
					t.Errorf("its files are %q; want %q and two beside it", got, want)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if got := files(t, "."); !slices.Equal(got, []string{want}) {
				t.Errorf("its files are %q; want %q", got, want)
			}
		})
	}
}

func files(t *testing.T, root string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return found
}

// New files are for this user alone; existing ones keep their modes.
func TestModes(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "there"), 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "there", "new", "newer", "limits.db")
	take(t, openAt(t, path), charge("key", 1, perDay(10)))
	for name, want := range map[string]fs.FileMode{
		path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600,
		filepath.Join(root, "there", "new", "newer"): 0o700 | fs.ModeDir,
		filepath.Join(root, "there", "new"):          0o700 | fs.ModeDir,
		filepath.Join(root, "there"):                 0o755 | fs.ModeDir,
	} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want && runtime.GOOS != "windows" {
			t.Errorf("%s is %v; want %v", name, info.Mode(), want)
		}
	}
}

// Several processes that open a missing file, or one of an older program, create the tables once.
func TestOpenAtOnce(t *testing.T) {
	for name, statements := range map[string][]string{
		"no file":        nil,
		"an older one":   {"CREATE TABLE quotas (model TEXT)"},
		"one with a log": {"PRAGMA journal_mode = WAL", "CREATE TABLE quotas (model TEXT)"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "limits.db")
			if statements != nil {
				older(t, path, statements...)
			}
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					s, err := Open(path)
					if err != nil {
						t.Error(err)
						return
					}
					defer s.Close()
					take(t, s, charge("key", 1, perDay(10)))
				})
			}
			wg.Wait()
			wantUsed(t, openAt(t, path), "key", perDay(10), 8)
		})
	}
}

// openSQL opens a file as another program would, until the test ends.
func openSQL(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// older creates a file as other programs do.
func older(t testing.TB, path string, statements ...string) {
	t.Helper()
	db := openSQL(t, path)
	defer db.Close()
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// The tables of an older program are left alone.
func TestOlderFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.db")
	older(t, path,
		"CREATE TABLE quotas (model TEXT PRIMARY KEY, max_rpm INTEGER)",
		"CREATE TABLE requests (model TEXT, ts INTEGER)",
		"CREATE TABLE tokens (model TEXT, ts INTEGER, count INTEGER)",
		"CREATE TABLE daily (model TEXT PRIMARY KEY, day_start INTEGER, day_count INTEGER)",
		"INSERT INTO quotas VALUES ('a', 7)",
		"INSERT INTO requests VALUES ('a', 1), ('a', 2)",
	)
	for used := range int64(3) {
		s := openAt(t, path)
		wantUsed(t, s, "a", perDay(10), used)
		take(t, s, charge("a", 1, perDay(10)))
		for text, want := range map[string]string{
			"PRAGMA user_version":           "3",
			"SELECT max_rpm FROM quotas":    "7",
			"SELECT COUNT(*) FROM requests": "2",
			"SELECT COUNT(*) FROM tokens":   "0",
			"SELECT COUNT(*) FROM daily":    "0",
		} {
			if got := query(t, s, text); got != want {
				t.Errorf("%s is %s; want %s", text, got, want)
			}
		}
		s.Close()
	}
}

// What a program of version 1 has counted stays, and such a program that still has the file open counts nothing any more:
// it would not know of the changes that this one writes.
func TestFileOfVersion1(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.db")
	var a limit.Account
	a.Take([]limit.Limit{perDay(10)}, time.Now().UnixNano(), 4)
	form, _ := a.AppendBinary(nil)
	older(t, path,
		"CREATE TABLE accounts (key BLOB PRIMARY KEY, full_at INTEGER NOT NULL, account BLOB NOT NULL) STRICT, WITHOUT ROWID",
		"CREATE INDEX accounts_full_at ON accounts (full_at)",
		fmt.Sprintf("INSERT INTO accounts VALUES (CAST('key' AS BLOB), %d, x'%x')", a.FullAt(), form),
		"PRAGMA user_version = 1",
	)
	update, err := openSQL(t, path).Prepare("UPDATE accounts SET full_at = full_at")
	if err != nil {
		t.Fatal(err)
	}
	defer update.Close()
	for used := range int64(3) {
		s := openAt(t, path)
		wantUsed(t, s, "key", perDay(10), 4+used)
		take(t, s, charge("key", 1, perDay(10)))
		s.Close()
	}
	if _, err := update.Exec(); err == nil || !strings.Contains(err.Error(), "no such table") {
		t.Errorf("a program of version 1: %v", err)
	}
}

// What a program of version 2 has counted and booked, and has not folded, stays, and such a program that still has the
// file open counts nothing any more.
func TestFileOfVersion2(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.db")
	var a limit.Account
	a.Take([]limit.Limit{perDay(10)}, time.Now().UnixNano(), 4)
	change := append([]byte("\x03key"), 0)
	form := a.AppendChanges(nil)
	change[len(change)-1] = byte(len(form))
	entry := books.AppendEntry(nil, &books.Entry{Owner: books.Owner{Project: "acme"}, Amounts: books.Amounts{books.Requests: 1}})
	older(t, path,
		"CREATE TABLE ledger (key BLOB PRIMARY KEY, full_at INTEGER NOT NULL, account BLOB NOT NULL) STRICT, WITHOUT ROWID",
		"CREATE INDEX ledger_full_at ON ledger (full_at)",
		"CREATE TABLE ledger_changes (id INTEGER PRIMARY KEY, changes BLOB NOT NULL) STRICT",
		fmt.Sprintf("INSERT INTO ledger_changes VALUES (1, x''), (2, x'%x')", append(change, form...)),
		"CREATE TABLE books_journal (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, entries BLOB NOT NULL) STRICT",
		fmt.Sprintf("INSERT INTO books_journal VALUES (1, 3600, x'%x'), (2, 7200, x'%[1]x')", entry),
		"PRAGMA user_version = 2",
	)
	add, err := openSQL(t, path).Prepare("INSERT INTO ledger_changes VALUES (3, x'')")
	if err != nil {
		t.Fatal(err)
	}
	defer add.Close()
	for used := range int64(3) {
		s := openAt(t, path)
		wantUsed(t, s, "key", perDay(10), 4+used)
		take(t, s, charge("key", 1, perDay(10)))
		if got := bookedTotal(t, s); got[books.Requests] != 2 {
			t.Errorf("%v is booked", got)
		}
		s.Close()
	}
	if _, err := add.Exec(); err == nil || !strings.Contains(err.Error(), "no such table") {
		t.Errorf("a program of version 2: %v", err)
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, content string) string {
		if err := os.WriteFile(at(name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return at(name)
	}
	older(t, at("newer"), "CREATE TABLE ledger (owner TEXT)", "PRAGMA user_version = 4")
	older(t, at("strange"), "PRAGMA user_version = -1")
	older(t, at("another's"), "CREATE TABLE ledger (owner TEXT)")
	older(t, at("settings"), "CREATE TABLE settings (name TEXT, value TEXT)")
	older(t, at("without"), "PRAGMA user_version = 1")
	for _, test := range []struct{ path, want string }{
		{"", "must not be empty"},
		{dir, "it must be a file, and is d"},
		{write("text", strings.Repeat("no database ", 1000)), "it is not a SQLite database"},
		{filepath.Join(write("file", ""), "limits.db"), "not a directory"},
		{at("nul\x00"), "invalid argument"},
		{at("newer"), "its version is 4: this program knows 3"},
		{at("strange"), "its version is -1: this program knows 3"},
		{at("another's"), "table ledger already exists"},
		{at("settings"), "no such column: change"},
		{at("without"), "no such table: accounts"},
	} {
		s, err := Open(test.path)
		if err == nil {
			s.Close()
			t.Errorf("%s: no error; want %q", test.path, test.want)
			continue
		}
		if text := err.Error(); !strings.HasPrefix(text, "ratelimit: "+test.path) && test.path != "" || !strings.Contains(text, test.want) {
			t.Errorf("%s: %q; want %q", test.path, text, test.want)
		}
	}
}
