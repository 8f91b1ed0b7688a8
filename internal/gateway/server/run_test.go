package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// running is a server that a test has started.
type running struct {
	Running
	base, admin string // URLs
	file        string // the configuration's
	over        config.Overrides
	signals     chan os.Signal
	log         *logged
	end         context.CancelFunc
	ended       chan error
}

// start runs a server with a configuration, in which %s stands for its provider's address.
func start(t *testing.T, provider http.Handler, text string) *running {
	t.Helper()
	upstream := httptest.NewServer(provider)
	t.Cleanup(upstream.Close)
	r := &running{
		file: filepath.Join(t.TempDir(), "gateway.yaml"), signals: make(chan os.Signal, 1),
		log: new(logged), ended: make(chan error, 1),
	}
	r.write(t, strings.ReplaceAll(text, "%s", upstream.URL))
	r.run(t)
	t.Cleanup(func() {
		r.end()
		upstream.CloseClientConnections()
		<-r.ended
	})
	return r
}

// startOver runs a server whose listeners are set as with options of the command line, and
// everything else by the file.
func startOver(t *testing.T, text string) *running {
	t.Helper()
	r := &running{
		file: filepath.Join(t.TempDir(), "gateway.yaml"), log: new(logged), ended: make(chan error, 1),
		over: config.Overrides{Listen: "127.0.0.1:0", Admin: "127.0.0.1:0", State: config.Memory},
	}
	r.write(t, text)
	r.run(t)
	t.Cleanup(func() {
		r.end()
		<-r.ended
	})
	return r
}

// run runs a server with the file.
func (r *running) run(t *testing.T) {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	r.end = end
	started := make(chan Running, 1)
	level := new(slog.LevelVar)
	log := slog.New(slog.NewJSONHandler(r.log, &slog.HandlerOptions{Level: level}))
	go func() {
		defer close(r.ended)
		r.ended <- Run(ctx, Options{
			Load:   func() (*config.Config, error) { return config.Load(r.file, r.over) },
			File:   r.file,
			Reload: r.signals, Log: log, Level: level, Version: "test",
			Started: func(running Running) { started <- running },
		})
	}()
	select {
	case r.Running = <-started:
	case err := <-r.ended:
		t.Fatalf("it does not start: %v", err)
	}
	r.base, r.admin = "http://"+r.Clients.String(), ""
	if r.Admin != nil {
		r.admin = "http://" + r.Admin.String()
	}
}

// stop ends the server, and returns Run's error.
func (r *running) stop(t *testing.T) error {
	t.Helper()
	r.end()
	return r.result(t)
}

func (r *running) result(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(testkit.Patience):
		t.Fatalf("it does not end; the log:\n%s", r.log)
		return nil
	}
}

