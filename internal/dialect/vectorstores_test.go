package dialect

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// What is added to a store is kept until the end of the store, today included. What the store has already is kept longer,
// by the days since the store was last active. A request that may be sent tomorrow counts as one of tomorrow.
func TestStorageOfStores(t *testing.T) {
	const mib = 1 << 20
	const utf8 = mib * 3 / 2 // bytes of text in a file that has UTF-16
	text, packed := int64(2*utf8+(utf8/50+1)*1024), int64(2*640_000_000+100_001*1024)
	synctest.Test(t, func(t *testing.T) { // it is midnight, UTC
		store := func(days, daysAgo, bytes, reading any) string {
			return fmt.Sprintf(`{"usage_bytes":%v,"last_active_at":%d,"expires_after":{"anchor":"last_active_at","days":%v},"file_counts":{"in_progress":%v}}`, bytes, time.Now().Unix()-int64(daysAgo.(int))*86_400, days, reading)
		}
		for _, c := range []struct {
			store, name string
			late        time.Duration
			want        int64 // byte days; -1: nobody knows
		}{
			{store(7, 0, 0, 0), "a.txt", 0, 8 * text},
			{store(7, 0, 0, 0), "a.PY", time.Minute, 8 * text},
			{store(7, 0, 0, 0), "a.pdf", 0, 8 * packed},
			{store(7, 0, 0, 0), "a", 0, 8 * packed},
			{store(7, 0, 10, 0), "a.txt", 0, 8 * text},
			{store(7, 0, 10, 0), "a.txt", 24 * time.Hour, 8*text + 10},
			{store(7, 5, 10, 0), "a.txt", 0, 8*text + 50},
			{store(7, -5, 10, 0), "a.txt", 0, 8 * text},
			{store(7, 5, -10, 0), "a.txt", 0, 8 * text},
			{store(7, 5, 10, 1), "a.txt", 0, -1}, // its bytes lack those of the file that is being read
			{store(7, 0, 10, 1), "a.txt", 0, 8 * text},
			{store(365, 365, "9223372036854775807", 0), "a.txt", 0, 366*text + mostLines/365*365},
			{store(0, 0, 0, 0), "a.txt", 0, -1},
			{store(366, 0, 0, 0), "a.txt", 0, -1},
			{store(-1, 0, 0, 0), "a.txt", 0, -1},
			{`{}`, "a.txt", 0, -1},
			{`{"expires_after":null}`, "a.txt", 0, -1},
		} {
			const path = "/v1/vector_stores/vs_1/files"
			e, _ := RecognizeAt(OpenAI, http.MethodPost, &url.URL{Path: path})
			s, err := e.Stored(path, "", []byte(`{"file_id":"file-1"}`))
			if want := []string{"/v1/vector_stores/vs_1", "/v1/files/file-1"}; err != nil || s == nil || !slices.Equal(s.Paths, want) {
				t.Fatalf("%+v, %v", s, err)
			}
			s.Now, s.Late = time.Now(), c.late
			s.Add([]byte(c.store))
			s.Add(fmt.Appendf(nil, `{"bytes":%d,"filename":%q}`, mib, c.name))
			q, err := s.Request()
			if err != nil || q.Units[llm.ByteDays] != c.want || q.Model != "vector_store" || !q.Background || !q.API.PaidByUnits() {
				t.Errorf("%s in %s: %d byte days, %v; want %d", c.name, c.store, q.Units[llm.ByteDays], err, c.want)
			}
		}
	})
}

// A file may have two bytes of UTF-16 for three bytes of text. None has more text than one of another format.
func TestMostOfATextFile(t *testing.T) {
	for bytes, text := range map[int64]int64{0: 0, 1: 2, 2: 3, 3: 5, 426_666_666: 639_999_999, 426_666_667: 640_000_000, math.MaxInt64: 640_000_000, -1: 640_000_000} {
		f := keptFile{Bytes: bytes, Filename: "a.txt"}
		if got, want := f.most(), 2*text+(min(text, 5_000_000)/50+1)*1024; got != want {
			t.Errorf("%d bytes: %d are kept at most, want %d", bytes, got, want)
		}
	}
}

