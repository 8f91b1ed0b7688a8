package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

var discard = slog.New(slog.DiscardHandler)

func readFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// withAudit is a configuration with an audit log.
func withAudit(path string) string { return usual + "admin: {audit: " + path + "}\n" }

// entriesIn returns the entries of a file.
func entriesIn(t testing.TB, path string) (list []Entry) {
	t.Helper()
	for line := range strings.Lines(readFile(t, path)) {
		var e Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		list = append(list, e)
	}
	return list
}

func TestAudit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var fault error
	r := newRigWith(t, withAudit(path), Options{Reload: func(bool) ([]gateway.Changed, error) { return nil, fault }})
	r.want(t, 200, "PUT", "/v1/quotas/gpt-4o?replace=true", `{"max_rpm": 5}`)
	r.want(t, 200, "PUT", "/v1/projects/new", `{"requests_per_day": 9}`)
	r.want(t, 200, "DELETE", "/v1/projects/new", "")
	r.want(t, 204, "POST", "/v1/reset", `{"model": "gpt-4o"}`)
	r.want(t, 204, "POST", "/v1/reset", `{"project": "new"}`)
	id := as[IssuedKey](t, r.want(t, 201, "POST", "/v1/keys", `{"project": "new", "name": "n"}`)).ID
	r.want(t, 200, "POST", "/v1/keys/"+id+"/rotate", `{}`)
	r.want(t, 204, "DELETE", "/v1/keys/"+id, "")
	r.want(t, 404, "DELETE", "/v1/keys/"+id, "")
	fault = errors.New("ratelimit: bad")
	r.want(t, 422, "POST", "/v1/reload", "")
	r.want(t, 400, "PUT", "/v1/quotas/gpt-4o", `{"max_rpm": -5}`) // an invalid request is not recorded

	type line struct {
		Action, Subject, Result, Error string
		Before, After                  string
	}
	var got []line
	list := entriesIn(t, path)
	for i, e := range list {
		if e.Seq != uint64(i+1) || time.Since(e.Time) > time.Minute || !strings.HasPrefix(e.Who, "loopback 127.0.0.1:") {
			t.Errorf("%+v", e)
		}
		if i%2 == 0 && e.Result != "intended" {
			t.Errorf("%s of %s was not announced", e.Action, e.Subject)
		}
		if i%2 == 1 {
			before, _ := json.Marshal(e.Before)
			after, _ := json.Marshal(e.After)
			got = append(got, line{e.Action, e.Subject, e.Result, e.Error, string(before), string(after)})
		}
	}
	want := []line{
		{"quota.set", "gpt-4o", "done", "", `{"margin":2,"max_rpd":0,"max_rpm":100,"max_tpm":100000}`, `{"margin":2,"max_rpd":0,"max_rpm":5,"max_tpm":0}`},
		{"limit.set", "new", "done", "", `{"weight":1}`, `{"requests_per_day":9}`},
		{"limit.unset", "new", "done", "", `{"requests_per_day":9}`, "null"},
		{"model.reset", "gpt-4o", "done", "", `{"used":{"max_concurrent":0,"max_enqueued_tokens":0,"max_input_tpm":0,"max_output_tpm":0,"max_rpd":0,"max_rpm":0,"max_tokens_in_flight":0,"max_tpd":0,"max_tpm":0}}`, "null"},
		{"project.reset", "new", "done", "", "[]", "null"},
		{"key.create", "new", "done", "", "null", "KEY"},
		{"key.rotate", id, "done", "", "KEY", "KEY"},
		{"key.revoke", id, "done", "", "KEY", "null"},
		{"key.revoke", id, "failed", "there is no such key: " + id, "null", "null"},
		{"config.reload", "", "failed", "the gateway keeps the configuration that it has: bad", "null", "null"},
	}
	key := cmp.Transformer("key", func(s string) string {
		if strings.HasPrefix(s, `{"created":`) && strings.Contains(s, `"id":"`+id+`"`) && strings.Contains(s, `"name":"n"`) {
			return "KEY"
		}
		return s
	})
	if diff := cmp.Diff(want, got, cmp.FilterPath(func(p cmp.Path) bool {
		name := p.Last().String()
		return name == ".Before" || name == ".After"
	}, key)); diff != "" {
		t.Error(diff)
	}
	if n := strings.Count(r.logged.String(), `"msg":"audit"`); n != len(list) {
		t.Errorf("%d of %d entries are in the log", n, len(list))
	}
	for _, query := range []string{"?limit=1000", "?limit=1000&after=0", "?limit=1000&after=4711"} { // 4711 is from another run of the gateway
		served := as[AuditList](t, r.get(t, "/v1/audit"+query))
		if diff := cmp.Diff(list, served.Entries); diff != "" {
			t.Errorf("the file (-) and what is served (+) differ: %s", diff)
		}
	}
}

