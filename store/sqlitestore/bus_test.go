//go:build unix

package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/bus"
	"dappco.re/go/core/go-ratelimit/internal/bus/bustest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

func TestBus(t *testing.T) {
	bustest.Run(t, func(t *testing.T) bustest.Connect {
		path := filepath.Join(t.TempDir(), "limits.db")
		return func() bustest.Node { return inside(openAt(t, path)) }
	})
}

func BenchmarkBus(b *testing.B) {
	path := filepath.Join(b.TempDir(), "limits.db")
	bustest.Benchmark(b, func() bustest.Node { return inside(openAt(b, path)) })
}

// shortDir returns a directory whose path leaves room for sockets.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "bus")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// wantSockets compares the number of sockets in a directory; -1: there is no directory.
func wantSockets(t *testing.T, when, dir string, want int) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	got := len(entries)
	if errors.Is(err, fs.ErrNotExist) {
		got = -1
	}
	if got != want {
		t.Errorf("%s: %d sockets in %s; want %d", when, got, dir, want)
	}
}

// The directory of the sockets is there only while somebody subscribes, for this user alone.
func TestSockets(t *testing.T) {
	long := filepath.Join(shortDir(t), strings.Repeat("long", 25))
	for name, test := range map[string]struct {
		folder string
		beside bool // the sockets are beside the file
	}{
		"beside the file":               {shortDir(t), true},
		"elsewhere for a path too long": {long, false},
	} {
		t.Run(name, func(t *testing.T) {
			temporary := shortDir(t)
			t.Setenv("TMPDIR", temporary)
			path := filepath.Join(test.folder, "limits.db")
			a, b, c := openAt(t, path), openAt(t, path), openAt(t, path)
			bustest.Publish(t, inside(a), "nobody is there")
			wantSockets(t, "before", path+".peers", -1)
			wantSockets(t, "before", temporary, 0)
			received := bustest.Subscribe(t, inside(b))
			unsubscribe, err := inside(c).Subscribe(func([]byte) {})
			if err != nil {
				t.Fatal(err)
			}
			dir := path + ".peers"
			if !test.beside {
				wantSockets(t, "directories", temporary, 1)
				if dir, err = a.socketsDir(); err != nil || filepath.Dir(dir) != temporary {
					t.Fatalf("sockets are in %s, %v; want %s", dir, err, temporary)
				}
			}
			wantSockets(t, "two subscriptions", dir, 2)
			if info, err := os.Stat(dir); err != nil || info.Mode() != fs.ModeDir|0o700 {
				t.Errorf("the directory: %v, %v", info, err)
			}
			bustest.Publish(t, inside(a), "x")
			bustest.Want(t, received, "x")
			if open := len(a.messenger.peers.open); open != 2 {
				t.Errorf("%d connections to two sockets", open)
			}
			unsubscribe()
			wantSockets(t, "one subscription", dir, 1)
			b.Close()
			wantSockets(t, "none", dir, -1)
			bustest.Publish(t, inside(a), "nobody is there")
			wantSockets(t, "after", dir, -1)
			if open := len(a.messenger.peers.open); open != 0 {
				t.Errorf("%d connections to sockets that are gone", open)
			}
		})
	}
}

// A closed store has closed its connections.
func TestConnectionsClosed(t *testing.T) {
	path := filepath.Join(shortDir(t), "limits.db")
	a, b := openAt(t, path), openAt(t, path)
	received := bustest.Subscribe(t, inside(b))
	bustest.Publish(t, inside(a), "x")
	bustest.Want(t, received, "x")
	a.Close()
	if open := len(a.messenger.peers.open); open != 0 {
		t.Errorf("%d connections of a closed store", open)
	}
}

// Stores that open one file by different names, or from another working directory, meet.
func TestBusOfOneFile(t *testing.T) {
	dir := shortDir(t)
	t.Chdir(dir)
	a := openAt(t, "limits.db")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "limits.db"), link); err != nil {
		t.Fatal(err)
	}
	b := openAt(t, link)
	t.Chdir("/")
	received := bustest.Subscribe(t, inside(b))
	bustest.Publish(t, inside(a), "x")
	bustest.Want(t, received, "x")
}

