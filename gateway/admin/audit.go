package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/message"
)

// Entry is a line of the audit log. A change has two: before it is made, and after.
type Entry struct {
	Seq     uint64    `json:"seq"` // goes up by one, over restarts too
	Time    time.Time `json:"time"`
	Who     string    `json:"who"` // "token" or "loopback", and the address
	Action  string    `json:"action"`
	Subject string    `json:"subject,omitempty"`
	Before  any       `json:"before,omitempty"`
	After   any       `json:"after,omitempty"`
	Result  string    `json:"result"` // "intended", "done" or "failed"
	Error   string    `json:"error,omitempty"`
}

// Results of entries.
const (
	intended = "intended"
	done     = "done"
	failed   = "failed"
)

// auditFile returns the path of the audit log, or "" if it is not written to a file.
func auditFile(cfg *config.Config) string {
	if cfg.Admin.Audit != "" || storeOf(cfg) != "sqlite" {
		return cfg.Admin.Audit
	}
	return cfg.State + ".audit.jsonl"
}

// audit is the log of changes: in a file, if it has one, in the log of the program,
// and the last of it in memory.
type audit struct {
	path string // may be empty
	log  *slog.Logger

	mu     sync.Mutex
	seq    uint64  // of the last entry
	last   []Entry // at most remembered
	closed bool
}

// remembered is how many entries are kept in memory.
const remembered = 1024

func openAudit(path string, log *slog.Logger) (*audit, error) {
	a := &audit{path: path, log: log}
	if path == "" {
		return a, nil
	}
	if err := a.toFile(nil); err != nil {
		return nil, err
	}
	return a, a.recall()
}

// write records an entry. Once it returns nil, the entry is on disk, or if there is no
// file, in the log.
func (a *audit) write(e *Entry) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return errors.New("ratelimit: the audit log is closed")
	}
	e.Seq, e.Time = a.seq+1, time.Now().UTC()
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("ratelimit: the audit log: %w", err)
	}
	if a.path != "" {
		if err := a.toFile(append(line, '\n')); err != nil {
			return err
		}
	}
	if err := a.toLog(e.Time, line); err != nil && a.path == "" {
		return fmt.Errorf("ratelimit: the audit log: %w", err)
	}
	a.seq = e.Seq
	a.remember(*e)
	return nil
}

// toLog writes to the log of the program, whatever its level is: that is for what may
// be left out.
func (a *audit) toLog(at time.Time, line []byte) error {
	r := slog.NewRecord(at, slog.LevelInfo, "audit", 0)
	r.AddAttrs(slog.Any("entry", json.RawMessage(line)))
	return a.log.Handler().Handle(context.Background(), r)
}

// toFile writes to the file. It opens it each time, so that who moves it away, to
// begin a new one, needs to tell nobody.
func (a *audit) toFile(line []byte) (err error) {
	f, err := os.OpenFile(a.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("ratelimit: the audit log: %w", err)
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = fmt.Errorf("ratelimit: the audit log: %w", err)
		}
	}()
	if line == nil {
		return nil
	}
	if torn(f) {
		line = append([]byte{'\n'}, line...)
	}
	if _, err := f.Write(line); err != nil {
		return err
	}
	return f.Sync()
}

// torn reports whether the last line of a file was not written to its end.
func torn(f *os.File) bool {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil || end == 0 {
		return false
	}
	var last [1]byte
	_, err = f.ReadAt(last[:], end-1)
	return err == nil && last[0] != '\n'
}

func (a *audit) remember(e Entry) {
	if len(a.last) == remembered {
		a.last = append(a.last[:0], a.last[1:]...)
	}
	a.last = append(a.last, e)
}

// tail is how many bytes of the file are read back: more than the entries that are
// kept, unless they are long.
const tail = 2 << 20

// recall reads the last entries back. Lines that are none are left out.
func (a *audit) recall() error {
	f, err := os.Open(a.path)
	if err != nil {
		return fmt.Errorf("ratelimit: the audit log: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > tail {
		f.Seek(-tail, io.SeekEnd)
	}
	text, err := io.ReadAll(io.LimitReader(f, tail))
	if err != nil {
		return fmt.Errorf("ratelimit: the audit log: %w", err)
	}
	for line := range bytes.Lines(text) {
		var e Entry
		if json.Unmarshal(line, &e) == nil && e.Seq > 0 {
			a.remember(e)
			a.seq = max(a.seq, e.Seq)
		}
	}
	return nil
}

// after returns the first n entries that follow a sequence number, oldest first. A
// number that none has had yet is one of another run, and all follow it.
func (a *audit) after(seq uint64, n int) []Entry {
	a.mu.Lock()
	defer a.mu.Unlock()
	if seq > a.seq {
		seq = 0
	}
	found := []Entry{}
	for _, e := range a.last {
		if e.Seq > seq && len(found) < n {
			found = append(found, e)
		}
	}
	return found
}

func (a *audit) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
}

// change is something that is to be changed, and recorded.
type change struct {
	action, subject string
	before          func() any
	make            func() (after any, err error)
}

// do makes a change, if it can be recorded: one at a time.
func (a *Admin) do(r *http.Request, c change) error {
	a.changing.Lock()
	defer a.changing.Unlock()
	e := Entry{Who: a.whoIs(r), Action: c.action, Subject: c.subject, Result: intended}
	if c.before != nil {
		e.Before = c.before()
	}
	if err := a.audit.write(&e); err != nil {
		return problemf(http.StatusServiceUnavailable, "nothing was changed, since it cannot be recorded: %s", message.Plain(err))
	}
	after, err := c.make()
	e.After, e.Result = after, done
	if err != nil {
		e.After, e.Result, e.Error = nil, failed, message.Plain(err)
	}
	if err := a.audit.write(&e); err != nil {
		a.log.Error("audit: a change was made, but what became of it cannot be recorded", "error", err, "action", e.Action, "subject", e.Subject, "result", e.Result)
	}
	return err
}

// AuditList is some entries of the audit log, oldest first.
type AuditList struct {
	Entries []Entry `json:"entries"`
	Next    uint64  `json:"next"` // the after with which to ask for what follows
}

func (a *Admin) auditLog(r *http.Request) (any, error) {
	q, err := query(r, "after", "limit")
	if err != nil {
		return nil, err
	}
	list, next, err := latest(q, a.audit.after, func(e Entry) uint64 { return e.Seq })
	return AuditList{list, next}, err
}
