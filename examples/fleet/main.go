// Command fleet shows limiters that share one Redis, as on several machines: together they
// admit exactly the quota, and follow a change of it.
//
//	fleet -redis redis://127.0.0.1:6379/0
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

func main() {
	url := flag.String("redis", os.Getenv("REDIS_URL"), "URL of Redis; the default is $REDIS_URL, or else redis://127.0.0.1:6379/0")
	flag.Parse()
	err := show(os.Stdout, *url)
	if errors.Is(err, redisstore.ErrLost) {
		err = fmt.Errorf("%w\nStart one with redis-server, or say where it is with -redis", err)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const model = "gpt-4o"

func show(w io.Writer, url string) error {
	a, err := newMachine(url)
	if err != nil {
		return err
	}
	defer a.close()
	b, err := newMachine(url)
	if err != nil {
		return err
	}
	defer b.close()
	a.Reset(model) // forget an earlier run
	if err := a.raise(10, b); err != nil {
		return err
	}
	fmt.Fprintln(w, "Two machines, one Redis, 10 requests a minute: 300 calls at once")
	fmt.Fprintf(w, "  %d pass\n", burst(a, b))
	if err := a.raise(15, b); err != nil {
		return err
	}
	fmt.Fprintln(w, "One of them sets the quota to 15, and both follow: 300 more")
	fmt.Fprintf(w, "  %d pass\n", burst(a, b))
	_, d := b.TryAcquire(model, 100)
	fmt.Fprintf(w, "  the next call: %s, %d of %d used\n", d.Code, d.Stats.RPM, d.Stats.MaxRPM)
	return nil
}

// machine is a limiter with a connection to Redis of its own, as on a machine of its own.
type machine struct {
	*ratelimit.RateLimiter
	store *redisstore.Store
}

// newMachine uses a namespace, so that the example does not disturb other limiters on the same
// Redis. Without a namespace, ratelimit.NewWithConfig with BackendRedis is enough.
func newMachine(url string) (*machine, error) {
	s, err := redisstore.New(redisstore.Config{URL: url, Namespace: "ratelimit-example", Timeout: 5 * time.Second})
	if err != nil {
		return nil, err
	}
	rl, err := ratelimit.NewWithStore(s, ratelimit.Config{Quotas: map[string]ratelimit.ModelQuota{model: {MaxRPM: 10}}})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &machine{rl, s}, nil
}

func (m *machine) close() {
	m.RateLimiter.Close()
	m.store.Close()
}

// raise sets the quota, and waits until the other machine has it, too.
func (m *machine) raise(rpm int, other *machine) error {
	quota := ratelimit.ModelQuota{MaxRPM: rpm, MaxTPM: 1_000_000}
	if err := m.SetQuota(model, quota); err != nil {
		return err
	}
	for end := time.Now().Add(5 * time.Second); other.Quotas()[model] != quota; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return errors.New("the other machine does not follow")
		}
	}
	return nil
}

// burst makes 300 calls at once, and returns how many pass.
func burst(machines ...*machine) int64 {
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for i := range 300 {
		wg.Go(func() {
			if res, _ := machines[i%len(machines)].TryAcquire(model, 100); res != nil {
				admitted.Add(1)
				res.Commit(60, 30)
			}
		})
	}
	wg.Wait()
	return admitted.Load()
}
