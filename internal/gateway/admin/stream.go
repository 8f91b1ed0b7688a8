package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// stream is an answer that goes on until its feed ends. It returns when the context ends, or
// with the error of the feed.
type stream func(ctx context.Context, f *feed) error

// feed is the response of a stream: server-sent events.
type feed struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration // of one write

	mu   sync.Mutex
	last time.Time // when something was last written
}

const (
	pingEvery  = 15 * time.Second // proxies close connections on which nothing comes
	checkEvery = time.Second      // how often a stream checks whether its client may still see it
)

// EndStreams ends all streams, now and from now on. The server calls it when it stops: it would
// wait for them otherwise.
func (a *Admin) EndStreams() { a.endStreams() }

// maxStreams is how many streams there may be at a time. Each takes a connection and two goroutines.
const maxStreams = 512

// openStream makes room for one more stream, or returns why there is none.
func (a *Admin) openStream() (leave func(), err error) {
	if a.streams.Add(1) > a.maxStreams {
		a.streams.Add(-1)
		p := problemf(http.StatusServiceUnavailable, "%d streams are open, and there may be no more: close those that nobody reads, such as pages of the dashboard, and ask again", a.maxStreams)
		p.header = http.Header{"Retry-After": {"10"}}
		return nil, p
	}
	return func() { a.streams.Add(-1) }, nil
}

// serveStream answers a request with a stream. The stream's context ends when the client leaves, when
// it may not see the stream any more, and when the server stops.
func (a *Admin) serveStream(w http.ResponseWriter, r *http.Request, run stream) {
	f := &feed{w: w, control: http.NewResponseController(w), timeout: a.gateway.Config().Server.WriteTimeout, last: time.Now()}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // proxies pass every event on at once
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	f.control.SetReadDeadline(time.Time{}) // the server's deadlines are for answers that end
	if f.write([]byte(": stream\n\n")) != nil {
		return
	}
	ctx, end := context.WithCancel(r.Context())
	defer end()
	defer context.AfterFunc(a.streaming, end)()
	var watching sync.WaitGroup
	defer watching.Wait()
	defer end()
	watching.Go(func() {
		defer end()
		a.watch(ctx, r, f)
	})
	run(ctx, f) // an error means that the client has left
}

// watch returns when the client of a stream may not see it any more, or may do something else than when it came, or has
// left. It writes comments while there are no events.
func (a *Admin) watch(ctx context.Context, r *http.Request, f *feed) {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if c, p := a.checkAccess(r); p != nil || c != callerOf(r) || f.ping() != nil {
				return
			}
		}
	}
}

// send writes an event with a value as JSON.
func (f *feed) send(event string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // all events are types of this package, which marshal
	}
	return f.sendAll([]textEvent{{event, text}})
}

// sendAll writes events in one go.
func (f *feed) sendAll(events []textEvent) error {
	if len(events) == 0 {
		return nil
	}
	var parts [][]byte
	for _, e := range events {
		parts = append(parts, []byte("event: "+e.Kind+"\ndata: "), e.Data, []byte("\n\n"))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.write(parts...)
}

// comment writes a line that is no event.
func (f *feed) comment(text string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.write([]byte(": " + text + "\n\n"))
}

// ping writes a comment if nothing was written for a while.
func (f *feed) ping() error {
	if !f.mu.TryLock() { // an event is being written
		return nil
	}
	defer f.mu.Unlock()
	if time.Since(f.last) < pingEvery {
		return nil
	}
	return f.write([]byte(": ping\n\n"))
}

// write writes the parts of a text. What many viewers get is not copied for each of them.
func (f *feed) write(parts ...[]byte) error {
	f.last = time.Now()
	f.control.SetWriteDeadline(f.last.Add(f.timeout))
	for _, part := range parts {
		if _, err := f.w.Write(part); err != nil {
			return err
		}
	}
	return f.control.Flush()
}
