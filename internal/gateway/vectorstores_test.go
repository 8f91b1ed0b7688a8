package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
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

// An oldStore is a store that was last active five days ago.
type oldStore struct {
	id       string
	byteDays int64 // that a search of it costs
}

// newOldStore starts a gateway before a mock that has an old store. For both of them it is noon, since the gateway counts a
// request that may be sent after midnight as one of the next day.
func newOldStore(t *testing.T, yaml string) (*rig, oldStore) {
	t.Helper()
	noon := time.Now().UTC().Truncate(24 * time.Hour).Add(12 * time.Hour)
	var ago atomic.Int64
	ago.Store(int64(5 * 24 * time.Hour))
	r := newRig(t, yaml, mockprovider.Config{Now: func() time.Time { return noon.Add(-time.Duration(ago.Load())) }})
	r.now = func() time.Time { return noon }
	file := r.uploadFile(t, strings.Repeat("a long text ", 1000), "assistants")
	store := field(t, r.post(t, storesPath, `{"file_ids":["`+file+`"],`+sevenDays+`}`, "X-Project-ID", "free"), "id")
	r.do(t, "GET", storesPath+"/"+store, "", "X-Project-ID", "free") // its file is read
	ago.Store(0)
	return r, oldStore{store, r.provider.Totals()["vector_store"].Units[llm.ByteDays] / 8 * 5}
}

