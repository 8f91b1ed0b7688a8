package mockprovider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// batches are the files and the batches of a server, in memory. The calls of a batch are made when
// somebody first asks how it stands, or lists batches or files.
type batches struct {
	mu      sync.Mutex
	count   int
	files   map[string]*file
	byID    map[string]*batch
	ordered []*batch          // the latest first
	fileIDs []string          // the latest first
	pieces  map[string][]byte // of Gemini's files that are being uploaded
}

type file struct {
	purpose, name string
	content       []byte
	at            time.Time
}

type batch struct {
	id      string
	inline  bool   // it is one of Anthropic's
	model   string // of Gemini's
	answers []object
	input   string // the file with its calls; empty: they were in its body
	path    string // that all calls of OpenAI's have
	calls   []batchCall
	results []byte // nil: it was not run
	failed  int
	output  string // OpenAI's file
	status  string
	at      time.Time
}

// batchCall is a call of a batch.
type batchCall struct {
	CustomID string          `json:"custom_id"`
	Method   string          `json:"method"`
	URL      string          `json:"url"`
	Body     json.RawMessage `json:"body"`
	Params   json.RawMessage `json:"params"`  // Anthropic's
	Request  json.RawMessage `json:"request"` // Gemini's
	Key      string          `json:"key"`     // Gemini's
}

// servesBatches answers a request that has to do with files or batches, and reports whether it has.
func (e *exchange) servesBatches() bool {
	names := strings.FieldsFunc(e.r.URL.Path, func(c rune) bool { return c == '/' })
	if model, ok := strings.CutSuffix(names[max(len(names), 1)-1:][0], ":batchGenerateContent"); ok {
		e.submitToGemini(model)
		return true
	}
	for i, name := range names {
		name = strings.ToLower(name) // as servers do that ignore case
		if name != "files" && name != "batches" {
			continue
		}
		b := &e.server.batches
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.files == nil {
			b.files, b.byID = map[string]*file{}, map[string]*batch{}
		}
		rest := strings.Join(append([]string{e.r.Method}, names[i+1:]...), " ")
		inline := i > 0 && names[i-1] == "messages"
		if inline {
			e.call.Provider = "anthropic"
		}
		if failed := e.serveBatches(name, rest, inline); failed != nil {
			e.fail(*failed, limitStates{})
		}
		return true
	}
	return false
}

// serveBatches answers a request by its method and what follows the name of the folder.
func (e *exchange) serveBatches(folder, rest string, inline bool) *failure {
	words := strings.Fields(rest)
	id := ""
	if len(words) > 1 {
		id = words[1]
		words[1] = "ID"
	}
	if len(words) > 2 {
		words[2] = strings.ToLower(words[2])
	}
	switch folder + " " + strings.Join(words, " ") {
	case "files POST":
		if command := e.r.Header.Get("X-Goog-Upload-Command"); command != "" {
			return e.uploadToGoogle(command)
		}
		return e.upload()
	case "files GET ID content":
		f := e.server.batches.files[id]
		if f == nil {
			return missing(id)
		}
		e.w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(e.w, e.r, "", f.at, bytes.NewReader(f.content))
		return nil
	case "files GET ID":
		if f := e.server.batches.files[id]; f != nil && !strings.Contains(e.r.URL.Path, "/v1beta/") {
			e.json(http.StatusOK, encode(f.object(id)))
			return nil
		}
		return e.serveGoogleFile(id)
	case "files GET":
		return e.listFiles()
	case "batches POST":
		return e.submit(inline)
	case "batches GET":
		return e.listBatches(inline)
	}
	b := e.server.batches.byID[id]
	if b == nil {
		return missing(id)
	}
	switch strings.Join(words, " ") {
	case "GET ID":
		e.run(b)
		e.json(http.StatusOK, encode(b.object(e.base())))
	case "POST ID cancel":
		if b.results == nil {
			b.results, b.status = []byte{}, "cancelled"
		}
		e.json(http.StatusOK, encode(b.object(e.base())))
	case "GET ID results":
		if b.results == nil {
			return &failure{status: http.StatusNotFound, message: "the batch has no results yet"}
		}
		e.w.Header().Set("Content-Type", "application/x-jsonl")
		http.ServeContent(e.w, e.r, "", b.at, bytes.NewReader(b.results))
	default:
		return missing(id)
	}
	return nil
}

