package scenarios

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

const chat = "/openai/v1/chat/completions"

// call is a call of a model.
type call struct {
	path    string // empty: chat
	model   string
	project string
	user    string
	run     string
	text    string
	output  int // max_tokens, and the tokens that the mock generates
	stream  bool
	mock    string // more instructions to the mock
	key     string
}

func (c call) body() string {
	return fmt.Sprintf(`{"model":%q,"max_tokens":%d,"stream":%v,"messages":[{"role":"user","content":%q}]}`, c.model, max(c.output, 1), c.stream, c.text)
}

func (c call) header() http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "X-Mock": {fmt.Sprintf("output=%d %s", max(c.output, 1), c.mock)}}
	for name, value := range map[string]string{"X-Project-ID": c.project, "X-User-ID": c.user, "X-Run-ID": c.run} {
		if value != "" {
			h.Set(name, value)
		}
	}
	if c.key != "" {
		h.Set("Authorization", "Bearer "+c.key)
	}
	return h
}

// raw returns the bytes of the request.
func (c call) raw() string {
	var h strings.Builder
	c.header().Write(&h)
	body := c.body()
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: gateway\r\n%sContent-Length: %d\r\n\r\n%s", cmp.Or(c.path, chat), h.String(), len(body), body)
}

var client = &http.Client{Timeout: testkit.Patience, Transport: &http.Transport{MaxIdleConnsPerHost: 100}}

// answer is an answer to a client.
type answer struct {
	status int
	header http.Header
	body   string
}

// to sends the call to a gateway.
func (c call) to(g *gatewayURLs) (answer, error) {
	r, err := http.NewRequest(http.MethodPost, g.url+cmp.Or(c.path, chat), strings.NewReader(c.body()))
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

// must sends the call, and expects a status.
func (c call) must(t *testing.T, g *gatewayURLs, status int) answer {
	t.Helper()
	a, err := c.to(g)
	if err != nil || a.status != status {
		t.Fatalf("%+v: %d %s, %v; want %d", c, a.status, a.body, err, status)
	}
	return a
}

// fetch returns the admin API's answer at a path.
func (g *gatewayURLs) fetch(t *testing.T, path string) answer {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, g.admin+path, nil)
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

// burst is many callers that send at the same moment.
type burst struct {
	tasks   sync.WaitGroup
	mu      sync.Mutex
	answers map[int]int // how many, by status; 0 is no answer
	faults  []error
}

// sendTogether lets n callers, each of which is connected already, send a call at the same
// moment. The callers are spread over the gateways in turn.
func sendTogether(t *testing.T, n int, of func(i int) call, at ...*gatewayURLs) *burst {
	t.Helper()
	callers, begin := make([]*caller, n), make(chan struct{})
	for i := range callers {
		callers[i] = connect(t, at[i%len(at)].address())
	}
	c := &burst{answers: map[int]int{}}
	for i, each := range callers {
		c.tasks.Go(func() {
			defer each.Close()
			<-begin
			status, err := each.whole(of(i).raw())
			c.record(status, err)
		})
	}
	close(begin)
	return c
}

// whole sends a call, and reads the whole answer.
func (c *caller) whole(raw string) (status int, err error) {
	response, err := c.send(raw)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

func (c *burst) record(status int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[status]++
	if err != nil {
		c.faults = append(c.faults, err)
	}
}

// got returns how many callers have got an answer with a status.
func (c *burst) got(status int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answers[status]
}

// answered returns how many callers have got an answer, or an error.
func (c *burst) answered() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, each := range c.answers {
		n += each
	}
	return n
}

// wait waits until all callers have got their answers.
func (c *burst) wait(t *testing.T) {
	t.Helper()
	c.tasks.Wait()
	for i, err := range c.faults {
		if i < 5 {
			t.Error(err)
		}
	}
}