// A search makes a store live longer, by the days since it was last active. It is charged for these. A store that was
// active today costs nothing more.
func TestSearchesKeepStores(t *testing.T) {
	r, store := newOldStore(t, "providers: {openai: {base_url: MOCK}}\nprojects: {acme: {dollars: 1, max_wait: 0s}}\n")
	before := r.provider.Totals()["vector_store"].Units[llm.ByteDays]
	for range 2 {
		if a := r.post(t, storesPath+"/"+store.id+"/search", `{"query":"what?"}`, "X-Project-ID", "acme"); a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	billed := r.provider.Totals()["vector_store"].Units[llm.ByteDays] - before
	if want := price.Amount(billed / 10); spentOf(t, r, "acme") != want || billed != store.byteDays || want == 0 {
		t.Errorf("%v are charged, want %v; %d byte days were billed, want %d", spentOf(t, r, "acme"), want, billed, store.byteDays)
	}
}

// searchBody returns the body of a response whose tools are to search stores: the value of vector_store_ids.
func searchBody(model, stores string) string {
	return `{"model":"` + model + `","input":"what?","max_output_tokens":50,"tools":[{"type":"file_search","vector_store_ids":` + stores + `}]}`
}

// A response whose tools search a store makes it live longer, too, once for all tools and names. That is booked as it is
// billed, whether the price of the model says what storage costs or not, and whether a budget limits it or not.
func TestResponsesKeepStores(t *testing.T) {
	const yaml = "providers: {openai: {base_url: MOCK}}\nprices: {gpt-t: {input: 2.50, output: 15, file_searches: 2.50, context: 10_000}}\n" +
		"projects: {acme: {dollars: 1000, max_wait: 0s}, days: {byte_days_per_day: 1_000_000, max_wait: 0s}, other: {max_wait: 0s}}\n"
	for _, c := range []struct{ project, model, more string }{
		{"acme", "gpt-5.4", ``}, {"acme", "gpt-t", ``}, {"acme", "gpt-5.4", `"stream":true,`}, {"acme", "gpt-5.4", `"background":true,`},
		{"days", "gpt-5.4", ``}, {"other", "gpt-5.4", ``},
	} {
		r, store := newOldStore(t, yaml)
		body := `{` + c.more + searchBody(c.model, `["`+store.id+`","`+store.id+`"]`)[1:]
		body = strings.Replace(body, `"tools":[`, `"tools":[{"vector_store_ids":["`+store.id+`"],"type":"file_search"},`, 1)
		for range 2 {
			a := r.post(t, "/openai/v1/responses", body, "X-Project-ID", c.project, "X-Mock", "file-searches=2")
			if a.status != 200 {
				t.Fatalf("%+v: %d %s", c, a.status, a.body)
			}
			for range 2 * strings.Count(c.more, "background") {
				r.do(t, "GET", "/openai/v1/responses/"+field(t, a, "id"), "", "X-Project-ID", c.project)
			}
		}
		r.settled(t)
		total := r.provider.Totals()[c.model]
		bill := plus(perToken(2_500, 15_000), llm.FileSearches, 2_500_000)(total) + (store.byteDays+9)/10
		got := r.usage(t, books.Query{Project: c.project}).Total
		if total.Units[llm.ByteDays] != store.byteDays || got[books.Nanodollars] != bill || got[books.Beside+llm.ByteDays] != store.byteDays {
			t.Errorf("%+v: %v is booked, want %d nanodollars and %d byte days; %+v was billed", c, got, bill, store.byteDays, total)
		}
		if c.project == "acme" && int64(spentOf(t, r, "acme")) != bill {
			t.Errorf("%+v: %v is spent, want %d", c, spentOf(t, r, "acme"), bill)
		}
		if d, err := r.Projects().Peek(t.Context(), "days"); c.project == "days" && (err != nil || window(t, d, "byte_days_per_day").Remaining != 1_000_000-store.byteDays) {
			t.Errorf("%+v: %+v, %v", c, d.Windows(), err)
		}
	}
}

// However many responses search an old store at once, none of them is charged less than it costs.
func TestResponsesSearchAtOnce(t *testing.T) {
	r, store := newOldStore(t, "providers: {openai: {base_url: MOCK}}\nprojects: {acme: {byte_days_per_day: 1_000_000, max_wait: 0s}}\n")
	var all sync.WaitGroup
	for range testkit.Rounds(30, 300) {
		all.Go(func() {
			r.post(t, "/openai/v1/responses", searchBody("gpt-5.4", `["`+store.id+`"]`), "X-Project-ID", "acme")
		})
	}
	all.Wait()
	r.settled(t)
	d, err := r.Projects().Peek(t.Context(), "acme")
	if used := 1_000_000 - window(t, d, "byte_days_per_day").Remaining; err != nil || used < store.byteDays || r.provider.Totals()["gpt-5.4"].Units[llm.ByteDays] != store.byteDays {
		t.Errorf("%d byte days are charged, want %d at least; %v", used, store.byteDays, err)
	}
}

// Where dollars or byte days are limited, a response does not search what nobody knows the cost of, nor does a project that
// is paused. Nothing is charged. Without such a limit it passes, and nobody says what the stores cost.
func TestWhatIsNotSearched(t *testing.T) {
	var asked, sent atomic.Int64
	r := newRigBefore(t, "providers: {openai: {base_url: MOCK}}\nprojects: {acme: {dollars: 1000, max_wait: 0s}, days: {byte_days_per_day: 1000, max_wait: 0s}, free: {requests_per_day: 1000}, idle: {dollars: 1}}\n", http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch _, id, isStore := strings.Cut(q.URL.Path, "/vector_stores/"); {
		case !isStore:
			sent.Add(1)
			fmt.Fprint(w, `{"id":"resp_1","status":"completed","output":[],"usage":{"input_tokens":1,"output_tokens":1}}`)
		case id == "vs_read":
			fmt.Fprint(w, `{"usage_bytes":10,"last_active_at":1,"file_counts":{"in_progress":1},`+sevenDays+`}`)
		case id == "vs_lost":
			panic(http.ErrAbortHandler)
		case id == "vs_odd":
			fmt.Fprint(w, `["vs_odd"]`)
		case id == "vs_large":
			fmt.Fprint(w, `{"usage_bytes":9223372036854775807,"last_active_at":1,`+sevenDays+`}`)
		case strings.HasPrefix(id, "vs_endless"):
			asked.Add(1)
			fmt.Fprint(w, `{"usage_bytes":10,"last_active_at":1,"expires_after":null}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	r.pause(t, "idle", true)
	many := func(n int) string {
		ids := make([]string, n)
		for i := range ids {
			ids[i] = fmt.Sprintf(`"vs_endless%d"`, i)
		}
		return "[" + strings.Join(ids, ",") + "]"
	}
	for _, c := range []struct {
		stores string
		status int // for acme and days
		text   string
	}{
		{`["vs_endless","vs_read"]`, http.StatusForbidden, "still being read"},
		{`["vs_odd"]`, http.StatusBadRequest, "not what the gateway expects"},
		{`["vs_none"]`, http.StatusBadRequest, "answers with 404"},
		{`["vs_lost"]`, http.StatusBadGateway, "the provider"},
		{`["vs_large"]`, http.StatusBadRequest, "never pass"},
		{`["vs_endless/../vs_read"]`, http.StatusBadRequest, "vector_store_ids"},
		{`[""]`, http.StatusBadRequest, "vector_store_ids"},
		{`[null]`, http.StatusBadRequest, "vector_store_ids"},
		{`["vs_endless",1]`, http.StatusBadRequest, "vector_store_ids"},
		{`"vs_endless"`, http.StatusBadRequest, "vector_store_ids"},
		{`{"a":["vs_endless"]}`, http.StatusBadRequest, "vector_store_ids"},
		{many(11), http.StatusBadRequest, "10 at most"},
		{many(10_000), http.StatusBadRequest, "10 at most"},
		{`["vs_endless"],"vector_store_ids":["vs_none"]`, http.StatusBadRequest, "answers with 404"},
		{`["vs_endless"],"Vector_store_ids":["vs_none"]`, http.StatusBadRequest, "answers with 404"},
		{`["vs_endless"],"vector\u005fstore_ids":["vs_none"]`, http.StatusBadRequest, "answers with 404"},
		{`["vs_none"],"type":"function"`, http.StatusBadRequest, "answers with 404"},
		{many(10), http.StatusOK, "resp_1"},
		{`["vs_endless","vs_endless"]`, http.StatusOK, "resp_1"},
		{`[]`, http.StatusOK, "resp_1"},
		{`null`, http.StatusOK, "resp_1"},
	} {
		for _, project := range []string{"acme", "days"} {
			before, n := spentOf(t, r, project), sent.Load()
			a := r.post(t, "/openai/v1/responses", searchBody("gpt-5.4", c.stores), "X-Project-ID", project)
			refused := a.status != http.StatusOK && (sent.Load() != n || spentOf(t, r, project) != before)
			if a.status != c.status || !strings.Contains(a.body, c.text) || refused {
				t.Errorf("%s, %.100s: %d %s, want %d with %q; %v is spent", project, c.stores, a.status, a.body, c.status, c.text, spentOf(t, r, project))
			}
		}
		if a := r.post(t, "/openai/v1/responses", searchBody("gpt-5.4", c.stores), "X-Project-ID", "free"); a.status != http.StatusOK {
			t.Errorf("without a limit, %.100s: %d %s", c.stores, a.status, a.body)
		}
		if rec := r.last(t); rec.Outcome != Passed || rec.Error != "" {
			t.Errorf("without a limit, %.100s: recorded as %s, %q", c.stores, rec.Outcome, rec.Error)
		}
	}
	before := asked.Load()
	if a := r.post(t, "/openai/v1/responses", searchBody("gpt-5.4", `["vs_endless"]`), "X-Project-ID", "idle"); a.status != http.StatusTooManyRequests || asked.Load() != before {
		t.Errorf("a paused project: %d %s, and %d stores were asked for", a.status, a.body, asked.Load()-before)
	}
}

// A provider without a price for storage is not asked for stores unless byte days are limited. Of several deployments,
// the one that was asked gets the response. The response need not name a model.
func TestStoresAreAskedForWhenTheyCost(t *testing.T) {
	var asked, elsewhere atomic.Int64
	r := newRigBefore(t, `
providers:
  mine: {kind: compatible, base_url: MOCK}
  openai: {deployments: {a: {base_url: MOCK}, b: {base_url: MOCK/b}}, models: {gpt-5.4: {max_rpm: 100}}}
prices: {own-t: {input: 1, output: 1, file_searches: 1, context: 10_000}}
projects: {acme: {dollars: 1000, max_wait: 0s}, days: {byte_days_per_day: 1000, max_wait: 0s}}
`, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch {
		case strings.HasPrefix(q.URL.Path, "/b/"):
			elsewhere.Add(1)
		case q.Method == http.MethodGet:
			asked.Add(1)
			fmt.Fprint(w, `{"expires_after":null}`)
			return
		}
		fmt.Fprint(w, `{"id":"resp_1","status":"completed","output":[],"usage":{"input_tokens":1,"output_tokens":1}}`)
	}))
	for _, c := range []struct {
		project, provider, model string
		asked                    int64
	}{
		{"acme", "mine", "own-t", 0}, {"days", "mine", "own-t", 1}, {"days", "mine", "", 1}, {"free", "mine", "own-t", 0},
		{"acme", "openai", "gpt-5.4", 1}, {"acme", "openai", "gpt-5.4", 1}, {"days", "openai", "gpt-5.4", 1}, {"free", "openai", "gpt-5.4", 1},
	} {
		before := asked.Load()
		a := r.post(t, "/"+c.provider+"/v1/responses", searchBody(c.model, `["vs_1"]`), "X-Project-ID", c.project)
		if n := asked.Load() - before; a.status != 200 || n != c.asked || elsewhere.Load() != 0 {
			t.Errorf("%+v: %d %s; the provider was asked %d times, and %d responses went elsewhere", c, a.status, a.body, n, elsewhere.Load())
		}
	}
}

// A price that a configuration gives to all models has none for storage, or says that storage is free: no provider is
// asked for stores, and none needs to know them.
func TestAPriceOfAllModelsIsNotThatOfStorage(t *testing.T) {
	for _, all := range []string{"{input: 1, output: 1, file_searches: 1, context: 10_000}", "{input: 1, output: 1, file_searches: 1, byte_days: 0, context: 10_000}"} {
		var asked atomic.Int64
		r := newRigBefore(t, `
providers: {mine: {kind: compatible, base_url: MOCK}, openai: {base_url: MOCK}}
prices: {"*": `+all+`}
projects: {acme: {dollars: 1000, max_wait: 0s}}
`, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if q.Method == http.MethodGet {
				asked.Add(1)
				w.WriteHeader(http.StatusNotFound)
				return
			}
			fmt.Fprint(w, `{"id":"resp_1","status":"completed","output":[],"usage":{"input_tokens":1,"output_tokens":1}}`)
		}))
		for _, provider := range []string{"mine", "openai"} {
			a := r.post(t, "/"+provider+"/v1/responses", searchBody("own-t", `["vs_1"]`), "X-Project-ID", "acme")
			if a.status != 200 || asked.Load() != 0 {
				t.Errorf("%s, %s: %d %s; the provider was asked %d times", all, provider, a.status, a.body, asked.Load())
			}
		}
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
