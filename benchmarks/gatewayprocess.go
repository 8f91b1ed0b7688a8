package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"slices"
	"time"
)

// A proxy is a process of its own, so that it has its own heap, collector and scheduler, and its
// CPU can be distinguished from the CPU of its clients. It is this program: these name the proxy, and the
// provider's address.
const (
	childProxy    = "BENCHMARKS_CHILD_PROXY"
	childUpstream = "BENCHMARKS_CHILD_UPSTREAM"
)

// footing is what the process reports of itself when it is asked.
type footing struct {
	CPU    time.Duration
	Heap   uint64 // in use, after a collection if one was asked for
	Stacks uint64
	Err    string `json:",omitempty"`
}

// order is a line that the process reads.
type order struct {
	Collect  bool   // before it reports
	Profile  string // begin a CPU profile, which is written there
	Profiled string // end it, and write what was allocated since the start there
}

// proxyChild is what the process does. It ends with its standard input, so it never outlives who
// started it.
func proxyChild(name string) error {
	runtime.GOMAXPROCS(cores)
	p, err := proxyNamed(name)
	if err != nil {
		return err
	}
	d, err := p.start(os.Getenv(childUpstream))
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout) // first of all, where its door is
	if err := out.Encode(d); err != nil {
		return err
	}
	for in := json.NewDecoder(os.Stdin); ; {
		var o order
		if err := in.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := out.Encode(o.obey()); err != nil {
			return err
		}
	}
}

func proxyNamed(name string) (proxy, error) {
	for _, p := range append(slices.Concat(proxies(), spenderProxies()), proxy{name: nameViewed, start: viewedGateway}) {
		if p.name == name {
			return p, nil
		}
	}
	return proxy{}, fmt.Errorf("there is no proxy %q", name)
}

func (o order) obey() footing {
	if err := o.profile(); err != nil {
		return footing{Err: err.Error()}
	}
	if o.Collect {
		runtime.GC()
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return footing{CPU: cpuTime(), Heap: m.HeapAlloc, Stacks: m.StackInuse}
}

func (o order) profile() error {
	switch {
	case o.Profile != "":
		f, err := os.Create(o.Profile)
		if err != nil {
			return err
		}
		return pprof.StartCPUProfile(f)
	case o.Profiled != "":
		pprof.StopCPUProfile()
		f, err := os.Create(o.Profiled)
		if err != nil {
			return err
		}
		defer f.Close()
		return pprof.Lookup("allocs").WriteTo(f, 0)
	}
	return nil
}

// running is the process of a proxy. Its directory is its own, and goes with it.
type running struct {
	door
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

func (p proxy) run(upstream string) (*running, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(cmp.Or(p.program, program))
	if cmd.Dir, err = os.MkdirTemp("", "benchmarks"); err != nil {
		return nil, err
	}
	cmd.Env = append(os.Environ(), childProxy+"="+p.ownName(), childUpstream+"="+upstream)
	cmd.Stderr = os.Stderr
	r := &running{cmd: cmd}
	if err := r.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s does not start: %w", p.name, err), os.RemoveAll(cmd.Dir))
	}
	return r, nil
}

func (r *running) start() (err error) {
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	r.out = json.NewDecoder(out)
	if err = r.cmd.Start(); err != nil {
		return err
	}
	if err = r.out.Decode(&r.door); err != nil {
		r.in.Close()
		return errors.Join(err, r.cmd.Wait())
	}
	return nil
}

func (r *running) tell(o order) (footing, error) {
	if err := json.NewEncoder(r.in).Encode(o); err != nil {
		return footing{}, err
	}
	var f footing
	if err := r.out.Decode(&f); err != nil {
		return footing{}, err
	}
	if f.Err != "" {
		return footing{}, errors.New(f.Err)
	}
	return f, nil
}

func (r *running) stop() {
	r.in.Close()
	_ = r.cmd.Wait()
	os.RemoveAll(r.cmd.Dir)
}
