package admin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/internal/settings"
)

// Entry is a line of the audit log. Each change has two: one before it is made, and one
// after.
type Entry struct {
	Seq     uint64    `json:"seq"` // grows with each entry, across restarts; of gateways on one Redis or SQLite file, it is the time in microseconds
	Time    time.Time `json:"time"`
	Who     string    `json:"who"` // "token", "session" or "loopback", the name of the token or of the user if there is one, and the client's address
	Action  string    `json:"action"`
	Subject string    `json:"subject,omitempty"`
	Before  any       `json:"before,omitempty"`
	After   any       `json:"after,omitempty"`
	Result  string    `json:"result"` // "intended", "done" or "failed"
	Error   string    `json:"error,omitempty"`
	Reason  string    `json:"reason,omitempty"`  // why, if the client says so
	Until   time.Time `json:"until,omitzero"`    // when the change ends by itself
	Gateway string    `json:"gateway,omitempty"` // that has made the change, where several may
}

// The results of an entry.
const (
	intended = "intended"
	done     = "done"
	failed   = "failed"
)

// auditFile returns the path of the audit log, or "" if it has no file.
func auditFile(cfg *config.Config) string {
	if cfg.Admin.Audit != "" || storeOf(cfg) != "sqlite" {
		return cfg.Admin.Audit
	}
	return cfg.State + ".audit.jsonl"
}

// audit is the log of changes. Entries go to a file, if it has one, to the store, if it keeps logs, and to the program's
// log. The last maxEntries are in memory, too; those in the store are of all gateways.
type audit struct {
	path    string           // may be empty
	journal settings.Journal // nil: the store keeps no logs
	gateway string           // the name of this one; empty unless there is a journal
	shared  bool             // other gateways may write to the same log
	log     *slog.Logger

	mu   sync.Mutex
	seq  uint64 // the Seq of the last entry
	last []Entry
	file os.FileInfo // which was read last: an operator may move it away
	read int64       // how many bytes of it were read
}

const maxEntries = 1024

// journalName is the name of the audit log in the store.
const journalName = "audit"

func openAudit(path string, log *slog.Logger) (*audit, error) {
	a := &audit{path: path, log: log}
	if path == "" {
		return a, nil
	}
	if err := a.readFile(); err != nil {
		return nil, fmt.Errorf("ratelimit: the audit log: %w", err)
	}
	return a, nil
}

// write records an entry. Once it returns nil, the entry is on disk or, without a file, in
// the program's log.
func (a *audit) write(e *Entry) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	e.Seq, e.Time, e.Gateway = a.seq+1, time.Now().UTC(), a.gateway
	if a.shared {
		e.Seq = max(e.Seq, uint64(e.Time.UnixMicro()))
	}
	line, err := json.Marshal(e)
	if err == nil && a.path != "" {
		err = a.appendToFile(append(line, '\n'))
	}
	if err == nil && a.journal != nil {
		err = a.journal.AppendLine(context.Background(), journalName, string(line), maxEntries)
	}
	if err != nil {
		return err
	}
	if err := a.toLog(e.Time, line); err != nil && a.path == "" {
		return err
	}
	if a.path == "" {
		a.remember(*e)
		return nil
	}
	return a.readFile()
}

// toLog writes an entry to the program's log. It ignores the log's level, because no entry
// may be left out.
func (a *audit) toLog(at time.Time, line []byte) error {
	r := slog.NewRecord(at, slog.LevelInfo, "audit", 0)
	r.AddAttrs(slog.Any("entry", json.RawMessage(line)))
	return a.log.Handler().Handle(context.Background(), r)
}

