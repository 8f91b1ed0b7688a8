package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
)

const (
	storesPath = "/openai/v1/vector_stores"
	sevenDays  = `"expires_after":{"anchor":"last_active_at","days":7}`
)

// newStore returns the id of a new store that lives for seven days, made by a project without limits.
func (r *rig) newStore(t testing.TB) string {
	t.Helper()
	return field(t, r.post(t, storesPath, `{`+sevenDays+`}`, "X-Project-ID", "free"), "id")
}

// storageBill is what a call of vector stores is billed: $0.10 for a gigabyte and a day, rounded up.
func storageBill(t mockprovider.Totals) int64 { return (t.Units[llm.ByteDays] + 9) / 10 }

// Files that a store keeps are charged the most that they can cost, and what they cost when they have been read, whoever
// asks for it: a client, or the gateway itself.
func TestVectorStores(t *testing.T) {
	t.Setenv("KEY", "sk-own")
	const yaml = "providers: {openai: {base_url: MOCK, key: {env: KEY}}}\nprojects: {acme: {dollars: 5}}\n"
	for name, begin := range map[string]func(r *rig, file string) (where string, a answer){
		"a new store": func(r *rig, file string) (string, answer) {
			a := r.post(t, storesPath, `{"file_ids":["`+file+`"],`+sevenDays+`}`, "X-Project-ID", "acme")
			return storesPath + "/" + field(t, a, "id"), a
		},
		"a file": func(r *rig, file string) (string, answer) {
			path := storesPath + "/" + r.newStore(t) + "/files"
			a := r.post(t, path, `{"file_id":"`+file+`"}`, "X-Project-ID", "acme")
			return path + "/" + file, a
		},
		"files of a batch": func(r *rig, file string) (string, answer) {
			path := storesPath + "/" + r.newStore(t) + "/file_batches"
			a := r.post(t, path, `{"files":[{"file_id":"`+file+`"},{"file_id":"`+r.uploadFile(t, "one", "assistants")+`"}]}`, "X-Project-ID", "acme")
			return path + "/" + field(t, a, "id") + "/files", a
		},
	} {
		for _, client := range []bool{true, false} {
			r := newRig(t, yaml, mockprovider.Config{})
			where, a := begin(r, r.uploadFile(t, strings.Repeat("a long text ", 1000), "assistants"))
			reserved := spentOf(t, r, "acme")
			if client {
				r.do(t, "GET", where, "", "X-Project-ID", "other")
			} else {
				r.batches.poll(t.Context(), time.Now().Add(2*time.Minute))
			}
			want := price.Amount(storageBill(r.provider.Totals()["vector_store"]))
			if got := spentOf(t, r, "acme"); a.status != 200 || got != want || want == 0 || reserved < want || reserved > 50*want || !r.noBatches(t) {
				t.Errorf("%s, a client asks: %v: %d %s; %v were reserved and %v are charged, want %v", name, client, a.status, a.body, reserved, got, want)
			}
		}
	}
}

// A client that asks for a part of the files of a batch does not settle the batch by what these are alone.
func TestAPartOfABatchOfFiles(t *testing.T) {
	r := newRigBefore(t, "providers: {openai: {base_url: MOCK}}\nprojects: {acme: {dollars: 1, max_wait: 0s}}\n", http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		const store = `{"id":"vs_1",` + sevenDays + `}`
		switch {
		case strings.HasSuffix(q.URL.Path, "/files/file-1"):
			fmt.Fprint(w, `{"id":"file-1","bytes":1000000,"filename":"a.txt"}`)
		case strings.HasSuffix(q.URL.Path, "/vector_stores/vs_1"):
			fmt.Fprint(w, store)
		case q.Method == http.MethodPost:
			fmt.Fprint(w, `{"id":"vsfb_1","status":"in_progress"}`)
		case q.URL.RawQuery == "" || q.URL.RawQuery == "limit=10&api-version=v1":
			fmt.Fprint(w, `{"object":"list","data":[{"status":"failed","usage_bytes":0},{"status":"completed","usage_bytes":2000000}],"has_more":false}`)
		default:
			fmt.Fprint(w, `{"object":"list","data":[{"status":"failed","usage_bytes":0}],"has_more":false}`)
		}
	}))
	for _, whole := range []string{"", "?limit=10&api-version=v1"} {
		before := spentOf(t, r, "acme")
		a := r.post(t, storesPath+"/vs_1/file_batches", `{"file_ids":["file-1"]}`, "X-Project-ID", "acme")
		reserved := spentOf(t, r, "acme") - before
		for _, part := range []string{"?after=file-1", "?filter=failed", "?limit=1&before=b", "?%61fter=a", "?after=a;limit=1", "?After=a", "?after=%zz"} {
			got := r.do(t, "GET", storesPath+"/vs_1/file_batches/vsfb_1/files"+part, "", "X-Project-ID", "acme")
			if now := spentOf(t, r, "acme") - before; a.status != 200 || now != reserved || reserved == 0 || !strings.Contains(got.body, "failed") {
				t.Errorf("%s: %s; %v were reserved, and %v are charged", part, got.body, reserved, now)
			}
		}
		r.do(t, "GET", storesPath+"/vs_1/file_batches/vsfb_1/files"+whole, "", "X-Project-ID", "acme")
		if now, want := spentOf(t, r, "acme")-before, price.Amount(2_000_000*8/10); now != want {
			t.Errorf("all files: %v are charged, want %v", now, want)
		}
	}
}

