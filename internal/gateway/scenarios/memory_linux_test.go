package scenarios

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// memory returns the resident memory of a process, by a field of its status: VmRSS is the
// memory now, VmHWM the largest so far.
func (p *process) memory(t *testing.T, field string) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(field + `:\s+(\d+) kB`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("no %s in\n%s", field, text)
	}
	kilobytes, _ := strconv.ParseInt(string(found[1]), 10, 64)
	return kilobytes << 10
}

// Bodies take up at most one and a half times the memory of max_bodies. Once, a bound of
// 64 MiB let the gateway grow to 325 MiB. The provider does not answer before some calls were
// refused, so each round reaches the bound.
func TestMemoryOfBodies(t *testing.T) {
	const bound, size, together = 64 << 20, 7 << 20, 12
	var gate atomic.Pointer[chan struct{}] // one for each round
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		opened := *gate.Load()
		io.Copy(io.Discard, r.Body)
		<-opened
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
	}))
	defer upstream.Close()
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	text := fmt.Sprintf(`
state: memory
providers: {openai: {base_url: %q, models: {m: {aliases: [other]}}}}
server: {max_bodies: 64MiB}
log: {level: "off"}
`, upstream.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOGC", "")
	p := launch(t, file, "")
	base := p.memory(t, "VmRSS")
	prompt := strings.Repeat("a", size)
	for range 6 {
		opened := make(chan struct{})
		gate.Store(&opened)
		var calls sync.WaitGroup
		left := make(chan bool, together)
		for i := range together {
			calls.Go(func() {
				defer func() { left <- true }()
				name := []string{"m", "other"}[i%2]
				body := io.MultiReader(strings.NewReader(`{"model":"`+name+`","stream":true,"messages":[{"role":"user","content":"`), strings.NewReader(prompt), strings.NewReader(`"}]}`))
				request, _ := http.NewRequest("POST", p.url+"/openai/v1/chat/completions", body)
				if i%3 > 0 {
					request.ContentLength = int64(size + len(name) + len(`{"model":"","stream":true,"messages":[{"role":"user","content":""}]}`))
				}
				response, err := client.Do(request)
				if err != nil {
					return // the call was refused before all of its body was sent
				}
				io.Copy(io.Discard, response.Body)
				response.Body.Close()
			})
		}
		for range together / 4 { // some bodies do not fit, and are refused
			<-left
		}
		close(opened) // lets the others, and those that come later, pass
		calls.Wait()
	}
	if most := p.memory(t, "VmHWM"); most > base+bound*3/2 {
		t.Errorf("it has grown from %d MiB to %d MiB, with a bound of %d MiB", base>>20, most>>20, bound>>20)
	} else {
		t.Logf("it has grown from %d MiB to %d MiB", base>>20, most>>20)
	}
}