// openFile opens the file, and creates it if it is missing.
func (a *audit) openFile() (*os.File, error) {
	return os.OpenFile(a.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
}

// appendToFile writes a line to the file. It opens the file each time, so that an operator may
// move it away without a restart.
func (a *audit) appendToFile(line []byte) error {
	f, err := a.openFile()
	if err != nil {
		return err
	}
	if endsMidLine(f) {
		line = append([]byte{'\n'}, line...)
	}
	if _, err = f.Write(line); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// endsMidLine reports whether the last line of a file is incomplete, as after a crash.
func endsMidLine(f *os.File) bool {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil || end == 0 {
		return false
	}
	var last [1]byte
	_, err = f.ReadAt(last[:], end-1)
	return err == nil && last[0] != '\n'
}

func (a *audit) remember(e Entry) {
	a.seq = max(a.seq, e.Seq)
	if len(a.last) == maxEntries {
		a.last = append(a.last[:0], a.last[1:]...)
	}
	a.last = append(a.last, e)
}

// maxRead is how many bytes of the file are read: more than maxEntries entries, unless they are long.
const maxRead = 2 << 20

// readFile remembers the entries of the file that are new, whichever gateway has written them. It skips lines that are no
// entries, and leaves a line that has no end yet for the next time. The caller has locked mu, or nobody else knows a.
func (a *audit) readFile() error {
	f, err := a.openFile()
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(a.file, info) || info.Size() < a.read {
		a.read = 0
	}
	a.file, a.read = info, max(a.read, info.Size()-maxRead)
	text, err := io.ReadAll(io.NewSectionReader(f, a.read, info.Size()-a.read))
	if err != nil {
		return err
	}
	for line := range bytes.Lines(text) {
		var e Entry
		isEntry := json.Unmarshal(line, &e) == nil && e.Seq > 0
		if !isEntry && line[len(line)-1] != '\n' {
			break
		}
		a.read += int64(len(line))
		if isEntry {
			a.remember(e)
		}
	}
	return nil
}

// entries returns the last entries, oldest first: of all gateways, if the store keeps them, or if they write to the same
// file. While the store does not answer, they are those of this gateway, and the error says so.
func (a *audit) entries(ctx context.Context) (list []Entry, err error) {
	a.mu.Lock()
	if a.path != "" {
		if err := a.readFile(); err != nil {
			a.log.Warn("audit: what other gateways have written cannot be read", "error", err)
		}
	}
	list = slices.Clone(a.last)
	a.mu.Unlock()
	bySeq := func(x, y Entry) int { return cmp.Compare(x.Seq, y.Seq) }
	slices.SortStableFunc(list, bySeq)
	if a.journal == nil {
		return list, nil
	}
	lines, err := a.journal.Lines(ctx, journalName)
	if err != nil {
		return list, err
	}
	list = list[:0]
	for _, line := range lines {
		var e Entry
		if json.Unmarshal([]byte(line), &e) == nil && e.Seq > 0 {
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, bySeq)
	return list, nil
}

// change is a change that the audit log records.
type change struct {
	action, subject string
	before          func() any
	apply           func() (after any, err error)
	reason          string
	until           time.Time
}

// do makes a change, unless the audit log cannot record it. Changes are made one at a time.
func (a *Admin) do(r *http.Request, c change) error {
	a.changing.Lock()
	defer a.changing.Unlock()
	return a.record(r, c)
}

// record is do for a caller that has locked changing.
func (a *Admin) record(r *http.Request, c change) error {
	e := Entry{Who: actor(r), Action: c.action, Subject: c.subject, Reason: c.reason, Until: c.until, Result: intended}
	if c.before != nil {
		e.Before = c.before()
	}
	if err := a.audit.write(&e); err != nil {
		return problemf(http.StatusServiceUnavailable, "nothing was changed, since it cannot be recorded: the audit log: %v", err)
	}
	after, err := c.apply()
	e.After, e.Result = after, done
	if err != nil {
		e.After, e.Result, e.Error = nil, failed, message.Plain(err)
	}
	if err := a.audit.write(&e); err != nil {
		a.log.Error("audit: a change was made, but what became of it cannot be recorded", "error", err, "action", e.Action, "subject", e.Subject, "result", e.Result)
	}
	a.gateway.Publish(&gateway.Event{Kind: gateway.EventChange, Change: e})
	return err
}

// AuditList is a page of the audit log, oldest entry first.
type AuditList struct {
	Entries   []Entry `json:"entries"`
	Next      uint64  `json:"next"`                 // the parameter after of the next page
	StoreLost string  `json:"store_lost,omitempty"` // why the store does not answer: the entries are those of this gateway alone
}

func (a *Admin) auditLog(r *http.Request) (any, error) {
	q, err := parameters(r, "after", "limit")
	if err != nil {
		return nil, err
	}
	entries, lost := a.audit.entries(r.Context())
	seq := func(e Entry) uint64 { return e.Seq }
	after := func(n uint64, most int) []Entry {
		if len(entries) > 0 && n > seq(entries[len(entries)-1]) {
			n = 0 // of another log
		}
		return firstAfter(entries, seq, n, most)
	}
	list, next, err := pageAfter(q, after, seq)
	answer := AuditList{Entries: append([]Entry{}, list...), Next: next}
	if lost != nil {
		answer.StoreLost = message.Plain(lost)
	}
	return answer, err
}
