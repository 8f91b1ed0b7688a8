package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/numeral"
)

// benchCall is a call that has passed.
type benchCall struct {
	sent, answered time.Duration // since the beginning
	tokens         int
	never          bool // it was denied because it can never pass
}

// load is the calls that are made.
type load struct {
	client      *http.Client
	url, key    string
	project     string
	body        []byte
	left        atomic.Int64 // how many calls may still begin
	began       time.Time
	passed, all atomic.Int64

	mu         sync.Mutex
	calls      []benchCall // those that have passed
	statuses   map[int]int // how many calls had which status; 0 is no answer
	never      int         // how many calls can never pass
	firstError string
}

// run makes calls until the time is over, and shows their progress every second.
func (b *benchFlags) run(c *cobra.Command, model string) (*benchReport, error) {
	body, err := json.Marshal(map[string]any{"model": model, "max_tokens": b.output, "messages": []map[string]string{{"role": "user", "content": "Where does the river rise?"}}})
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: b.callers}
	defer transport.CloseIdleConnections()
	l := &load{
		client: &http.Client{Transport: transport}, url: strings.TrimRight(b.base, "/") + "/chat/completions",
		key: b.key(), project: b.project, body: body, began: time.Now(), statuses: map[int]int{},
	}
	l.left.Store(1 << 62)
	if b.calls > 0 {
		l.left.Store(int64(b.calls))
	}
	ctx, cancel := context.WithTimeout(c.Context(), b.length)
	defer cancel()
	var callers sync.WaitGroup
	for range b.callers {
		callers.Go(func() { l.call(ctx) })
	}
	ended := make(chan struct{})
	go func() {
		callers.Wait()
		close(ended)
	}()
	l.show(console.NewScreen(console.Of(c.ErrOrStderr())), ended)
	if n := l.statuses[0]; n > 0 && len(l.statuses) == 1 {
		return nil, fmt.Errorf("no call was answered: %s", l.firstError)
	}
	return newBenchReport(model, b, l), nil
}

// show shows the progress every second, until the end.
func (l *load) show(s *console.Screen, ended <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			if s.Terminal() {
				s.Leave(nil)
			}
			return
		case <-tick.C:
			s.Show([]string{fmt.Sprintf("%.0f s: %s calls answered, %s passed", time.Since(l.began).Seconds(), numeral.Grouped(l.all.Load()), numeral.Grouped(l.passed.Load()))})
		}
	}
}

// call makes one call after another.
func (l *load) call(ctx context.Context) {
	for ctx.Err() == nil && l.left.Add(-1) >= 0 {
		call := benchCall{sent: time.Since(l.began)}
		status, err := l.ask(ctx, &call)
		if ctx.Err() != nil {
			return // the call was cut off, and counts as never made
		}
		call.answered = time.Since(l.began)
		l.record(call, status, err)
		if err != nil {
			select { // a gateway that is not there is not asked a million times
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
}

// record adds a call to what was measured.
func (l *load) record(call benchCall, status int, err error) {
	l.all.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.statuses[status]++
	if call.never {
		l.never++
	}
	if status == http.StatusOK {
		l.passed.Add(1)
		l.calls = append(l.calls, call)
	}
	if err != nil && l.firstError == "" {
		l.firstError = err.Error()
	}
}

// ask makes a call, notes what its answer says, and returns its status.
func (l *load) ask(ctx context.Context, call *benchCall) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url, bytes.NewReader(l.body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+l.key)
	if l.project != "" {
		req.Header.Set("X-Project-ID", l.project)
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	var answer struct {
		Usage struct {
			Total int `json:"total_tokens"`
		} `json:"usage"`
		Error struct {
			Code any `json:"code"` // a number at some providers
		} `json:"error"`
	}
	json.Unmarshal(text, &answer) // an answer without usage has no tokens
	call.tokens, call.never = answer.Usage.Total, answer.Error.Code == dialect.CodeNever
	return resp.StatusCode, nil
}
