package dialect

import (
	"encoding/json"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// The APIs of OpenAI's vector stores, which keep what is in files to be searched. What they keep is billed by the byte and
// the day, until the store ends.
const (
	VectorStores API = "vector-stores" // begins to keep files: in a new store, or in one that there is
	VectorSearch API = "vector-search" // every other request about a store: searches, and changes of its name or its end
)

// VectorStore stands for the model of these APIs.
const VectorStore = "vector_store"

// storesFolder is the folder of all stores, in lower case.
const storesFolder = "vector_stores"

// Numbers of vector stores.
var (
	storedBytes  = newNumber()
	pendingFiles = newNumber() // files of a list that are not read yet
	moreFiles    = newNumber() // 1 if a list has more files than the answer, else 0
)

var vectorStoreProtocols = []protocol{
	{
		api: VectorStores, about: aboutStoredFiles, fetchedIn: storesFolder, begins: true, byUnits: true, embeds: true, measure: measureFiles,
		answers: &node{members: members{
			"id": idNode, "status": statusNode, "usage_bytes": count(storedBytes), "has_more": {role: roleNumber, number: moreFiles, written: asFlag},
			"data": {
				members: members{"status": kindNode, "usage_bytes": {role: roleNumber, number: storedBytes, sums: true}},
				entries: []entryNumber{{"in_progress", pendingFiles}}, counted: true,
			},
		}},
		units: []unitNumber{{unit: llm.ByteDays, number: storedBytes}},
	},
	{
		api: VectorSearch, about: aboutSearchedStore, byUnits: true, embeds: true, measure: measureSearch,
		units: []unitNumber{{unit: llm.ByteDays}, {unit: llm.FileSearches}},
	},
}

// vectorStoreCall reads a path of vector stores.
func vectorStoreCall(p requestPath, _ bool) (e Endpoint, ok bool) {
	below, ok := belowStores(p.url.Path)
	if !ok {
		return e, false
	}
	e.API, e.Model = VectorSearch, VectorStore
	if len(below) == 0 || len(below) == 2 && (strings.EqualFold(below[1], "files") || strings.EqualFold(below[1], "file_batches")) {
		e.API = VectorStores
	}
	return e, true
}

// belowStores returns the names in a path that follow the folder of all stores.
func belowStores(path string) (names []string, ok bool) {
	for name, rest := "", path; rest != ""; {
		if name, rest, _ = strings.Cut(rest, "/"); strings.EqualFold(name, storesFolder) {
			return strings.FieldsFunc(rest, func(c rune) bool { return c == '/' }), true
		}
	}
	return nil, false
}

// Response returns where a client can fetch the response of a call of the endpoint that goes on in the background, by the
// path of the call and the id of its answer. name is what [FetchedAt] calls it.
func (e Endpoint) Response(path, id string) (where string, query url.Values, name string) {
	where, query = strings.TrimRight(path, "/")+"/"+id, url.Values{}
	if e.API != VectorStores {
		return where, query, id
	}
	if _, last := cutLast(path); strings.EqualFold(last, "file_batches") { // no batch says how large its files are
		where += "/files"
		query.Set("limit", "100")
	}
	_, name = FetchedAt(where)
	return where, query, name
}

// FetchedAt returns the API whose response is at a path, because calls of it can go on in the background, and the name of
// the response among all of a provider's. The API is "" if there is none.
func FetchedAt(path string) (api API, name string) {
	below, ok := belowStores(path)
	if !ok {
		folder, name := cutLast(path)
		_, parent := cutLast(folder)
		return fetched[strings.ToLower(parent)], name
	}
	for i := 1; i < len(below); i += 2 {
		below[i] = strings.ToLower(below[i])
	}
	switch n := len(below); {
	case n == 1, n == 3 && below[1] == "files", n == 4 && below[1] == "file_batches" && below[3] == "files":
		return VectorStores, strings.Join(below, "/")
	}
	return "", ""
}

// mostStoredFiles is how many files a request can add to a store, as OpenAI documents it.
const mostStoredFiles = 2000

// aboutStoredFiles is for a request that begins to keep files. How large they are is in what the provider says of each
// file, and for how long they are kept in what it says of the store. A new store without files costs nothing.
var aboutStoredFiles = &about{
	at: func(path string, fields []byte) (paths []string, ok bool) {
		body := objectOf(fields)
		files, ok := filesIn(body)
		below, _ := belowStores(path)
		if body == nil || !ok {
			return nil, true
		}
		if len(below) == 0 && len(files) == 0 {
			return nil, false
		}
		before, _ := cutLast(path)
		if len(below) > 0 {
			store, _ := cutLast(path)
			paths = append(paths, strings.TrimRight(store, "/"))
			before, _ = cutLast(store)
			before, _ = cutLast(before)
		}
		for _, id := range append(files, below[:min(len(below), 1)]...) {
			if !storedID.MatchString(id) {
				return nil, true
			}
		}
		for _, id := range files {
			paths = append(paths, before+"files/"+id)
		}
		return paths, true
	},
	with: func(s *Stored) (q Request, err error) {
		texts, store := s.texts, s.fields
		if below, _ := belowStores(s.path); len(below) > 0 {
			if len(texts) == 0 {
				return q, errStored
			}
			texts, store = texts[1:], texts[0]
		}
		var k keptStore
		if json.Unmarshal(store, &k) != nil {
			if len(texts) < len(s.texts) {
				return q, errStored
			}
			k = keptStore{} // the request has an end of another form
		}
		added := int64(0)
		for _, text := range texts {
			var f keptFile
			if json.Unmarshal(text, &f) != nil {
				return q, errStored
			}
			added += f.most()
		}
		q = s.request
		q.Form = true // the body is sent as it is
		q.Units[llm.ByteDays] = -1
		if before, days := k.searched(s.Now.Add(s.Late)), k.days()+1; before >= 0 && days > 1 {
			q.Units[llm.ByteDays], q.Before, q.Days = before+added*days, before, days
		}
		return q, nil
	},
}

// aboutSearchedStore is for a search in a store. A store ends some days after it was last searched, so a search makes it
// live longer. A request that changes when a store ends is not read.
var aboutSearchedStore = &about{
	at: func(path string, fields []byte) ([]string, bool) {
		below, _ := belowStores(path)
		body := objectOf(fields)
		switch {
		case body == nil || !storedID.MatchString(below[0]):
			return nil, true
		case hasKey(body, "expires_after"): // files that are being added were paid for until the end that there was
			return nil, true
		case len(below) != 2 || !strings.EqualFold(below[1], "search"):
			return nil, false
		}
		store, _ := cutLast(path)
		return []string{strings.TrimRight(store, "/")}, true
	},
	with: func(s *Stored) (q Request, err error) {
		var k keptStore
		if len(s.texts) != 1 || json.Unmarshal(s.texts[0], &k) != nil {
			return q, errStored
		}
		q = s.request
		q.Form = true // the body is sent as it is
		q.Units[llm.ByteDays], q.Units[llm.FileSearches] = k.searched(s.Now.Add(s.Late)), max(q.Units[llm.FileSearches], 1)
		return q, nil
	},
}

// fileTool is how the types of the tools begin that search vector stores, and storesKey is the key under which such a tool
// names them.
const fileTool = "file_search"

var storesKey = []byte("vector_store_ids")

// storesIn returns the vector stores in the value that a tool has under storesKey.
func storesIn(value []byte) (ids []string) {
	if json.Unmarshal(value, &ids) != nil {
		return []string{""}
	}
	return ids
}

// SearchedStores returns the vector stores that the tools of a response search, or nil if they search none. path is that
// of the request.
func (r *Request) SearchedStores(path string) *Stored {
	if r.API != Responses || r.stores == nil {
		return nil
	}
	s := &Stored{request: *r, about: aboutToolStores}
	path, _ = cutFolded(strings.TrimRight(path, "/"), "/compact")
	before, ok := cutFolded(path, "/responses")
	ids := slices.Compact(slices.Sorted(slices.Values(*r.stores)))
	if !ok || len(ids) > MostSearchedStores || slices.ContainsFunc(ids, func(id string) bool { return !storedID.MatchString(id) }) {
		return s
	}
	for _, id := range ids {
		s.Paths = append(s.Paths, before+"/"+storesFolder+"/"+id)
	}
	return s
}

// MostSearchedStores is how many vector stores the tools of one response may name if somebody has to ask for them.
const MostSearchedStores = 10

// answerTime is for how long a response is expected to search after it was sent.
const answerTime = time.Hour

// aboutToolStores is for a response whose tools search stores. They live longer for that, as they do for a search.
var aboutToolStores = &about{
	with: func(s *Stored) (Request, error) {
		q := s.request
		for _, text := range s.texts {
			var k keptStore
			if json.Unmarshal(text, &k) != nil {
				return q, errStored
			}
			more := k.searched(s.Now.Add(s.Late + answerTime))
			if more < 0 {
				q.Units[llm.ByteDays] = -1
				break
			}
			q.Units[llm.ByteDays] += more
		}
		return q, nil
	},
}

// hasKey reports whether an object has a key, in any case.
func hasKey(o map[string]any, key string) bool {
	for k := range o {
		if strings.EqualFold(k, key) {
			return true
		}
	}
	return false
}

// filesIn returns the ids of the files that a request adds. ok is false if it names them in no form that is read.
func filesIn(body map[string]any) (ids []string, ok bool) {
	files, _ := body["files"].([]any)
	list, _ := body["file_ids"].([]any)
	if len(files)+len(list) > mostStoredFiles || files == nil && body["files"] != nil || list == nil && body["file_ids"] != nil {
		return nil, false
	}
	if one := body["file_id"]; one != nil {
		list = append(list, one)
	}
	for _, f := range files {
		one, _ := f.(map[string]any)
		list = append(list, one["file_id"])
	}
	for _, id := range list {
		text, _ := id.(string)
		ids = append(ids, text)
	}
	return ids, true
}

// A keptStore is what the provider says of a store, or what a request says of a new one.
type keptStore struct {
	UsageBytes   int64 `json:"usage_bytes"`
	LastActiveAt int64 `json:"last_active_at"` // Unix seconds
	ExpiresAfter struct {
		Anchor string `json:"anchor"`
		Days   int64  `json:"days"`
	} `json:"expires_after"`
	FileCounts struct {
		InProgress int64 `json:"in_progress"`
	} `json:"file_counts"`
}

// days returns how many days the store lives after it was last active, or 0 if nobody knows it.
func (k *keptStore) days() int64 {
	if k.ExpiresAfter.Anchor != "last_active_at" || k.ExpiresAfter.Days < 1 || k.ExpiresAfter.Days > 365 {
		return 0
	}
	return k.ExpiresAfter.Days
}

// searched returns how many byte days more the store costs if it becomes active at a time, or -1 if nobody knows it: its
// end may be of another kind. A store without an end lives no longer for that.
func (k *keptStore) searched(at time.Time) (byteDays int64) {
	switch end := k.ExpiresAfter; {
	case end.Anchor == "" && end.Days == 0:
		return 0
	case k.days() == 0:
		return -1
	}
	const day = 24 * 60 * 60
	days := k.days() // at most, since it has not ended
	if k.LastActiveAt != 0 {
		days = max(at.Unix()/day-k.LastActiveAt/day, 0)
	}
	if days > 0 && k.FileCounts.InProgress > 0 {
		return -1 // the files that are being read are not among its bytes yet
	}
	return days * min(max(k.UsageBytes, 0), mostLines/max(days, 1))
}

// A keptFile is what the provider says of a file.
type keptFile struct {
	Bytes    int64  `json:"bytes"`
	Filename string `json:"filename"`
}

// Of a file, a store keeps the text in chunks, of which each may have half of the text of the one before, and an
// embedding of each chunk. OpenAI documents that a file has at most 5,000,000 tokens, that a chunk begins after 50 tokens
// at least, and that an embedding has 256 dimensions. No token of its tokenizers has more than 128 bytes.
const (
	mostFileTokens = 5_000_000
	chunkStep      = 50
	embeddingBytes = 256 * 4
	tokenBytes     = 128
)

// textFiles are the ends of names of files whose text is as long as the file, or half as long again: two bytes of UTF-16
// may be three of UTF-8. Others may be compressed.
var textFiles = []string{
	".c", ".cpp", ".cs", ".css", ".csv", ".go", ".html", ".java", ".js", ".json", ".jsonl", ".md", ".php", ".py", ".rb", ".sh", ".tex", ".ts", ".txt",
}

// most returns the most bytes that a store keeps of the file.
func (f *keptFile) most() int64 {
	tokens, text := int64(mostFileTokens), int64(mostFileTokens*tokenBytes)
	if slices.Contains(textFiles, strings.ToLower(path.Ext(f.Filename))) && f.Bytes >= 0 {
		text = min(text, f.Bytes)
		text = min(mostFileTokens*tokenBytes, text+(text+1)/2)
		tokens = min(tokens, text)
	}
	return 2*text + (tokens/chunkStep+1)*embeddingBytes
}

// measureFiles reads whether a request begins to keep files. What that costs is known when the gateway has asked for the
// files, and for the store.
func measureFiles(b measuredBody) (m measured) {
	body := objectOf(b.text)
	if files, ok := filesIn(body); body == nil || !ok || len(files) > 0 {
		m.units[llm.ByteDays] = -1
	}
	return m
}

// measureSearch counts the searches of a request about a store. What they cost beside is known when the gateway has asked
// for the store.
func measureSearch(b measuredBody) (m measured) {
	body := objectOf(b.text)
	if hasKey(body, "query") {
		queries, _ := body["query"].([]any)
		m.units[llm.FileSearches] = int64(max(len(queries), 1))
	}
	if body == nil || hasKey(body, "query") || hasKey(body, "expires_after") {
		m.units[llm.ByteDays] = -1
	}
	return m
}
