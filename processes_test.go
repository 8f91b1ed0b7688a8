package ratelimit_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

// call is how processes call a model: how much is reserved, and how much is used.
type call struct {
	quota    ratelimit.ModelQuota
	reserved int
	used     ratelimit.Tokens
}

// hammered has a model for each kind of limit, which is the first to deny.
var hammered = map[string]call{
	"requests_per_day":    {ratelimit.ModelQuota{MaxRPD: 1000, MaxRPM: 10_000, MaxTPM: 1 << 40}, 10, ratelimit.Tokens{Input: 5, Output: 5}},
	"requests_per_minute": {ratelimit.ModelQuota{MaxRPD: 10_000, MaxRPM: 300, MaxTPM: 1 << 40}, 10, ratelimit.Tokens{Input: 3, Output: 4}},
	"tokens":              {ratelimit.ModelQuota{MaxRPD: 10_000, MaxRPM: 10_000, MaxTPM: 2000}, 20, ratelimit.Tokens{Input: 3, Output: 7}},
}

// endless has a model that denies nothing for as long as the test lasts.
var endless = map[string]call{
	"endless": {ratelimit.ModelQuota{MaxRPD: 1 << 40, MaxRPM: 1 << 40, MaxTPM: 1 << 40}, 20, ratelimit.Tokens{Input: 3, Output: 7}},
}

func quotasOf(calls map[string]call) quotas {
	q := quotas{}
	for model, c := range calls {
		q[model] = c.quota
	}
	return q
}

const (
	hammerFile = "RATELIMIT_HAMMER_FILE" // the file, or the URL of Redis, that a process is to hammer
	hammerWhat = "RATELIMIT_HAMMER_WHAT" // "endless" or nothing

	callers = 3 // callers of each model in each process
)

// TestHammer is what the other processes of these tests run: it calls each model until it is
// denied, and prints the model's name for each admitted call, before it is committed.
func TestHammer(t *testing.T) {
	path := os.Getenv(hammerFile)
	if path == "" {
		return
	}
	calls := hammered
	if os.Getenv(hammerWhat) == "endless" {
		calls = endless
	}
	rl := openShared(t, path, quotasOf(calls))
	fmt.Println("ready")
	bufio.NewReader(os.Stdin).ReadString('\n')
	var wg sync.WaitGroup
	for model, c := range calls {
		for range callers {
			wg.Go(func() {
				for {
					res, d := rl.TryAcquire(model, c.reserved)
					if s := d.Stats; d.Code == ratelimit.DecisionStoreLost || s.RPD > c.quota.MaxRPD || s.RPM > c.quota.MaxRPM || s.TPM > c.quota.MaxTPM {
						t.Errorf("%s: %+v", model, d)
						return
					}
					if !d.Allowed {
						return
					}
					os.Stdout.WriteString(model + "\n")
					res.Commit(c.used.Input, c.used.Output)
				}
			})
		}
	}
	wg.Wait()
	closeFile(t, rl)
}

// process is another process that runs TestHammer.
type process struct {
	*exec.Cmd
	start io.Closer

	mu       sync.Mutex
	admitted map[string]int
	rest     strings.Builder // the rest of its output
	ready    chan struct{}   // closed when the process is ready
	busy     chan struct{}   // closed when many of its calls were admitted
	ended    chan struct{}   // closed at the end of its output
}

func startProcess(t *testing.T, path, what string) *process {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{
		Cmd:      exec.Command(program, "-test.run=^TestHammer$"),
		admitted: map[string]int{},
		ready:    make(chan struct{}), busy: make(chan struct{}), ended: make(chan struct{}),
	}
	p.Env = append(os.Environ(), hammerFile+"="+path, hammerWhat+"="+what)
	p.Stderr = os.Stderr
	input, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.start = input
	output, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go p.listen(output)
	return p
}

func (p *process) listen(output io.Reader) {
	defer close(p.ended)
	all := 0
	for lines := bufio.NewScanner(output); lines.Scan(); {
		p.mu.Lock()
		switch line := lines.Text(); {
		case line == "ready":
			close(p.ready)
		case hammered[line].reserved > 0 || endless[line].reserved > 0:
			p.admitted[line]++
			all++
			if all == 100 {
				close(p.busy)
			}
		default:
			p.rest.WriteString(line + "\n")
		}
		p.mu.Unlock()
	}
}

// begin lets processes begin once all are ready.
func begin(processes ...*process) {
	for _, p := range processes {
		select {
		case <-p.ready:
		case <-p.ended:
		}
	}
	for _, p := range processes {
		p.start.Close()
	}
}