// What an answer reports of a store is what it keeps, once it has read all of it.
func TestStoresReportBytes(t *testing.T) {
	const file = `{"status":"completed","usage_bytes":10}`
	for _, c := range []struct {
		body string
		want int64 // -1: it does not say
	}{
		{`{"id":"vs_1","status":"completed","usage_bytes":10}`, 10},
		{`{"id":"vs_1","usage_bytes":10,"status":"in_progress"}`, -1},
		{`{"id":"file-1","status":"failed","usage_bytes":0}`, 0},
		{`{"object":"list","data":[` + file + `,` + file + `],"has_more":false}`, 20},
		{`{"object":"list","data":[{"status":"in_progress","usage_bytes":0},` + file + `],"has_more":false}`, -1},
		{`{"object":"list","data":[` + file + `],"has_more":true}`, -1},
		{`{"object":"list","data":[` + file + `]}`, -1},
		{`{"object":"list","data":[],"has_more":false}`, -1},
	} {
		m := NewMeter(VectorStores, nil)
		fmt.Fprint(m, c.body)
		u := m.Usage()
		if VectorStores.Told(u) != (c.want >= 0) || c.want >= 0 && u.Units[llm.ByteDays] != c.want {
			t.Errorf("%s: %v", c.body, u.Units[llm.ByteDays])
		}
		r := Request{Endpoint: Endpoint{API: VectorStores}, Days: 8, Before: 3, Units: llm.Units{llm.ByteDays: 1000}}
		want := int64(1000)
		if c.want >= 0 {
			want = 8*c.want + 3
		}
		if got := r.Used(u).Units[llm.ByteDays]; got != want {
			t.Errorf("%s: %d byte days are charged, want %d", c.body, got, want)
		}
	}
}

// The responses of stores have names that no two of them share, however their paths are written.
func TestNamesOfStores(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/vector_stores/vs_1":                        "vs_1",
		"/v1/Vector_Stores/vs_1/Files/file-1":           "vs_1/files/file-1",
		"/v1/vector_stores/vs_2/files/file-1/":          "vs_2/files/file-1",
		"/v1/vector_stores/vs_1/file_batches/b/files":   "vs_1/file_batches/b/files",
		"/v1/vector_stores/vs_1/files":                  "",
		"/v1/vector_stores/vs_1/file_batches/b":         "",
		"/v1/vector_stores/vs_1/files/file-1/content":   "",
		"/v1/vector_stores":                             "",
		"/v1/vector_stores/vs_1/file_batches/b/files/c": "",
	} {
		if api, name := FetchedAt(path); name != want || (api == VectorStores) != (want != "") {
			t.Errorf("%s: %s of %q, want %q", path, name, api, want)
		}
	}
	if api, name := FetchedAt("/v1/files/file-1"); api != "" {
		t.Errorf("a file is the response %q of %s", name, api)
	}
	e := Endpoint{API: VectorStores}
	if where, query, name := e.Response("/v1/vector_stores/vs_1/File_Batches/", "b"); where != "/v1/vector_stores/vs_1/File_Batches/b/files" || query.Get("limit") != "100" || !strings.HasSuffix(name, "vs_1/file_batches/b/files") {
		t.Errorf("%s?%v is %s", where, query, name)
	}
}

// What it costs to keep files, or to search a store, is not known before somebody has asked the provider. Requests that
// cost nothing are known without.
func TestStorageIsUnknownAtFirst(t *testing.T) {
	for _, c := range []struct {
		path, body         string
		byteDays, searches int64
	}{
		{"", `{"file_ids":["file-1"]}`, -1, 0},
		{"", `{"file_ids":"file-1"}`, -1, 0},
		{"", `{"file_ids":[],"file_ids":["file-1"]}`, -1, 0},
		{"", `{"name":"a"}`, 0, 0},
		{"/vs_1/files", `{"file_id":"file-1"}`, -1, 0},
		{"/vs_1/file_batches/b/cancel", `{}`, 0, 0},
		{"/vs_1", `{"name":"a"}`, 0, 0},
		{"/vs_1", `{"Expires_after":null}`, -1, 0},
		{"/vs_1/search", `{"query":"a"}`, -1, 1},
		{"/vs_1/search", `{"query":["a","b"]}`, -1, 2},
	} {
		e, _ := RecognizeAt(OpenAI, http.MethodPost, &url.URL{Path: "/v1/vector_stores" + c.path})
		q, err := e.Read([]byte(c.body))
		if err != nil || q.Units[llm.ByteDays] != c.byteDays || q.Units[llm.FileSearches] != c.searches {
			t.Errorf("%s %s: %v, %v", c.path, c.body, q.Units, err)
		}
	}
}

