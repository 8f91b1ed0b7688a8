package mockprovider

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// vectorStoreModel stands for the model in the totals of vector stores.
const vectorStoreModel = "vector_store"

// A vectorStore is one of OpenAI's. What it keeps is billed by the byte and the day, the first and the last day included,
// until the day on which it ends: some days after it was last active. One without an end is billed for a day.
type vectorStore struct {
	id     string
	at     time.Time
	active time.Time
	days   int64 // 0: it has no end
	files  []*storedFile
}

// A storedFile is read when somebody asks for its store, or for something in it.
type storedFile struct {
	id, batch string
	bytes     int64 // that the store keeps
	done      bool
}

// bytes returns how many bytes the store keeps, in files that are read or not.
func (s *vectorStore) bytes(done bool) (n int64) {
	for _, f := range s.files {
		if f.done == done {
			n += f.bytes
		}
	}
	return n
}

// wake makes the store active, and returns the byte days for which it lives longer.
func (s *vectorStore) wake(now time.Time) (more int64) {
	const day = 24 * 60 * 60
	if s.days > 0 {
		more = (s.bytes(true) + s.bytes(false)) * max(now.Unix()/day-s.active.Unix()/day, 0)
	}
	s.active = now
	return more
}

// add adds files to the store, and returns the byte days for which they are kept.
func (s *vectorStore) add(b *batches, batch string, ids []string) (more int64, failed *failure) {
	for _, id := range ids {
		f := b.files[id]
		if f == nil {
			return 0, missing(id)
		}
		kept := &storedFile{id: id, batch: batch, bytes: int64(2*len(f.content) + (len(f.content)/1600+1)*1024)}
		s.files = append(s.files, kept)
		more += kept.bytes * (s.days + 1)
	}
	return more, nil
}

// setEnd reads when the store ends.
func (s *vectorStore) setEnd(f fields) {
	if after, has := f["expires_after"]; has {
		days, _ := after.(map[string]any)
		s.days = int64(fields(days).number("days"))
	}
}

func (s *vectorStore) object() object {
	o := object{
		"id": s.id, "object": "vector_store", "created_at": s.at.Unix(), "name": nil, "metadata": object{}, "last_active_at": s.active.Unix(),
		"status": status(s.bytes(false) == 0), "usage_bytes": s.bytes(true), "expires_after": nil, "expires_at": nil, "file_counts": s.counts(""),
	}
	if s.days > 0 {
		o["expires_after"] = object{"anchor": "last_active_at", "days": s.days}
		o["expires_at"] = s.active.AddDate(0, 0, int(s.days)).Unix()
	}
	return o
}

// counts returns how many files of a batch there are, or of all.
func (s *vectorStore) counts(batch string) object {
	n := map[bool]int{}
	for _, f := range s.files {
		if batch == "" || f.batch == batch {
			n[f.done]++
		}
	}
	return object{"in_progress": n[false], "completed": n[true], "failed": 0, "cancelled": 0, "total": n[false] + n[true]}
}

func status(done bool) string {
	if done {
		return "completed"
	}
	return "in_progress"
}

func (s *vectorStore) file(f *storedFile) object {
	o := object{"id": f.id, "object": "vector_store.file", "created_at": s.at.Unix(), "vector_store_id": s.id, "status": status(f.done), "usage_bytes": 0, "last_error": nil}
	if f.done {
		o["usage_bytes"] = f.bytes
	}
	return o
}

func (s *vectorStore) batch(id string) object {
	counts := s.counts(id)
	return object{"id": id, "object": "vector_store.files_batch", "created_at": s.at.Unix(), "vector_store_id": s.id, "status": status(counts["in_progress"] == 0), "file_counts": counts}
}

