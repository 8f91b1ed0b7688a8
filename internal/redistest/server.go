package redistest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

const (
	host = "127.0.0.1"

	// timeout is how long a server may take to start, and servers to agree.
	timeout      = 30 * time.Second
	pollInterval = 2 * time.Millisecond // between two checks
)

var errInUse = errors.New("ratelimit: another program listens on the port")

// Options configure a server. The zero Options are right for most tests.
type Options struct {
	// Args are added to the arguments of redis-server, and override them: by default nothing is
	// persisted.
	Args []string

	// Dir is the working directory of the server, with its output (redis.log). Default: a temporary
	// directory, which Close removes.
	Dir string

	config  string // the configuration file, or empty
	cluster bool
	tls     bool
}

// Server is a redis-server. Its methods may be called in any order, and concurrently.
type Server struct {
	Addr string // host:port

	program string
	options Options
	home    string // a directory with a short name, as the path of a socket requires
	port    *testkit.Port
	bus     *testkit.Port // for the bus of a cluster

	mu      sync.Mutex
	process *process // the last one
	closed  bool
}

// Start returns a running server on a free port.
func Start(o Options) (*Server, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("ratelimit: redis-server is not installed, make deps does that: %w", err)
	}
	home, err := os.MkdirTemp("", "redis")
	if err != nil {
		return nil, fmt.Errorf("ratelimit: no directory for redis-server: %w", err)
	}
	o.Args = slices.Clone(o.Args)
	if o.Dir == "" {
		o.Dir = home
	}
	s := &Server{program: program, options: o, home: home}
	if err := s.claimPorts(); err != nil {
		s.Close()
		return nil, err
	}
	if err := s.run(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Server) claimPorts() (err error) {
	s.port, err = testkit.ClaimPort()
	if err != nil {
		return err
	}
	s.Addr = s.port.Addr
	if s.options.cluster {
		s.bus, err = testkit.ClaimPort()
	}
	return err
}

// URL returns the address for clients.
func (s *Server) URL() string { return s.url(nil) }

// PatientURL returns the address for clients that wait for an answer longer than a busy machine takes.
func (s *Server) PatientURL() string { return s.URL() + "?timeout=10s" }

// LoginURL returns the address for a user of the server's arguments, such as "--user", "alice",
// "on", ">secret", "~*", "+@all".
func (s *Server) LoginURL(user, password string) string {
	return s.url(url.UserPassword(user, password))
}

func (s *Server) url(user *url.Userinfo) string {
	u := url.URL{Scheme: "redis", Host: s.Addr, User: user}
	if s.options.tls {
		u.Scheme = "rediss"
	}
	return u.String()
}

// Do runs a command on the server through its Unix socket, so that proxies, TLS and faults of
// clients do not matter. The answer is nil, an int64, a string or a []any of these.
func (s *Server) Do(args ...string) (any, error) { return do(s.socket(), args...) }

// Pause stops the process. Its connections stay.
func (s *Server) Pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		s.process.pause()
	}
}

// Resume continues a paused server.
func (s *Server) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		s.process.resume()
	}
}

// Kill ends the server at once (kill -9).
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kill()
}

func (s *Server) kill() {
	if s.process != nil {
		s.process.kill()
	}
}

// Restart starts the server again, after killing it if it runs: on the same port, in the same
// directory, with the same arguments. It returns once the server answers and has loaded its data.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.New("ratelimit: the server is closed")
	}
	s.kill()
	end := time.Now().Add(timeout)
	for {
		err := s.run()
		if !errors.Is(err, errInUse) || time.Now().After(end) {
			return err
		}
		time.Sleep(pollInterval)
	}
}

// Close kills the server for good, and removes its temporary directory.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	s.kill()
	os.RemoveAll(s.home)
	for _, p := range []*testkit.Port{s.port, s.bus} {
		if p != nil {
			p.Release()
		}
	}
}

func (s *Server) socket() string { return filepath.Join(s.home, "socket") }

func (s *Server) arguments() []string {
	var args []string
	if s.options.config != "" {
		args = append(args, s.options.config)
	}
	args = append(args, "--bind", host, "--unixsocket", s.socket(), "--dir", s.options.Dir,
		"--save", "", "--appendonly", "no")
	if s.options.tls {
		args = append(args, "--port", "0", "--tls-port", s.port.Number())
	} else {
		args = append(args, "--port", s.port.Number())
	}
	if s.options.cluster {
		args = append(args, "--cluster-enabled", "yes", "--cluster-port", s.bus.Number())
	}
	return append(args, s.options.Args...)
}

// run starts the process, and waits until it answers.
func (s *Server) run() error {
	output, err := os.OpenFile(filepath.Join(s.options.Dir, "redis.log"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("ratelimit: no file for redis-server's output: %w", err)
	}
	defer output.Close()
	before, err := output.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("ratelimit: redis-server's output: %w", err)
	}
	s.process, err = launch(s.program, s.arguments(), output)
	if err != nil {
		return err
	}
	if s.ready() {
		return nil
	}
	s.kill()
	log, err := io.ReadAll(io.NewSectionReader(output, before, 1<<20))
	switch {
	case err != nil:
		return fmt.Errorf("ratelimit: redis-server did not start, and its output cannot be read: %w", err)
	case bytes.Contains(log, []byte("Address already in use")):
		return errInUse
	}
	return fmt.Errorf("ratelimit: redis-server did not start:\n%s", log)
}

// ready waits until the server answers, and reports whether it does. It asks through the socket,
// where no other server can answer, and which opens after the port.
func (s *Server) ready() bool {
	for end := time.Now().Add(timeout); time.Now().Before(end); time.Sleep(pollInterval) {
		if s.process.ended() {
			return false
		}
		_, err := s.Do("PING")
		var refusal Refusal
		if err == nil || errors.As(err, &refusal) && !refusal.is("LOADING") {
			return true
		}
	}
	return false
}