// The stores that the tools of a response search are asked for once each, beside the path of the response, whatever the
// order of the keys. Of names that cannot be read, or of too many, none is asked for.
func TestSearchedStores(t *testing.T) {
	many := strings.Repeat(`"a",`, 10_000) + `"b"`
	ten := `"0","1","2","3","4","5","6","7","8","9"`
	for _, c := range []struct {
		path, tools string
		want        []string // nil: no store is searched
	}{
		{"/v1/responses", `{"type":"file_search","vector_store_ids":["b","a"]}`, []string{"/v1/vector_stores/a", "/v1/vector_stores/b"}},
		{"/openai/v1/Responses/compact/", `{"vector_store_ids":["a"],"type":"file_search"},{"type":"file_search","vector_store_ids":["a"]}`, []string{"/openai/v1/vector_stores/a"}},
		{"/v1/responses", `{"type":"file_search","vector_store_ids":[` + many + `]}`, []string{"/v1/vector_stores/a", "/v1/vector_stores/b"}},
		{"/v1/responses", `{"type":"file_search","vector_store_ids":[` + ten + `]}`, []string{"/v1/vector_stores/0", "/v1/vector_stores/9"}},
		{"/v1/responses", `{"type":"file_search","vector_store_ids":[` + ten + `,"a"]}`, []string{}},
		{"/v1/responses", `{"type":"file_search","vector_store_ids":["a","b/c"]}`, []string{}},
		{"/v1/responses", `{"type":"file_search","vector_store_ids":["a"]},{"type":"file_search","vector_store_ids":"b"}`, []string{}},
		{"/v1/responses", `{"type":"file_search","vector_store_ids":["a"],"type":"function"}`, []string{"/v1/vector_stores/a"}},
		{"/v1/responses", `{"type":"file_search","vector\u005fstore_ids":["a"],"VECTOR_STORE_IDS":["b"]}`, []string{"/v1/vector_stores/a", "/v1/vector_stores/b"}},
		{"/v1/responses", `{"type":"file_search","vector_store_ids":[]}`, nil},
		{"/v1/responses", `{"type":"file_search"}`, nil},
		{"/v1/responses", `{"type":"function","vector_store_ids":["a"]}`, nil},
		{"/v1/chat/completions", `{"type":"file_search","vector_store_ids":["a"]}`, nil},
	} {
		e, _ := RecognizeAt(OpenAI, http.MethodPost, &url.URL{Path: "/v1/responses"})
		if strings.Contains(c.path, "chat") {
			e.API = Chat
		}
		q, err := e.Read([]byte(`{"model":"gpt-5.4","input":"a","tools":[` + c.tools + `]}`))
		s := q.SearchedStores(c.path)
		switch {
		case err != nil || (s == nil) != (c.want == nil):
			t.Errorf("%s %.100s: %+v, %v", c.path, c.tools, s, err)
		case s == nil:
		case len(c.want) == 0 && len(s.Paths) > 0, len(c.want) > 0 && (len(s.Paths) == 0 || s.Paths[0] != c.want[0] || s.Paths[len(s.Paths)-1] != c.want[len(c.want)-1]):
			t.Errorf("%s %.100s: %s, want %s", c.path, c.tools, s.Paths, c.want)
		}
	}
}

// A response makes all stores live longer that it searches. It may search until an hour after it was sent.
func TestStorageOfResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it is midnight, UTC
		store := func(hoursAgo, bytes, reading int64) string {
			return fmt.Sprintf(`{"usage_bytes":%d,"last_active_at":%d,"expires_after":{"anchor":"last_active_at","days":7},"file_counts":{"in_progress":%d}}`, bytes, time.Now().Unix()-hoursAgo*3600, reading)
		}
		for _, c := range []struct {
			stores []string
			late   time.Duration
			want   int64
		}{
			{[]string{store(0, 10, 1)}, 0, 0},
			{[]string{store(1, 10, 0)}, 0, 10},
			{[]string{store(25, 10, 0), store(1, 3, 0)}, 0, 23},
			{[]string{store(0, 10, 0)}, 23*time.Hour - time.Second, 0},
			{[]string{store(0, 10, 0)}, 23 * time.Hour, 10},
			{[]string{store(25, 10, 0), store(1, 3, 1), store(25, 10, 0)}, 0, -1},
			{[]string{`{}`, `{"expires_after":null,"usage_bytes":5,"last_active_at":1}`}, 0, 0},
			{[]string{`{"expires_after":{"anchor":"last_active_at","days":7},"usage_bytes":5,"last_active_at":null}`}, 0, 35},
			{[]string{`{"expires_after":{"anchor":"created_at","days":7},"usage_bytes":5,"last_active_at":1}`}, 0, -1},
			{[]string{`{"expires_after":{"anchor":"last_active_at","days":366},"usage_bytes":5,"last_active_at":1}`}, 0, -1},
		} {
			s := Stored{about: aboutToolStores, request: Request{Endpoint: Endpoint{API: Responses}, Units: llm.Units{llm.FileSearches: 10}}, Now: time.Now(), Late: c.late}
			for _, text := range c.stores {
				s.Add([]byte(text))
			}
			if q, err := s.Request(); err != nil || q.Units != (llm.Units{llm.FileSearches: 10, llm.ByteDays: c.want}) {
				t.Errorf("%s: %v, %v, want %d", c.stores, q.Units, err, c.want)
			}
		}
	})
}