// Where no directory of this user alone can be, there are no messages, and nothing is touched.
func TestBusUnsupported(t *testing.T) {
	for name, place := range map[string]func(dir string) error{
		"a file":               func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
		"a link":               func(dir string) error { return os.Symlink(shortDir(t), dir) },
		"open to others":       func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o755)) },
		"that of another user": func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, 65534, -1)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := openAt(t, filepath.Join(shortDir(t), "limits.db"))
			if err := place(s.path + ".peers"); err != nil {
				t.Skip(err) // only the superuser gives directories away
			}
			if _, err := inside(s).Subscribe(func([]byte) {}); !errors.Is(err, errors.ErrUnsupported) || !strings.HasPrefix(err.Error(), "ratelimit: "+s.path) {
				t.Errorf("subscribe: %v", err)
			}
			if err := inside(s).Publish(t.Context(), []byte("x")); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("publish: %v", err)
			}
			s.Close()
			if _, err := os.Lstat(s.path + ".peers"); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("a path too long", func(t *testing.T) {
		long := filepath.Join(shortDir(t), strings.Repeat("long", 25))
		t.Setenv("TMPDIR", long)
		s := openAt(t, filepath.Join(long, "limits.db"))
		if _, err := inside(s).Subscribe(func([]byte) {}); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("subscribe: %v", err)
		}
	})
}

// A datagram that is larger than a message is dropped.
func TestLargeDatagram(t *testing.T) {
	path := filepath.Join(shortDir(t), "limits.db")
	a, b := openAt(t, path), openAt(t, path)
	received := bustest.Subscribe(t, inside(b))
	sockets, err := filepath.Glob(path + ".peers/*")
	if err != nil || len(sockets) != 1 {
		t.Fatal(sockets, err)
	}
	conn, err := net.Dial("unixgram", sockets[0])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(make([]byte, bus.MaxMessage+1)); err != nil {
		t.Fatal(err)
	}
	bustest.Publish(t, inside(a), "x")
	bustest.Want(t, received, "x")
}

func init() {
	children["echo"] = echo
}

// echo answers messages that are no echoes, until one tells it to end.
func echo(s *Store, _ string) error {
	ended := make(chan error, 1)
	_, err := inside(s).Subscribe(func(message []byte) {
		switch {
		case string(message) == "end":
			ended <- nil
		case !strings.HasPrefix(string(message), "echo"):
			inside(s).Publish(context.Background(), fmt.Append(nil, "echo of ", len(message)))
		}
	})
	if err != nil {
		return err
	}
	fmt.Println("subscribed")
	return <-ended
}

func startEcho(t *testing.T, path string) *process {
	t.Helper()
	p := start(t, "echo", path)
	p.begin("")
	if said := p.line(t); said != "subscribed\n" {
		t.Fatal(said)
	}
	return p
}

// Processes send each other messages. The socket of one that is killed is removed by the next that
// publishes.
func TestBusOfProcesses(t *testing.T) {
	path := filepath.Join(shortDir(t), "limits.db")
	s := openAt(t, path)
	received := bustest.Subscribe(t, inside(s))
	killed := startEcho(t, path)
	wantSockets(t, "two processes", path+".peers", 2)
	bustest.Publish(t, inside(s), "x")
	bustest.Want(t, received, "echo of 1")
	killed.Process.Kill()
	killed.Wait()
	other := startEcho(t, path)
	wantSockets(t, "one of three was killed", path+".peers", 3)
	bustest.Publish(t, inside(s), "xx")
	bustest.Want(t, received, "echo of 2")
	wantSockets(t, "published since", path+".peers", 2)
	bustest.Publish(t, inside(s), "end")
	if err := other.Wait(); err != nil {
		t.Error(err)
	}
	wantSockets(t, "one has ended", path+".peers", 1)
}

// A process that is stopped holds up neither the publisher nor other subscribers, whatever the size
// of messages, and receives again when it goes on.
func TestStoppedProcess(t *testing.T) {
	path := filepath.Join(shortDir(t), "limits.db")
	a, b := openAt(t, path), openAt(t, path)
	echoes := bustest.Subscribe(t, inside(a))
	received := bustest.Subscribe(t, inside(b))
	p := startEcho(t, path)
	if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if _, err := syscall.Wait4(p.Process.Pid, nil, syscall.WUNTRACED, nil); err != nil { // until it is stopped
		t.Fatal(err)
	}
	large := strings.Repeat("x", bus.MaxMessage)
	for range 100 {
		bustest.Publish(t, inside(a), large)
		bustest.Want(t, received, large)
	}
	if err := p.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "an echo of the process that goes on", func() bool {
		bustest.Publish(t, inside(a), "x")
		for len(echoes) > 0 {
			if <-echoes == "echo of 1" {
				return true
			}
		}
		return false
	})
	bustest.Publish(t, inside(a), "end")
}