func TestAuditSaysWho(t *testing.T) {
	r := newRig(t, withToken(t))
	if a := r.send(t, "PUT", "/v1/quotas/gpt-4o?replace=true", `{}`, "Authorization", "Bearer "+secretToken); a.status != 200 {
		t.Fatal(a)
	}
	a := r.send(t, "GET", "/v1/audit", "", "Authorization", "Bearer "+secretToken)
	if e := as[AuditList](t, a).Entries[0]; !strings.HasPrefix(e.Who, "token 127.0.0.1:") {
		t.Errorf("%+v", e)
	}
	if strings.Contains(a.text+r.logged.String(), secretToken) {
		t.Error("the token is in a log")
	}
}

// Changes that the audit log cannot record are not made.
func TestWhatCannotBeRecordedIsNotDone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	asked := false
	r := newRigWith(t, withAudit(dir+"/audit.jsonl"), Options{Reload: func(dryRun bool) ([]gateway.Changed, error) {
		asked = asked || !dryRun
		return nil, nil
	}})
	_, key, err := r.gateway.Keys().Create(t.Context(), "search", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	quotas, limits, keys := r.gateway.Models().Quotas(), r.gateway.Projects().Limits(), r.gateway.Keys().List()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][3]string{
		{"PUT", "/v1/quotas/gpt-4o?replace=true", `{"max_rpm": 5}`},
		{"PUT", "/v1/projects/search?replace=true", `{"requests_per_day": 9}`},
		{"PATCH", "/v1/quotas/gpt-4o", `{"max_rpm": 5}`},
		{"PATCH", "/v1/projects/search", `{"paused": true}`},
		{"DELETE", "/v1/projects/search", ``},
		{"POST", "/v1/reset", `{"project": "search"}`},
		{"POST", "/v1/reset", `{"model": "gpt-4o"}`},
		{"POST", "/v1/keys", `{"project": "search"}`},
		{"POST", "/v1/keys/" + key.ID + "/rotate", `{}`},
		{"DELETE", "/v1/keys/" + key.ID, ``},
		{"POST", "/v1/reload", ``},
	} {
		if a := r.want(t, 503, c[0], c[1], c[2]); !strings.Contains(a.text, "nothing was changed, since it cannot be recorded") {
			t.Error(a.text)
		}
	}
	testkit.Equal(t, "quotas", quotas, r.gateway.Models().Quotas())
	testkit.Equal(t, "limits", limits, r.gateway.Projects().Limits())
	testkit.Equal(t, "keys", keys, r.gateway.Keys().List())
	testkit.Equal(t, "the audit log", AuditList{Entries: []Entry{}}, as[AuditList](t, r.get(t, "/v1/audit")))
	if asked {
		t.Error("the configuration was reloaded")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r.want(t, 200, "PUT", "/v1/quotas/gpt-4o?replace=true", `{"max_rpm": 5}`) // the log is writable again, without a restart
}

