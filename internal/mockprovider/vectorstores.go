package mockprovider

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
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

// vectorStores are the stores of a server.
type vectorStores struct {
	mu   sync.Mutex // locked after that of the batches, if both are
	byID map[string]*vectorStore
}

// search makes the stores active that the tools of a call search, and returns the byte days for which they live longer.
func (v *vectorStores) search(f fields, now time.Time) (more int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	tools, _ := f["tools"].([]any)
	for _, t := range tools {
		tool, _ := t.(map[string]any)
		ids, _ := tool["vector_store_ids"].([]any)
		for _, id := range ids {
			if s := v.byID[fmt.Sprint(id)]; s != nil {
				more += s.wake(now)
			}
		}
	}
	return more
}

// A storeRequest is a request about a store, with the exchange that it is of.
type storeRequest struct {
	*exchange
	store *vectorStore
	below []string // what follows the id of the store in the path
	body  fields
}

// storeRequests answer the requests about a store by their method and the words of what follows its id, and say what they
// are billed for.
var storeRequests = map[string]func(q storeRequest) (object, llm.Units, *failure){
	"POST": func(q storeRequest) (object, llm.Units, *failure) {
		q.store.setEnd(q.body)
		return q.store.object(), llm.Units{}, nil
	},
	"GET": func(q storeRequest) (object, llm.Units, *failure) { return q.store.object(), llm.Units{}, nil },
	"DELETE": func(q storeRequest) (object, llm.Units, *failure) {
		delete(q.server.stores.byID, q.store.id)
		return object{"id": q.store.id, "object": "vector_store.deleted", "deleted": true}, llm.Units{}, nil
	},
	"POST search": func(q storeRequest) (object, llm.Units, *failure) {
		queries, _ := q.body["query"].([]any)
		bill := llm.Units{llm.FileSearches: int64(max(len(queries), 1)), llm.ByteDays: q.store.wake(q.now)}
		return object{"object": "vector_store.search_results.page", "search_query": q.body["query"], "data": []object{}, "has_more": false, "next_page": nil}, bill, nil
	},
	"POST files": func(q storeRequest) (object, llm.Units, *failure) {
		bill, failed := q.add("")
		if failed != nil {
			return nil, bill, failed
		}
		return q.store.file(q.store.files[len(q.store.files)-1]), bill, nil
	},
	"GET files ID": func(q storeRequest) (object, llm.Units, *failure) {
		if i := slices.IndexFunc(q.store.files, func(f *storedFile) bool { return f.id == q.below[1] }); i >= 0 {
			return q.store.file(q.store.files[i]), llm.Units{}, nil
		}
		return nil, llm.Units{}, missing(q.below[1])
	},
	"POST file_batches": func(q storeRequest) (object, llm.Units, *failure) {
		q.server.batches.count++
		batch := fmt.Sprintf("vsfb_mock%d", q.server.batches.count)
		bill, failed := q.add(batch)
		return q.store.batch(batch), bill, failed
	},
	"GET file_batches ID":         storeRequest.batch,
	"POST file_batches ID cancel": storeRequest.batch,
	"GET file_batches ID files": func(q storeRequest) (object, llm.Units, *failure) {
		list := []object{}
		for _, f := range q.store.files {
			if f.batch == q.below[1] {
				list = append(list, q.store.file(f))
			}
		}
		return object{"object": "list", "data": list, "has_more": false}, llm.Units{}, nil
	},
}

// add adds the files of the request to the store, which is active then.
func (q storeRequest) add(batch string) (bill llm.Units, failed *failure) {
	before := q.store.wake(q.now)
	more, failed := q.store.add(&q.server.batches, batch, filesOf(q.body))
	bill[llm.ByteDays] = before + more
	return bill, failed
}

func (q storeRequest) batch() (object, llm.Units, *failure) {
	return q.store.batch(q.below[1]), llm.Units{}, nil
}

// servesVectorStores answers a request that is about vector stores, and reports whether it has.
func (e *exchange) servesVectorStores() bool {
	names := strings.FieldsFunc(strings.ToLower(e.r.URL.Path), func(c rune) bool { return c == '/' })
	at := slices.Index(names, "vector_stores")
	if at < 0 {
		return false
	}
	b, v := &e.server.batches, &e.server.stores
	b.mu.Lock()
	defer b.mu.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
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
	var body fields
	if text, _ := io.ReadAll(io.LimitReader(e.r.Body, maxBody)); len(text) > 0 && json.Unmarshal(text, &body) != nil {
		return nil, bill, &failure{status: http.StatusBadRequest, message: "the body is no JSON object"}
	}
	if len(below) == 0 {
		return e.newVectorStore(body)
	}
	s := e.server.stores.byID[below[0]]
	if s == nil {
		return nil, bill, missing(below[0])
	}
	if e.r.Method == http.MethodGet {
		for _, f := range s.files {
			f.done = true
		}
	}
	what := []string{e.r.Method}
	for i, name := range below[1:] {
		if i == 1 {
			name = "ID"
		}
		what = append(what, name)
	}
	answer := storeRequests[strings.Join(what, " ")]
	if answer == nil {
		return nil, bill, missing(e.r.URL.Path)
	}
	return answer(storeRequest{e, s, below[1:], body})
}

// newVectorStore makes a store.
func (e *exchange) newVectorStore(body fields) (o object, bill llm.Units, failed *failure) {
	b, v := &e.server.batches, &e.server.stores
	b.count++
	s := &vectorStore{id: fmt.Sprintf("vs_mock%d", b.count), at: e.now, active: e.now}
	s.setEnd(body)
	if bill[llm.ByteDays], failed = s.add(b, "", filesOf(body)); failed == nil {
		if v.byID == nil {
			v.byID = map[string]*vectorStore{}
		}
		v.byID[s.id] = s
	}
	return s.object(), bill, failed
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
