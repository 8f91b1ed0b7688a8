package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// Paths of the client listener that are the gateway's own, and no provider's.
const (
	ownPaths = "/ratelimit/"
	pathMe   = ownPaths + "v1/me"
)

// Me says what a client may still use, at every level that its calls are charged to. It is the
// answer to GET /ratelimit/v1/me.
type Me struct {
	Project string  `json:"project"`       // its user is the last name, if the request names one
	Key     string  `json:"key,omitempty"` // the virtual key's id
	Run     string  `json:"run,omitempty"`
	Levels  []Level `json:"levels"` // the project, those above it, the key and the run
}

// Level is a project, a key or a run, and its limits.
type Level struct {
	Kind   string       `json:"kind"` // "project", "key" or "run"
	ID     string       `json:"id"`
	Limits []LevelLimit `json:"limits"` // empty: nothing limits it but the levels above
}

// LevelLimit is one limit of a level, and what is left of it.
type LevelLimit struct {
	Name  string   `json:"limit"`
	Unit  string   `json:"unit"` // "requests", "tokens" or "dollars"
	Max   Quantity `json:"max"`
	Used  Quantity `json:"used"` // what calls in progress have reserved is included
	Left  Quantity `json:"left"`
	Total bool     `json:"total,omitempty"` // the limit has no window, so what was used of it stays used

	// Reset is how many seconds it takes until nothing is used, if nothing else passes. It is missing
	// in a total.
	Reset float64 `json:"reset_after_seconds,omitempty"`
}

// Quantity is a number of requests, tokens or nanodollars.
type Quantity struct {
	N       int64
	Dollars bool
}

// MarshalJSON writes a number: of dollars, if it is that.
func (q Quantity) MarshalJSON() ([]byte, error) {
	if q.Dollars {
		return price.Amount(q.N).MarshalJSON()
	}
	return strconv.AppendInt(nil, q.N, 10), nil
}

// ownPath reports whether the path of the request is the gateway's own.
func (x *exchange) ownPath() bool {
	return strings.HasPrefix(x.r.URL.Path, ownPaths) && x.setup.upstreams[strings.Trim(ownPaths, "/")] == nil
}

// serveOwn answers a request for a path of the gateway's own. It charges nothing.
func (x *exchange) serveOwn() *refusal {
	x.target.RawQuery = x.r.URL.RawQuery // may have the key
	if refused := firstRefusal(x.checkOrigin, x.identify); refused != nil {
		return refused
	}
	switch {
	case x.r.URL.Path != pathMe:
		return refusalf(http.StatusNotFound, "the gateway has nothing at this path: GET %s says what is left of the limits", pathMe)
	case x.r.Method != http.MethodGet && x.r.Method != http.MethodHead:
		x.w.Header().Set("Allow", "GET, HEAD")
		return refusalf(http.StatusMethodNotAllowed, "the method must be GET or HEAD")
	}
	me, err := x.me()
	if err != nil {
		return x.undecided(err)
	}
	x.sendMe(me)
	return nil
}

// me asks the limits of every level what is left.
func (x *exchange) me() (*Me, error) {
	d, err := x.g.limits.Projects.PeekCall(x.ctx, project.Call{Project: x.path, Key: x.Key, Run: x.Run, RunProject: x.Project})
	if err != nil {
		return nil, err
	}
	me := &Me{Project: x.path, Key: x.Key, Run: x.Run}
	limits := map[string][]LevelLimit{}
	for _, s := range d.Windows() {
		limits[s.Owner] = append(limits[s.Owner], newLevelLimit(&s))
	}
	add := func(kind, id, owner string) {
		if id != "" {
			me.Levels = append(me.Levels, Level{kind, id, append([]LevelLimit{}, limits[owner]...)})
		}
	}
	for id := x.path; id != ""; id = id[:max(strings.LastIndexByte(id, '/'), 0)] {
		add("project", id, id)
	}
	add("key", me.Key, "key "+me.Key)
	add("run", me.Run, "run "+me.Run)
	return me, nil
}

func newLevelLimit(s *project.Standing) LevelLimit {
	w := s.Window
	of := func(n int64) Quantity { return Quantity{n, w.Dollars} }
	l := LevelLimit{Name: w.Name, Unit: "requests", Max: of(w.Count), Used: of(w.Count - s.Remaining), Left: of(max(s.Remaining, 0)), Total: w.Total()}
	switch {
	case w.Tokens:
		l.Unit = "tokens"
	case w.Dollars:
		l.Unit = "dollars"
	}
	if !l.Total {
		l.Reset = s.ResetAfter.Round(time.Millisecond).Seconds()
	}
	return l
}

// sendMe answers with JSON, or with a page if the client prefers one.
func (x *exchange) sendMe(me *Me) {
	h := x.w.Header()
	var body bytes.Buffer
	if prefersHTML(x.r.Header.Values("Accept")) {
		h["Content-Type"], h["Content-Security-Policy"] = []string{"text/html; charset=utf-8"}, []string{pagePolicy}
		page.Execute(&body, me) // a buffer and a template that a test executes do not fail
	} else {
		h["Content-Type"] = []string{"application/json"}
		encoder := json.NewEncoder(&body)
		encoder.SetIndent("", "  ")
		encoder.Encode(me) // texts and numbers
	}
	x.setRequestID(h)
	h["Cache-Control"], h["Vary"], h["X-Content-Type-Options"] = []string{"no-store"}, []string{"Accept"}, []string{"nosniff"}
	h["Referrer-Policy"] = []string{"no-referrer"} // the address may have a key
	h["Content-Length"] = []string{strconv.Itoa(body.Len())}
	x.Outcome, x.Status = Passed, http.StatusOK
	x.w.WriteHeader(http.StatusOK)
	if x.r.Method != http.MethodHead {
		x.w.Write(body.Bytes())
	}
}

// prefersHTML reports whether a client would rather have a page than JSON, by its Accept headers.
func prefersHTML(accept []string) bool {
	list := strings.Join(accept, ",")
	return quality(list, "text/html") > quality(list, "application/json")
}

// quality returns how much a client wants a media type, from 0 to 1: that of the most specific range
// in the list that the type is in.
func quality(list, media string) (q float64) {
	kind, _, _ := strings.Cut(media, "/")
	best := -1
	for item := range strings.SplitSeq(list, ",") {
		name, parameters, _ := strings.Cut(item, ";")
		specific := -1
		switch strings.ToLower(strings.TrimSpace(name)) {
		case media:
			specific = 2
		case kind + "/*":
			specific = 1
		case "*/*":
			specific = 0
		}
		if specific <= best {
			continue
		}
		best, q = specific, 1
		if _, value, ok := strings.Cut(parameters, "q="); ok {
			q, _ = strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return q
}