// A change is not made if the disk of the audit log is full.
func TestAuditOnAFullDisk(t *testing.T) {
	const path = "/dev/full"
	if _, err := os.Stat(path); err != nil {
		t.Skip(err)
	}
	r := newRig(t, withAudit(path))
	r.want(t, 503, "PUT", "/v1/quotas/gpt-4o?replace=true", `{"max_rpm": 5}`)
	if q, _ := r.gateway.Models().Quota("gpt-4o"); q.MaxRPM != 100 {
		t.Errorf("the quota is %+v", q)
	}
}

// The audit is logged at every level of the log.
func TestAuditIgnoresTheLevel(t *testing.T) {
	for _, level := range []slog.Level{slog.LevelWarn, slog.LevelError, math.MaxInt} {
		var log testkit.Log
		r := newRigWith(t, usual, Options{Log: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: level}))})
		r.want(t, 200, "PUT", "/v1/quotas/gpt-4o?replace=true", `{}`)
		for _, result := range []string{intended, done} {
			if !strings.Contains(log.String(), `"result":"`+result+`"`) {
				t.Errorf("at level %v the log lacks what was %s: %s", level, result, log.String())
			}
		}
	}
}

// full is a log that cannot be written, as on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// Without an audit file, a change that the program's log cannot record is not made.
func TestUnloggedChangesAreNotMade(t *testing.T) {
	log := slog.New(slog.NewJSONHandler(full{}, nil))
	for yaml, status := range map[string]int{usual: 503, withAudit(filepath.Join(t.TempDir(), "audit.jsonl")): 200} {
		r := newRigWith(t, yaml, Options{Log: log})
		r.want(t, status, "PUT", "/v1/quotas/gpt-4o?replace=true", `{"max_rpm": 5}`)
		if q, _ := r.gateway.Models().Quota("gpt-4o"); (q.MaxRPM == 5) != (status == 200) {
			t.Errorf("status %d: the quota is %+v", status, q)
		}
	}
}

// Without a configured path, the audit log is beside the state, and other users cannot read
// it.
func TestAuditBesideTheState(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, strings.Replace(usual, "state: memory", "state: "+dir+"/state.db", 1))
	r.want(t, 200, "PUT", "/v1/quotas/gpt-4o?replace=true", `{"max_rpm": 5}`)
	path := dir + "/state.db.audit.jsonl"
	if list := entriesIn(t, path); len(list) != 2 {
		t.Errorf("%+v", list)
	}
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
}

func TestAuditFileThatCannotBeOpened(t *testing.T) {
	if _, err := openAudit(t.TempDir()+"/missing/audit.jsonl", discard); err == nil || !strings.HasPrefix(err.Error(), "ratelimit: the audit log: ") {
		t.Error(err)
	}
}

// After a restart, the log has the entries at the end of its file, and skips damaged lines.
func TestAuditIsRecalled(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []uint64 // the numbers of all entries after one more change
	}{
		"empty":        {"", []uint64{1}},
		"some":         {`{"seq":4}` + "\n" + `{"seq":5}` + "\n", []uint64{4, 5, 6}},
		"a torn line":  {`{"seq":4}` + "\n" + `{"seq":5,"ti`, []uint64{4, 5}},
		"other lines":  {"nonsense\n\n{}\n[]\n" + `{"seq":4}` + "\n", []uint64{4, 5}},
		"no last line": {`{"seq":4}`, []uint64{4, 5}},
	} {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		a, err := openAudit(path, discard)
		if err != nil {
			t.Fatal(name, err)
		}
		if err := a.write(&Entry{Action: "test"}); err != nil {
			t.Fatal(name, err)
		}
		for _, again := range []bool{false, true} { // the same after one more restart
			if again {
				if a, err = openAudit(path, discard); err != nil {
					t.Fatal(name, err)
				}
			}
			var got []uint64
			for _, e := range mustEntries(t, a) {
				got = append(got, e.Seq)
			}
			testkit.Equal(t, name, c.want, got)
		}
	}
}

