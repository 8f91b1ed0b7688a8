package redistest

import (
	"errors"
	"net"

	"strings"
	"syscall"
	"testing"
	"time"
)

// expect compares the answer to a command.
func expect(t *testing.T, s *Server, want any, args ...string) {
	t.Helper()
	if got := doOrFail(t, s, args...); got != want {
		t.Fatalf("%v: %v, want %v", args, got, want)
	}
}

// persistent are arguments of a server that persists everything.
var persistent = []string{"--appendonly", "yes", "--appendfsync", "always"}

func TestKilledServerForgets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
		want any
	}{
		{"in memory", nil, nil},
		{"on disk", persistent, "value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := New(t, c.args...)
			addr := s.Addr
			doOrFail(t, s, "SET", "key", "value")
			s.Kill()
			s.Kill()
			if conn, err := net.Dial("tcp", s.Addr); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Fatal(conn, err)
			}
			if _, err := s.Do("PING"); err == nil {
				t.Fatal("a killed server answers")
			}
			if err := s.Restart(); err != nil {
				t.Fatal(err)
			}
			expect(t, s, c.want, "GET", "key")
			if s.Addr != addr {
				t.Fatal(s.Addr, addr)
			}
		})
	}
}

// A restarted server has loaded its data, however long that takes.
func TestRestartWaitsForTheData(t *testing.T) {
	t.Parallel()
	s := New(t, "--rdbcompression", "no", "--loading-process-events-interval-bytes", "1024", "--key-load-delay", "1000")
	doOrFail(t, s, "EVAL", "for i = 1, 100 do redis.call('SET', 'key' .. i, string.rep('x', 1024)) end", "0")
	doOrFail(t, s, "SAVE")
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	expect(t, s, int64(100), "DBSIZE")
}

func TestPausedServerIsSilent(t *testing.T) {
	t.Parallel()
	s := New(t)
	c := connect(t, s.Addr)
	c.expect("+PONG\r\n", "PING")
	s.Pause()
	c.send("PING")
	c.silent()
	s.Resume()
	c.read("+PONG\r\n")
}

func TestRestartWaitsForThePort(t *testing.T) {
	t.Parallel()
	s := New(t)
	s.Kill()
	l, err := net.Listen("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	err = s.run()
	s.mu.Unlock()
	if !errors.Is(err, errInUse) {
		t.Fatal(err)
	}
	free := time.AfterFunc(20*time.Millisecond, func() { l.Close() })
	defer free.Stop()
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	expect(t, s, "PONG", "PING")
}

func TestStartSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		options Options
		want    string
	}{
		{"an argument", Options{Args: []string{"--maxmemory", "plenty"}}, "maxmemory"},
		{"a directory", Options{Dir: "/nowhere"}, "/nowhere"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Start(c.options)
			if err == nil {
				s.Close()
				t.Fatal("it started")
			}
			if got := err.Error(); !strings.HasPrefix(got, "ratelimit: ") || !strings.Contains(got, c.want) {
				t.Fatal(got)
			}
		})
	}
}

func TestNotInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := Start(Options{}); err == nil || !strings.Contains(err.Error(), "make deps") {
		t.Fatal(err)
	}
}
