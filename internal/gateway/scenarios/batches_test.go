package scenarios

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// batching has budgets of all kinds at all levels: by the calendar, of any day, and in total.
const batching = `
keys: required
providers:
  openai: {base_url: MOCK, key: {file: KEY}}
  anthropic: {base_url: MOCK, key: {file: KEY}}
prices:
  m: {input: 1, output: 2, batch: 50%}
projects:
  acme: {dollars_per_month: 1, resets: {month: 1}}
  acme/search: {dollars: 1, tokens_per_day: 1_000_000}
runs: {dollars: 1}
`

// submitter submits batches with a virtual key, as a part of a run.
type submitter struct {
	*testing.T
	key admin.IssuedKey
}

func newSubmitter(t *testing.T, g *gatewayURLs) *submitter {
	t.Helper()
	manage := &admin.Client{Base: g.admin, HTTP: client}
	key, err := manage.CreateKey(t.Context(), admin.NewKey{Project: "acme/search", Limit: project.Limit{DollarsPerDay: price.Dollar}})
	if err != nil {
		t.Fatal(err)
	}
	return &submitter{t, key}
}

// ask sends a request, and returns its answer, which must be a success.
func (s *submitter) ask(g *gatewayURLs, method, path, body string) string {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), method, g.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.key.Secret)
	request.Header.Set("X-Run-ID", "r1")
	response, err := client.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		s.Fatalf("%s %s: %d %s", method, path, response.StatusCode, text)
	}
	return string(text)
}

const batchBody = `{"requests":[{"custom_id":"c","params":{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"Hello"}]}}]}`

// submit submits a batch of one call, and returns its path.
func (s *submitter) submit(g *gatewayURLs) string {
	s.Helper()
	var batch struct{ ID string }
	if err := json.Unmarshal([]byte(s.ask(g, "POST", "/anthropic/v1/messages/batches", batchBody)), &batch); err != nil {
		s.Fatal(err)
	}
	return "/anthropic/v1/messages/batches/" + batch.ID
}

// spent returns what each budget in dollars of the batch's owners has used.
func (s *submitter) spent(g *inProcess) map[string]price.Amount {
	s.Helper()
	d, err := g.Gateway.Projects().PeekCall(s.Context(), project.Call{Project: "acme/search", Key: s.key.ID, Run: "r1"})
	if err != nil {
		s.Fatal(err)
	}
	all := map[string]price.Amount{}
	for _, w := range d.Windows() {
		if w.Window.Unit == project.Dollars {
			all[w.Owner] = price.Amount(w.Window.Count - w.Remaining)
		}
	}
	return all
}

// all returns as much for each owner.
func (s *submitter) all(n price.Amount) map[string]price.Amount {
	return map[string]price.Amount{"acme": n, "acme/search": n, "key " + s.key.ID: n, "run r1": n}
}

// inBooks returns how many requests and how many nanodollars the books have.
func (s *submitter) inBooks(g *inProcess) (calls int64, dollars price.Amount) {
	s.Helper()
	sum, err := g.Gateway.Usage(s.Context(), books.Query{Project: "acme/search", Key: s.key.ID})
	if err != nil {
		s.Fatal(err)
	}
	return sum.Total[books.Requests], price.Amount(sum.Total[books.Nanodollars])
}

// halfPrice is what calls have cost in a batch.
func halfPrice(used mockprovider.Totals) price.Amount {
	return price.Amount(used.Input*500 + used.Output*1000)
}

// A batch that was sent through a gateway which is killed, or ends, is settled when its results are
// fetched through another one, in all windows of its projects, its key and its run, and in the books.
func TestBatchesOutliveTheirGateway(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "ended": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			onLasting(t, func(t *testing.T, state string) {
				p := newProvider(t)
				yaml := replaced(batching, "KEY", secretFile(t, "sk-upstream"))
				first := launch(t, written(t, yaml, p), state)
				s := newSubmitter(t, &first.gatewayURLs)
				batch := s.submit(&first.gatewayURLs)
				first.signal(t, signal)
				first.wait(t)
				g := start(t, yaml, state, p)
				reserved := s.spent(g)
				if reserved["acme"] < 100*1000 || !maps.Equal(reserved, s.all(reserved["acme"])) {
					t.Errorf("after the restart, %v are reserved", reserved)
				}
				for range 2 {
					s.ask(&g.gatewayURLs, "GET", batch, "")
					s.ask(&g.gatewayURLs, "GET", batch+"/results", "")
					want := halfPrice(p.Totals()["m"])
					if got := s.spent(g); !maps.Equal(got, s.all(want)) {
						t.Errorf("%v are used; want %v", got, want)
					}
					if calls, dollars := s.inBooks(g); calls != 1 || dollars != want {
						t.Errorf("the books have %d calls for %v; want %v", calls, dollars, want)
					}
				}
			})
		})
	}
}