// Gateways on one SQLite file write to one audit log, and each shows the entries of all, once and in their order. A line
// that another one has not written to its end is read when it is there.
func TestAuditOfOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	open := func() *audit {
		a, err := openAudit(path, discard)
		if err != nil {
			t.Fatal(err)
		}
		a.shared = true
		return a
	}
	one, two := open(), open()
	for i := range 6 {
		if err := []*audit{one, two}[i%2].write(&Entry{Subject: fmt.Sprint(i), Result: done}); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	subjects := func(a *audit) (list []string, last uint64) {
		entries, err := a.entries(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Seq <= last {
				t.Errorf("%d is behind %d", e.Seq, last)
			}
			list, last = append(list, e.Subject), e.Seq
		}
		return list, last
	}
	_, last := subjects(one)
	line := fmt.Sprintf(`{"seq":%d,"subject":"6","result":"done"}`, last+1)
	f.WriteString(line[:20])
	for _, a := range []*audit{one, two} {
		list, _ := subjects(a)
		testkit.Equal(t, "the entries", []string{"0", "1", "2", "3", "4", "5"}, list)
	}
	f.WriteString(line[20:] + "\n")
	for _, a := range []*audit{one, two, open()} {
		list, _ := subjects(a)
		testkit.Equal(t, "the entries", []string{"0", "1", "2", "3", "4", "5", "6"}, list)
	}
}

// The log in memory is bounded, after many changes and after a restart with a long file.
func TestAuditIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var text strings.Builder
	filler := strings.Repeat("x", 2000)
	for i := range 3000 { // more than a restart reads
		fmt.Fprintf(&text, `{"seq":%d,"subject":%q}`+"\n", i+1, filler)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := openAudit(path, discard)
	if err != nil {
		t.Fatal(err)
	}
	list := mustEntries(t, a)
	if n := len(list); n != maxEntries || list[n-1].Seq != 3000 {
		t.Errorf("%d are recalled", n)
	}
	if err := a.write(&Entry{}); err != nil {
		t.Fatal(err)
	}
	if list := mustEntries(t, a); len(list) != maxEntries || list[0].Seq != 3001-maxEntries+1 {
		t.Errorf("%d are kept, from %d on", len(list), list[0].Seq)
	}
}

// The file may be moved away: the next change begins a new one, without a restart.
func TestAuditFileIsMovedAway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	r := newRig(t, withAudit(path))
	r.want(t, 200, "PUT", "/v1/quotas/gpt-4o?replace=true", `{"max_rpm": 5}`)
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	r.want(t, 200, "PUT", "/v1/quotas/gpt-4o?replace=true", `{"max_rpm": 6}`)
	if old, new := entriesIn(t, path+".1"), entriesIn(t, path); len(old) != 2 || len(new) != 2 || new[0].Seq != 3 {
		t.Errorf("%+v and %+v", old, new)
	}
}

// Concurrent changes are recorded one after another: each begins with the result of the one
// before.
func TestConcurrentChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	r := newRig(t, withAudit(path))
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 5 {
				r.want(t, 200, "PUT", "/v1/projects/shared", fmt.Sprintf(`{"requests_per_day": %d}`, 1+10*i+j))
			}
		})
	}
	wg.Wait()
	list := entriesIn(t, path)
	if len(list) != 40 {
		t.Fatalf("%d entries", len(list))
	}
	for i := 1; i < len(list); i += 2 {
		if list[i].Result != "done" || list[i].Seq != uint64(i+1) {
			t.Fatalf("%+v", list[i])
		}
		if i > 1 && !cmp.Equal(list[i].Before, list[i-2].After) {
			t.Errorf("%v comes after %v", list[i].Before, list[i-2].After)
		}
	}
}

// mustEntries returns the entries of a log.
func mustEntries(t *testing.T, a *audit) []Entry {
	t.Helper()
	list, err := a.entries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return list
}