// end waits until the process has ended, and adds its admitted calls.
func (p *process) end(t *testing.T, killed bool, admitted map[string]int) {
	t.Helper()
	<-p.ended
	if err := p.Wait(); err != nil && !killed {
		t.Errorf("%v: %s", err, &p.rest)
	}
	for model, n := range p.admitted {
		admitted[model] += n
	}
}

func wantSound(t *testing.T, path string) {
	t.Helper()
	if got := rowsOf(t, path, "PRAGMA integrity_check"); !slices.Equal(got, []string{"ok"}) {
		t.Errorf("integrity: %q", got)
	}
}

// openShared returns a limiter on a file, or on Redis.
func openShared(t testing.TB, path string, q quotas) *ratelimit.RateLimiter {
	t.Helper()
	if strings.HasPrefix(path, "redis:") {
		return onRedis(t, path, q)
	}
	return openFile(t, path, q)
}

func TestProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.db")
	wantProcessesToShare(t, path)
	wantSound(t, path)
}

// wantProcessesToShare fails the test unless processes that share a file, or Redis, are
// together admitted exactly what the quotas allow.
func wantProcessesToShare(t *testing.T, path string) {
	t.Helper()
	var processes [4]*process
	for i := range processes {
		processes[i] = startProcess(t, path, "")
	}
	began := time.Now()
	begin(processes[:]...)
	admitted := map[string]int{}
	for _, p := range processes {
		p.end(t, false, admitted)
	}
	rl := openShared(t, path, quotasOf(hammered))
	for model, c := range hammered {
		more := 0
		for { // calls that used less than they reserved have left room
			res, d := rl.TryAcquire(model, c.reserved)
			if !d.Allowed {
				break
			}
			res.Commit(c.used.Input, c.used.Output)
			more++
		}
		n, s := admitted[model]+more, rl.Stats(model)
		if s.RPD != n || inAMinute(began) && (s.RPM != n || s.TPM != n*(c.used.Input+c.used.Output)) {
			t.Errorf("%s: %d were admitted: %+v", model, n, s)
		}
		if more > 0 && model != "tokens" && inAMinute(began) {
			t.Errorf("%s: the processes have left %d", model, more)
		}
	}
	if n := admitted["requests_per_day"]; n != 1000 {
		t.Errorf("%d requests of a day were admitted", n)
	}
	if n := admitted["requests_per_minute"]; n < 300 || n > 300 && inAMinute(began) {
		t.Errorf("%d requests of a minute were admitted", n)
	}
	if s := rl.Stats("tokens"); s.TPM > 2000 || s.TPM <= 2000-20 && inAMinute(began) {
		t.Errorf("%d tokens of a minute were admitted", s.TPM)
	}
	closeFile(t, rl)
}

// inAMinute reports whether all that was admitted since a time is in the window of a minute. The processes and their
// store have the machine's clock, and a busy machine may be slower.
func inAMinute(began time.Time) bool { return time.Since(began) < time.Minute }

// Killed processes lose no admitted call, and harm no other process.
func TestKilledProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.db")
	var processes [4]*process
	for i := range processes {
		processes[i] = startProcess(t, path, "endless")
	}
	began := time.Now()
	begin(processes[:]...)
	admitted := map[string]int{}
	const kills = 8
	for i := range kills {
		victim := processes[i%4]
		<-victim.busy
		if err := victim.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		victim.end(t, true, admitted)
		if i < kills-4 {
			processes[i%4] = startProcess(t, path, "endless")
			begin(processes[i%4])
		}
	}
	wantSound(t, path)
	rl := openFile(t, path, quotasOf(endless))
	n, s := admitted["endless"], rl.Stats("endless")
	const unsaid = kills * callers // calls that may have been admitted without being printed, or without being committed
	if s.RPD < n || s.RPD > n+unsaid || s.RPM != s.RPD && inAMinute(began) {
		t.Errorf("%d were admitted, and up to %d more: %+v", n, unsaid, s)
	}
	if s.TPM < 10*s.RPM || s.TPM > 10*s.RPM+10*2*unsaid {
		t.Errorf("%d were admitted: %+v", n, s)
	}
	c := endless["endless"].quota
	c.MaxRPD = s.RPD + 50
	mustSetQuota(t, rl, "endless", c)
	if more, d := fill(rl, "endless", 1); more != 50 || d.Code != overRPD {
		t.Errorf("%d more pass, and then %+v", more, d)
	}
	closeFile(t, rl)
	wantSound(t, path)
}