func (r *running) write(t *testing.T, text string) {
	t.Helper()
	beside := r.file + ".new"
	if err := os.WriteFile(beside, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(beside, r.file); err != nil {
		t.Fatal(err)
	}
}

// edit replaces a text in the configuration's file.
func (r *running) edit(t *testing.T, old, new string) {
	t.Helper()
	text, err := os.ReadFile(r.file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte(old)) {
		t.Fatalf("the configuration has no %q", old)
	}
	r.write(t, strings.Replace(string(text), old, new, 1))
}

const chat = `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"hello"}]}`

// call makes a call of a model, and returns its status.
func (r *running) call(client *http.Client) (int, error) {
	resp, err := client.Post(r.base+"/openai/v1/chat/completions", "application/json", strings.NewReader(chat))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// reload asks the admin API for a reload, and returns its answer.
func (r *running) reload(t *testing.T) (status int, text string) {
	t.Helper()
	resp, err := http.Post(r.admin+"/v1/reload", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// basic is a configuration that counts in memory.
const basic = `
listen: 127.0.0.1:0
admin: {listen: 127.0.0.1:0}
state: memory
providers:
  openai:
    base_url: "%s"
    models:
      m: {max_rpm: 100_000}
server: {drain: 20s}
`

func mock() http.Handler { return mockprovider.New(mockprovider.Config{}) }

func TestServesUntilItsEnd(t *testing.T) {
	r := start(t, mock(), basic)
	status, err := r.call(http.DefaultClient)
	if err != nil || status != http.StatusOK {
		t.Fatalf("a call: %d, %v", status, err)
	}
	resp, err := http.Get(r.admin + "/readyz")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("readyz: %v, %v", resp, err)
	}
	resp.Body.Close()
	if err := r.stop(t); err != nil {
		t.Error(err)
	}
	for _, a := range []net.Addr{r.Clients, r.Admin} {
		if c, err := net.Dial("tcp", a.String()); err == nil {
			c.Close()
			t.Errorf("%s still listens", a)
		}
	}
}

func TestWithoutAdmin(t *testing.T) {
	r := start(t, mock(), strings.Replace(basic, "{listen: 127.0.0.1:0}", "{listen: off}", 1))
	if r.Admin != nil {
		t.Errorf("there is an admin API at %s", r.Admin)
	}
	if err := r.stop(t); err != nil {
		t.Error(err)
	}
}

// The error of a failed start says what to do about it, and nothing is left open.
func TestDoesNotStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, text, want string }{
		{"the clients' address is in use", "listen: " + taken.Addr().String() + "\nstate: memory", "choose another address with --listen"},
		{"the admin API's address is in use", "listen: 127.0.0.1:0\nadmin: {listen: '" + taken.Addr().String() + "'}\nstate: memory", "choose another address with --admin"},
		{"no address of this machine", "listen: 192.0.2.1:8080\nstate: memory", "this machine does not have that address"},
		{"no certificate", "listen: 127.0.0.1:0\nstate: memory\ntls: {cert: " + file + ", key: " + file + "}", "cert and key are not a certificate"},
		{"a state that cannot be written", "listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\nstate: " + file + "/state.db", file + "/state.db"},
		{"a bad configuration", "listen: 127.0.0.1:0\nlisten: x", "gateway.yaml:2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := filepath.Join(t.TempDir(), "gateway.yaml")
			if err := os.WriteFile(cfg, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			err := Run(t.Context(), Options{
				Load:    func() (*config.Config, error) { return config.Load(cfg, config.Overrides{}) },
				Started: func(Running) { t.Error("it has started") },
			})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "ratelimit: ") {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// A configuration in a pipe is refused: it could not be read again.
func TestConfigurationThatIsAPipe(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	if _, err := io.WriteString(write, "listen: nowhere"); err != nil {
		t.Fatal(err)
	}
	write.Close()
	file := fmt.Sprintf("/dev/fd/%d", read.Fd())
	if _, err := os.Stat(file); err != nil {
		t.Skip("there are no names of open files")
	}
	err = Run(t.Context(), Options{
		Load:    func() (*config.Config, error) { return config.Load(file, config.Overrides{State: config.Memory}) },
		File:    file,
		Started: func(Running) { t.Error("it has started") },
	})
	if err == nil || !strings.Contains(err.Error(), file+" is not a regular file") {
		t.Errorf("got %v", err)
	}
}

// A second gateway can listen at the address of one that has ended.
func TestAddressIsFreeAfterwards(t *testing.T) {
	r := start(t, mock(), basic)
	if err := r.stop(t); err != nil {
		t.Fatal(err)
	}
	r.edit(t, "listen: 127.0.0.1:0", "listen: "+r.Clients.String())
	r.ended = make(chan error, 1)
	r.run(t)
	if status, err := r.call(http.DefaultClient); err != nil || status != http.StatusOK {
		t.Errorf("a call: %d, %v", status, err)
	}
}

// The state is written at the end, so the next gateway goes on with the same counts.
func TestStateOutlivesTheServer(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state.db")
	r := start(t, mock(), strings.Replace(basic, "state: memory", "state: "+state, 1))
	for range 3 {
		if status, err := r.call(http.DefaultClient); err != nil || status != http.StatusOK {
			t.Fatalf("a call: %d, %v", status, err)
		}
	}
	if err := r.stop(t); err != nil {
		t.Fatal(err)
	}
	r.ended = make(chan error, 1)
	r.run(t)
	if used := r.Gateway.Models().Stats("m").RPM; used != 3 {
		t.Errorf("%d requests are known, want 3", used)
	}
}

// A start does not remove limits that were in the file once. The log names them.
func TestLimitsOutliveTheFile(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state.db")
	const projects = "projects: {gone: {requests_per_minute: 1}, stays: {requests_per_minute: 2}}\n"
	r := start(t, mock(), strings.Replace(basic, "state: memory", "state: "+state, 1)+projects)
	if err := r.stop(t); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(r.log.String(), "WARN") {
		t.Errorf("it tells of limits that the file names:\n%s", r.log)
	}
	r.edit(t, "gone: {requests_per_minute: 1}, ", "")
	r.edit(t, "m: {max_rpm: 100_000}", "n: {max_rpm: 100_000}")
	r.ended = make(chan error, 1)
	r.run(t)
	r.log.await(t, `keep their limits from the state: DELETE /v1/projects/{project} lifts one","count":1,"projects":["gone"]`, 1)
	r.log.await(t, `which limit nothing here","count":1,"quotas":["m"]`, 1)
	if n := r.Gateway.Projects().Limit("gone").RequestsPerMinute; n != 1 {
		t.Errorf("its limit is %d, want 1", n)
	}
}

// logged is the log of a server.
type logged struct{ testkit.Log }

// without returns the lines that do not contain a message.
func (l *logged) without(message string) string {
	var rest strings.Builder
	for line := range strings.Lines(l.String()) {
		if !strings.Contains(line, `"msg":"`+message+`"`) {
			rest.WriteString(line)
		}
	}
	return rest.String()
}

// await waits until the log contains the words a number of times.
func (l *logged) await(t *testing.T, words string, times int) {
	t.Helper()
	l.AwaitTimes(t, regexp.QuoteMeta(words), times)
}

// fetch returns the body at a URL.
func fetch(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(fmt.Errorf("%s: %s, %w", url, resp.Status, err))
	}
	return string(body)
}