// A call in the background is settled when its response is fetched through another gateway, in all windows of its
// projects, its key and its run, and in the books: once, however often it is fetched.
func TestBackgroundOutlivesItsGateway(t *testing.T) {
	const withQuota = "key: {file: KEY}, models: {m: {max_rpm: 100, max_tpm: 100_000, max_concurrent: 5}}}"
	onLasting(t, func(t *testing.T, state string) {
		p := newProvider(t)
		yaml := replaced(strings.Replace(batching, "key: {file: KEY}}", withQuota, 1), "KEY", secretFile(t, "sk-upstream"))
		first := launch(t, written(t, yaml, p), state)
		s := newSubmitter(t, &first.gatewayURLs)
		var begun struct{ ID string }
		if err := json.Unmarshal([]byte(s.ask(&first.gatewayURLs, "POST", "/openai/v1/responses", `{"model":"m","background":true,"max_output_tokens":1000,"input":"Hello"}`)), &begun); err != nil {
			t.Fatal(err)
		}
		first.signal(t, syscall.SIGKILL)
		first.wait(t)
		g := start(t, yaml, state, p)
		reserved := s.spent(g)
		if reserved["acme"] < 1000*2000 || !maps.Equal(reserved, s.all(reserved["acme"])) {
			t.Errorf("after the restart, %v are reserved", reserved)
		}
		for range 2 {
			s.ask(&g.gatewayURLs, "GET", "/openai/v1/responses/"+begun.ID+"?stream=true", "")
			want := 2 * halfPrice(p.Totals()["m"])
			if got := s.spent(g); !maps.Equal(got, s.all(want)) {
				t.Errorf("%v are used; want %v", got, want)
			}
			if calls, dollars := s.inBooks(g); calls != 1 || dollars != want {
				t.Errorf("the books have %d calls for %v; want %v", calls, dollars, want)
			}
		}
	})
}

// OpenAI's results are in a file. That it is known which batch it belongs to also outlives a gateway.
func TestFilesOfBatchesOutliveTheirGateway(t *testing.T) {
	onLasting(t, func(t *testing.T, state string) {
		p := newProvider(t)
		yaml := replaced(batching, "KEY", secretFile(t, "sk-upstream"))
		file := written(t, yaml, p)
		first := launch(t, file, state)
		s := newSubmitter(t, &first.gatewayURLs)
		var said struct {
			ID     string
			Output string `json:"output_file_id"`
		}
		read := func(text string) {
			if err := json.Unmarshal([]byte(text), &said); err != nil {
				t.Fatal(err)
			}
		}
		form := "--x\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n" +
			`{"custom_id":"c","method":"POST","url":"/v1/chat/completions","body":{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"Hello"}]}}` + "\r\n--x--\r\n"
		read(s.upload(&first.gatewayURLs, form))
		read(s.ask(&first.gatewayURLs, "POST", "/openai/v1/batches", `{"input_file_id":"`+said.ID+`","endpoint":"/v1/chat/completions","completion_window":"24h"}`))
		read(s.ask(&first.gatewayURLs, "GET", "/openai/v1/batches/"+said.ID, ""))
		first.signal(t, syscall.SIGKILL)
		first.wait(t)
		g := start(t, yaml, state, p)
		s.ask(&g.gatewayURLs, "GET", "/openai/v1/files/"+said.Output+"/content", "")
		if got, want := s.spent(g), s.all(halfPrice(p.Totals()["m"])); !maps.Equal(got, want) {
			t.Errorf("%v are used; want %v", got, want)
		}
	})
}

// upload uploads a file.
func (s *submitter) upload(g *gatewayURLs, form string) string {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), "POST", g.url+"/openai/v1/files", strings.NewReader(form))
	if err != nil {
		s.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.key.Secret)
	request.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	a, err := do(request)
	if err != nil || a.status != 200 {
		s.Fatal(a, err)
	}
	return a.body
}

// Results that are fetched through several gateways at once settle a batch once.
func TestGatewaysSettleABatchOnce(t *testing.T) {
	onLasting(t, func(t *testing.T, state string) {
		p := newProvider(t)
		yaml := replaced(batching, "KEY", secretFile(t, "sk-upstream"))
		a, b := start(t, yaml, state, p), start(t, yaml, state, p)
		s := newSubmitter(t, &a.gatewayURLs)
		testkit.Eventually(t, "the other knows the key", func() bool {
			said, err := (call{model: "m", key: s.key.Secret}).to(&b.gatewayURLs)
			return err == nil && said.status != 401
		})
		b.awaitSettled(t)
		before := s.spent(b)["acme"]
		batch := s.submit(&a.gatewayURLs)
		s.ask(&b.gatewayURLs, "GET", batch, "")
		var tasks sync.WaitGroup
		for i := range 20 {
			tasks.Go(func() { s.ask(&[]*inProcess{a, b}[i%2].gatewayURLs, "GET", batch+"/results", "") })
		}
		tasks.Wait()
		calls, dollars := s.inBooks(b)
		if used := s.spent(b); used["acme"] != dollars || used["run r1"]+before != dollars || calls != int64(p.Totals()["m"].Requests) {
			t.Errorf("%v are used, %v before; the books have %d calls for %v, and the provider %+v", used, before, calls, dollars, p.Totals()["m"])
		}
	})
}