// A search makes a store live longer, by the days since it was last active. It is charged for these. A store that was
// active today costs nothing more.
func TestSearchesKeepStores(t *testing.T) {
	var ago atomic.Int64
	ago.Store(int64(5 * 24 * time.Hour))
	r := newRig(t, "providers: {openai: {base_url: MOCK}}\nprojects: {acme: {dollars: 1, max_wait: 0s}}\n", mockprovider.Config{Now: func() time.Time { return time.Now().Add(-time.Duration(ago.Load())) }})
	file := r.uploadFile(t, strings.Repeat("a long text ", 1000), "assistants")
	store := field(t, r.post(t, storesPath, `{"file_ids":["`+file+`"],`+sevenDays+`}`, "X-Project-ID", "free"), "id")
	r.do(t, "GET", storesPath+"/"+store, "", "X-Project-ID", "free")
	before := r.provider.Totals()["vector_store"].Units[llm.ByteDays]
	ago.Store(0)
	for range 2 {
		if a := r.post(t, storesPath+"/"+store+"/search", `{"query":"what?"}`, "X-Project-ID", "acme"); a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	billed := r.provider.Totals()["vector_store"].Units
	midnight := time.Now().UTC().Add(-time.Minute).Day() != time.Now().UTC().Add(2*time.Minute).Day() // the next day may be charged, too
	if want := price.Amount((billed[llm.ByteDays] - before) / 10); !midnight && (spentOf(t, r, "acme") != want || billed[llm.ByteDays] != before/8*13) {
		t.Errorf("%v are charged, want %v; %d byte days were billed, and %d before", spentOf(t, r, "acme"), want, billed[llm.ByteDays], before)
	}
}

// Under a budget, nothing is kept whose cost nobody knows: in a store without an end, or named in a way that can be read
// in two. Nothing is charged, and the store stays as it was.
func TestWhatIsNotKept(t *testing.T) {
	r := newRig(t, "providers: {openai: {base_url: MOCK}}\nprojects: {acme: {dollars: 1, max_wait: 0s}, poor: {dollars: 0.00001, max_wait: 0s}}\n", mockprovider.Config{})
	file, store := r.uploadFile(t, strings.Repeat("a long text ", 1000), "assistants"), r.newStore(t)
	endless := field(t, r.post(t, storesPath, `{}`, "X-Project-ID", "free"), "id")
	before := r.provider.Totals()["vector_store"]
	for _, c := range []struct {
		project, path, body string
		status              int
		text                string
	}{
		{"acme", "", `{"file_ids":["` + file + `"]}`, http.StatusForbidden, "expires_after"},
		{"acme", "/" + endless + "/files", `{"file_id":"` + file + `"}`, http.StatusForbidden, "expires_after"},
		{"acme", "/" + endless + "/file_batches", `{"file_ids":["` + file + `"]}`, http.StatusForbidden, "expires_after"},
		{"acme", "", `{"file_ids":["` + file + `"],"expires_after":{"anchor":"last_active_at","days":1e9}}`, http.StatusForbidden, "expires_after"},
		{"acme", "", `{"file_ids":["` + file + `"],"expires_after":{"anchor":"last_active_at","days":"1"}}`, http.StatusForbidden, "expires_after"},
		{"acme", "", `{"file_ids":[],"file_ids":["` + file + `"],` + sevenDays + `}`, http.StatusForbidden, "endpoint_prices"},
		{"acme", "", `{"file_ids":["` + file + `"],"File_ids":[],` + sevenDays + `}`, http.StatusForbidden, "endpoint_prices"},
		{"acme", "", `{"file_ids":"` + file + `",` + sevenDays + `}`, http.StatusForbidden, "endpoint_prices"},
		{"acme", "/" + store + "/files", `{"file_id":"../../files/` + file + `"}`, http.StatusForbidden, "endpoint_prices"},
		{"acme", "/" + store + "/files", `{"file_id":["` + file + `"]}`, http.StatusForbidden, "endpoint_prices"},
		{"acme", "/" + store + "/files", `{"file_id":"file-none"}`, http.StatusBadRequest, "answers with 404"},
		{"acme", "/vs_none/files", `{"file_id":"` + file + `"}`, http.StatusBadRequest, "answers with 404"},
		{"acme", "/" + store + "/file_batches", `{"file_ids":[` + strings.Repeat(`"f",`, 2000) + `"f"]}`, http.StatusForbidden, "endpoint_prices"},
		{"acme", "/" + store, `{"expires_after":{"anchor":"last_active_at","days":365}}`, http.StatusForbidden, "endpoint_prices"},
		{"acme", "/" + store, `{"name":"a","expires_after":null}`, http.StatusForbidden, "endpoint_prices"},
		{"acme", "/" + store, `{"Expires_After":{"anchor":"last_active_at","days":365}}`, http.StatusForbidden, "endpoint_prices"},
		{"poor", "/" + store + "/files", `{"file_id":"` + file + `"}`, http.StatusBadRequest, "may cost up to"},
	} {
		a := r.post(t, storesPath+c.path, c.body, "X-Project-ID", c.project)
		if a.status != c.status || !strings.Contains(a.body, c.text) || spentOf(t, r, c.project) != 0 {
			t.Errorf("%s %.200s: %d %s, want %d with %q", c.path, c.body, a.status, a.body, c.status, c.text)
		}
	}
	if after := r.provider.Totals()["vector_store"]; after.Units != before.Units || after.Requests != before.Requests {
		t.Errorf("something was kept: %+v", after)
	}
	for _, path := range []string{"", "/" + store, "/" + store + "/file_batches/b/cancel"} { // these cost nothing
		if a := r.post(t, storesPath+path, `{"name":"mine"}`, "X-Project-ID", "acme"); a.status != 200 || spentOf(t, r, "acme") != 0 {
			t.Errorf("%s: %d %s, and %v is spent", path, a.status, a.body, spentOf(t, r, "acme"))
		}
	}
	if a := r.post(t, storesPath+"/"+endless+"/files", `{"file_id":"`+file+`"}`, "X-Project-ID", "free"); a.status != 200 {
		t.Errorf("without a budget: %d %s", a.status, a.body)
	}
}

// A search in a store whose files are still being read is denied for that reason, too: the store has an end.
func TestASearchWhileFilesAreRead(t *testing.T) {
	r := newRigBefore(t, "providers: {openai: {base_url: MOCK}}\nprojects: {acme: {dollars: 1, max_wait: 0s}}\n", http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		fmt.Fprint(w, `{"id":"vs_1","usage_bytes":10,"last_active_at":1,"file_counts":{"in_progress":1},`+sevenDays+`}`)
	}))
	a := r.post(t, storesPath+"/vs_1/search", `{"query":"what?"}`, "X-Project-ID", "acme")
	if a.status != http.StatusForbidden || !strings.Contains(a.body, "still being read: try again later") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// A provider that says nothing, or nonsense, of what a store keeps makes nothing cheaper: what was reserved stays charged.