func missing(id string) *failure {
	return &failure{status: http.StatusNotFound, message: "there is no " + id}
}

// upload keeps a file.
func (e *exchange) upload() *failure {
	part, header, err := e.r.FormFile("file")
	if err != nil {
		return &failure{status: http.StatusBadRequest, message: err.Error()}
	}
	content, err := io.ReadAll(part)
	if err != nil {
		return &failure{status: http.StatusBadRequest, message: err.Error()}
	}
	f := &file{purpose: e.r.FormValue("purpose"), name: header.Filename, content: content, at: e.now}
	e.json(http.StatusOK, encode(f.object(e.server.batches.add(f))))
	return nil
}

func (b *batches) add(f *file) string {
	b.count++
	id := fmt.Sprintf("file-mock%d", b.count)
	b.files[id], b.fileIDs = f, slices.Insert(b.fileIDs, 0, id)
	return id
}

// object returns what OpenAI says of a file.
func (f *file) object(id string) object {
	return object{
		"id": id, "object": "file", "bytes": len(f.content),
		"created_at": f.at.Unix(), "filename": f.name, "purpose": f.purpose,
	}
}

// readStored reads the training file whose id a request for a fine-tuning job names.
func (c *Call) readStored(b *batches) {
	name := c.fields.text("training_file")
	if name == "" { // it may be a call of a batch, which is locked
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if f := b.files[name]; f != nil {
		c.files = map[string][][]byte{"training_file": {f.content}}
	}
}

// listFiles lists all files, those with results too.
func (e *exchange) listFiles() *failure {
	all := &e.server.batches
	for _, b := range all.ordered {
		e.run(b)
	}
	list := []object{}
	for _, id := range all.fileIDs {
		list = append(list, all.files[id].object(id))
	}
	e.json(http.StatusOK, encode(object{"object": "list", "data": list, "has_more": false}))
	return nil
}

// listBatches lists a page of the batches of Anthropic's, or of OpenAI's.
func (e *exchange) listBatches(inline bool) *failure {
	all, query := slices.Clone(e.server.batches.ordered), e.r.URL.Query()
	all = slices.DeleteFunc(all, func(b *batch) bool { return b.inline != inline })
	if after := query.Get("after"); after != "" {
		all = all[slices.IndexFunc(all, func(b *batch) bool { return b.id == after })+1:]
	}
	page := 20
	if n, err := strconv.Atoi(query.Get("limit")); err == nil && n > 0 {
		page = min(n, 100)
	}
	list := []object{}
	for _, b := range all[:min(page, len(all))] {
		e.run(b)
		list = append(list, b.object(e.base()))
	}
	e.json(http.StatusOK, encode(object{"object": "list", "data": list, "has_more": len(all) > page}))
	return nil
}

// submit keeps a batch.
func (e *exchange) submit(inline bool) *failure {
	var body struct {
		Requests []batchCall `json:"requests"`
		Input    string      `json:"input_file_id"`
		Endpoint string      `json:"endpoint"`
	}
	if err := json.NewDecoder(io.LimitReader(e.r.Body, maxBody)).Decode(&body); err != nil {
		return &failure{status: http.StatusBadRequest, message: err.Error()}
	}
	all := &e.server.batches
	b := &batch{inline: inline, input: body.Input, path: body.Endpoint, calls: body.Requests, status: "validating", at: e.now}
	if !inline {
		f := all.files[body.Input]
		if f == nil || f.purpose != "batch" {
			return &failure{status: http.StatusBadRequest, message: "the input file must have the purpose batch"}
		}
		for line := range bytes.Lines(f.content) {
			var c batchCall
			if json.Unmarshal(line, &c) == nil {
				b.calls = append(b.calls, c)
			}
		}
	}
	all.count++
	b.id = fmt.Sprintf("batch_mock%d", all.count)
	if inline {
		b.id = fmt.Sprintf("msgbatch_mock%d", all.count)
	}
	all.byID[b.id], all.ordered = b, slices.Insert(all.ordered, 0, b)
	e.json(http.StatusOK, encode(b.object(e.base())))
	return nil
}

// run makes the calls of a batch, once.
func (e *exchange) run(b *batch) {
	if b.results != nil {
		return
	}
	b.results, b.status = []byte{}, "completed"
	for i, c := range b.calls {
		path, body := b.path, c.Body
		switch {
		case b.inline:
			path, body = "/v1/messages", c.Params
		case b.model != "":
			path, body = "/v1beta/models/"+b.model+":generateContent", c.Request
		}
		r := e.r.Clone(e.r.Context())
		r.Method, r.URL.Path, r.Body = http.MethodPost, path, io.NopCloser(bytes.NewReader(body))
		w := &recorder{header: http.Header{}}
		call := &exchange{server: e.server, w: w, r: r, now: e.now}
		if failed := call.read(); failed != nil {
			call.fail(*failed, limitStates{})
		} else {
			call.answer()
		}
		if w.status != http.StatusOK {
			b.failed++
		}
		b.results = append(append(b.results, encode(b.result(i, c.CustomID, w))...), '\n')
		b.answers = append(b.answers, generated(w))
	}
	if b.model != "" && b.input != "" {
		b.results = nil
		for i, c := range b.calls {
			b.answers[i]["key"] = c.Key
			b.results = append(append(b.results, encode(b.answers[i])...), '\n')
		}
	}
	if !b.inline && (b.model == "" || b.input != "") {
		b.output = e.server.batches.add(&file{purpose: "batch_output", content: b.results, at: e.now})
	}
}

// recorder keeps the answer to a call.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }

// result returns the result of one call.
func (b *batch) result(i int, customID string, w *recorder) object {
	answer := json.RawMessage(w.body.Bytes())
	switch {
	case b.inline && w.status == http.StatusOK:
		return object{"custom_id": customID, "result": object{"type": "succeeded", "message": answer}}
	case b.inline:
		return object{"custom_id": customID, "result": object{"type": "errored", "error": answer}}
	}
	id := fmt.Sprintf("batch_req_mock%d", i)
	return object{
		"id": id, "custom_id": customID,
		"response": object{"status_code": w.status, "request_id": id, "body": answer}, "error": nil,
	}
}

// base returns the host of the server, and the part of the path before that of the API.
func (e *exchange) base() string {
	before, _, _ := strings.Cut(e.r.URL.Path, "/v1/")
	return e.r.Host + before
}

// object returns a batch as the providers describe it. base is the beginning of the address of its results.
func (b *batch) object(base string) object {
	done := len(b.calls)
	if b.results == nil {
		done = 0
	}
	if b.model != "" {
		return b.operation()
	}
	if b.inline {
		status, results := "in_progress", any(nil)
		if b.results != nil {
			status, results = "ended", "https://"+base+"/v1/messages/batches/"+b.id+"/results"
		}
		return object{
			"id": b.id, "type": "message_batch", "processing_status": status, "created_at": b.at.UTC().Format(time.RFC3339),
			"request_counts": object{"processing": len(b.calls) - done, "succeeded": done - b.failed, "errored": b.failed, "canceled": 0, "expired": 0},
			"results_url":    results,
		}
	}
	output := any(nil)
	if b.output != "" {
		output = b.output
	}
	return object{
		"id": b.id, "object": "batch", "endpoint": b.path, "input_file_id": b.input, "completion_window": "24h",
		"status": b.status, "output_file_id": output, "error_file_id": nil, "created_at": b.at.Unix(),
		"request_counts": object{"total": len(b.calls), "completed": done - b.failed, "failed": b.failed},
	}
}