// servesVectorStores answers a request that is about vector stores, and reports whether it has.
func (e *exchange) servesVectorStores() bool {
	names := strings.FieldsFunc(strings.ToLower(e.r.URL.Path), func(c rune) bool { return c == '/' })
	at := slices.Index(names, "vector_stores")
	if at < 0 {
		return false
	}
	b := &e.server.batches
	b.mu.Lock()
	defer b.mu.Unlock()
	e.call.Model = vectorStoreModel
	o, units, failed := e.serveVectorStore(names[at+1:])
	if failed != nil {
		e.fail(*failed, limitStates{})
		return true
	}
	if e.r.Method == http.MethodPost {
		e.server.ledger.add(vectorStoreModel, Totals{Requests: 1, Units: units})
	}
	e.json(http.StatusOK, encode(o))
	return true
}

// serveVectorStore answers a request for what is below the folder of all stores, and says what it is billed for.
func (e *exchange) serveVectorStore(below []string) (o object, bill llm.Units, failed *failure) {
	b := &e.server.batches
	var body fields
	if text, _ := io.ReadAll(io.LimitReader(e.r.Body, maxBody)); len(text) > 0 && json.Unmarshal(text, &body) != nil {
		return nil, bill, &failure{status: http.StatusBadRequest, message: "the body is no JSON object"}
	}
	if len(below) == 0 {
		b.count++
		s := &vectorStore{id: fmt.Sprintf("vs_mock%d", b.count), at: e.now, active: e.now}
		s.setEnd(body)
		if bill[llm.ByteDays], failed = s.add(b, "", filesOf(body)); failed == nil {
			if e.server.stores == nil {
				e.server.stores = map[string]*vectorStore{}
			}
			e.server.stores[s.id] = s
		}
		return s.object(), bill, failed
	}
	s := e.server.stores[below[0]]
	if s == nil {
		return nil, bill, missing(below[0])
	}
	what := e.r.Method + " "
	for i, name := range below[1:] {
		if i%2 == 0 {
			what += "/" + name
		}
	}
	if e.r.Method == http.MethodGet {
		for _, f := range s.files {
			f.done = true
		}
	}
	switch {
	case what == "POST /files" && len(below) == 2, what == "POST /file_batches" && len(below) == 2:
		batch := ""
		if what == "POST /file_batches" {
			b.count++
			batch = fmt.Sprintf("vsfb_mock%d", b.count)
		}
		before := s.wake(e.now)
		more, failed := s.add(b, batch, filesOf(body))
		bill[llm.ByteDays] = before + more
		if batch == "" && failed == nil {
			return s.file(s.files[len(s.files)-1]), bill, nil
		}
		return s.batch(batch), bill, failed
	case what == "POST /search":
		queries, _ := body["query"].([]any)
		bill[llm.FileSearches], bill[llm.ByteDays] = int64(max(len(queries), 1)), s.wake(e.now)
		return object{"object": "vector_store.search_results.page", "search_query": body["query"], "data": []object{}, "has_more": false, "next_page": nil}, bill, nil
	case what == "GET /files" && len(below) == 3:
		if i := slices.IndexFunc(s.files, func(f *storedFile) bool { return f.id == below[2] }); i >= 0 {
			return s.file(s.files[i]), bill, nil
		}
		return nil, bill, missing(below[2])
	case what == "GET /file_batches/files":
		list := []object{}
		for _, f := range s.files {
			if f.batch == below[2] {
				list = append(list, s.file(f))
			}
		}
		return object{"object": "list", "data": list, "has_more": false}, bill, nil
	case what == "GET /file_batches", what == "POST /file_batches/cancel":
		return s.batch(below[2]), bill, nil
	case e.r.Method == http.MethodDelete:
		delete(e.server.stores, s.id)
		return object{"id": s.id, "object": "vector_store.deleted", "deleted": true}, bill, nil
	}
	s.setEnd(body)
	return s.object(), bill, nil
}

// filesOf returns the ids of the files that a request adds to a store.
func filesOf(body fields) (ids []string) {
	if id := body.text("file_id"); id != "" {
		ids = append(ids, id)
	}
	list, _ := body["file_ids"].([]any)
	for _, id := range list {
		ids = append(ids, fmt.Sprint(id))
	}
	files, _ := body["files"].([]any)
	for _, f := range files {
		one, _ := f.(map[string]any)
		ids = append(ids, fields(one).text("file_id"))
	}
	return ids
}