func TestStoresThatLie(t *testing.T) {
	for name, said := range map[string]string{
		"nothing":       `{"id":"vs_1","status":"completed"}`,
		"a text":        `{"id":"vs_1","status":"completed","usage_bytes":"0"}`,
		"below zero":    `{"id":"vs_1","status":"completed","usage_bytes":-1}`,
		"not yet":       `{"id":"vs_1","status":"in_progress","usage_bytes":0}`,
		"an empty list": `{"object":"list","data":[],"has_more":false}`,
	} {
		r := newRigBefore(t, "providers: {openai: {base_url: MOCK}}\nprojects: {acme: {dollars: 1, max_wait: 0s}}\n", http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			switch {
			case strings.HasSuffix(q.URL.Path, "/files/file-1"):
				fmt.Fprint(w, `{"id":"file-1","bytes":1000,"filename":"a.txt"}`)
			case q.Method == http.MethodGet:
				fmt.Fprint(w, said)
			default:
				fmt.Fprint(w, `{"id":"vs_1","status":"in_progress","usage_bytes":0}`)
			}
		}))
		a := r.post(t, storesPath, `{"file_ids":["file-1"],`+sevenDays+`}`, "X-Project-ID", "acme")
		reserved := spentOf(t, r, "acme")
		r.do(t, "GET", storesPath+"/vs_1", "", "X-Project-ID", "acme")
		if got := spentOf(t, r, "acme"); a.status != 200 || got != reserved || got == 0 {
			t.Errorf("%s: %d %s; %v were reserved, and %v are charged", name, a.status, a.body, reserved, got)
		}
	}
}
