package scenarios

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

const chat = "/openai/v1/chat/completions"

// call is a call of a model, as a test makes it.
type call struct {
	model   string
	project string
	text    string
	output  int // tokens, all of which are used
	stream  bool
	mock    string // what else the mock is told
	key     string
}

func (c call) body() string {
	return fmt.Sprintf(`{"model":%q,"max_tokens":%d,"stream":%v,"messages":[{"role":"user","content":%q}]}`, c.model, max(c.output, 1), c.stream, c.text)
}

func (c call) header() http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "X-Mock": {fmt.Sprintf("output=%d %s", max(c.output, 1), c.mock)}}
	if c.project != "" {
		h.Set("X-Project-ID", c.project)
	}
	if c.key != "" {
		h.Set("Authorization", "Bearer "+c.key)
	}
	return h
}

// raw returns the call as it is sent.
func (c call) raw() string {
	var h strings.Builder
	c.header().Write(&h)
	body := c.body()
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: gateway\r\n%sContent-Length: %d\r\n\r\n%s", chat, h.String(), len(body), body)
}

var client = &http.Client{Timeout: 2 * patience, Transport: &http.Transport{MaxIdleConnsPerHost: 100}}

// answer is what a client gets.
type answer struct {
	status int
	header http.Header
	body   string
}

// to makes the call at a gateway.
func (c call) to(g *door) (answer, error) {
	r, err := http.NewRequest(http.MethodPost, g.url+chat, strings.NewReader(c.body()))
	if err != nil {
		return answer{}, err
	}
	r.Header = c.header()
	return do(r)
}

func do(r *http.Request) (answer, error) {
	response, err := client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(text)}, err
}

// must makes the call, and expects a status.
func (c call) must(t *testing.T, g *door, status int) answer {
	t.Helper()
	a, err := c.to(g)
	if err != nil || a.status != status {
		t.Fatalf("%+v: %d %s, %v; want %d", c, a.status, a.body, err, status)
	}
	return a
}

// fetch returns what the admin API says at a path.
func (d *door) fetch(t *testing.T, path string) answer {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, d.admin+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := do(r)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// caller is a client with a connection of its own.
type caller struct {
	net.Conn
	lines *bufio.Reader
}

func connect(t *testing.T, address string) *caller {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &caller{conn, bufio.NewReader(conn)}
}

// send sends a call, and returns the head of the answer.
func (c *caller) send(raw string) (*http.Response, error) {
	if _, err := io.WriteString(c, raw); err != nil {
		return nil, err
	}
	return http.ReadResponse(c.lines, nil)
}

// crowd is many callers who send at the same moment.
type crowd struct {
	tasks   sync.WaitGroup
	mu      sync.Mutex
	answers map[int]int // by status; 0: none
	faults  []error
}

// rush lets so many callers, each connected already, make a call at the same moment: at
// one gateway after the other.
func rush(t *testing.T, n int, of func(i int) call, at ...*door) *crowd {
	t.Helper()
	callers, begin := make([]*caller, n), make(chan struct{})
	for i := range callers {
		callers[i] = connect(t, at[i%len(at)].address())
	}
	c := &crowd{answers: map[int]int{}}
	for i, each := range callers {
		c.tasks.Go(func() {
			defer each.Close()
			<-begin
			status, err := each.whole(of(i).raw())
			c.note(status, err)
		})
	}
	close(begin)
	return c
}

// whole sends a call and reads all of the answer.
func (c *caller) whole(raw string) (status int, err error) {
	response, err := c.send(raw)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

func (c *crowd) note(status int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[status]++
	if err != nil {
		c.faults = append(c.faults, err)
	}
}

// got returns how many have got an answer with a status.
func (c *crowd) got(status int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answers[status]
}

// answered returns how many have got one, or will not any more.
func (c *crowd) answered() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, each := range c.answers {
		n += each
	}
	return n
}

// end waits until all have got their answers.
func (c *crowd) end(t *testing.T) {
	t.Helper()
	c.tasks.Wait()
	for i, err := range c.faults {
		if i < 5 {
			t.Error(err)
		}
	}
}
