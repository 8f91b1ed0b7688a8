//go:build unix

package sqlitestore

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/bus"
)

// Processes that share a file send each other messages through Unix datagram sockets. Each
// subscription has a socket in a directory that only this user can open, and a publisher sends to
// all sockets there but its own. The kernel keeps datagrams in order, and does not lose one that it
// has taken while the receiver lives.

// maxSocketPath is the longest path of a socket, on all systems.
const maxSocketPath = 103

// socketName is the length of a socket's name with a dot before it.
const socketName = 1 + idLength + 1 + 8

// socketsDir returns the directory of the sockets: beside the file, or if its path would be too long
// for sockets, in the directory for temporary files.
func (s *Store) socketsDir() (string, error) {
	path, err := filepath.EvalSymlinks(s.messenger.path)
	if err != nil {
		return "", err
	}
	dir := path + ".peers"
	if len(dir)+1+socketName > maxSocketPath {
		dir = filepath.Join(os.TempDir(), fmt.Sprintf("ratelimit-%d-%.8x", os.Geteuid(), sha256.Sum256([]byte(path))))
	}
	return dir, nil
}

// checkOwn returns an error unless only this user can use a directory: another user could otherwise
// send messages.
func checkOwn(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || info.Mode().Perm() != 0o700 || !ok || int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("%s is not a directory of this user alone: %v", dir, info.Mode())
	}
	return nil
}

// inbox is the socket of a subscription.
type inbox struct {
	path string
	conn *net.UnixConn
}

// newInbox opens a socket. It tries again if another process, which closes, has just removed the
// directory.
func (s *Store) newInbox() (in *inbox, err error) {
	dir, err := s.socketsDir()
	if err != nil {
		return nil, err
	}
	name := s.messenger.id + "-" + rand.Text()[:8]
	for range 100 {
		if err = os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			break
		}
		if in, err = openInbox(dir, name); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("no socket for messages: %w: %w", errors.ErrUnsupported, err)
	}
	return in, nil
}

// openInbox opens a socket under a name that publishers do not see, and then renames it: while it is
// being opened it refuses messages, and a publisher would take it for that of a dead process.
func openInbox(dir, name string) (*inbox, error) {
	if err := checkOwn(dir); err != nil {
		return nil, err
	}
	hidden := filepath.Join(dir, "."+name)
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: hidden, Net: "unixgram"})
	if err != nil {
		return nil, err
	}
	in := &inbox{filepath.Join(dir, name), conn}
	if err := os.Rename(hidden, in.path); err != nil {
		os.Remove(hidden)
		in.close()
		return nil, err
	}
	conn.SetReadBuffer(socketBuffer)
	return in, nil
}

// socketBuffer is how many bytes of messages a socket should hold. Some systems have room for less
// than one message by default.
const socketBuffer = 8 * bus.MaxMessage

func (in *inbox) listen(ctx context.Context, deliver func(message []byte)) {
	defer in.close()
	defer context.AfterFunc(ctx, func() { in.conn.SetReadDeadline(time.Unix(1, 0)) })()
	buffer := make([]byte, bus.MaxMessage+1)
	for {
		n, err := in.conn.Read(buffer)
		if err != nil {
			return
		}
		if n <= bus.MaxMessage {
			deliver(bytes.Clone(buffer[:n]))
		}
	}
}

// close removes the socket, and the directory after the last one.
func (in *inbox) close() {
	in.conn.Close()
	os.Remove(in.path)
	os.Remove(filepath.Dir(in.path))
}

// peers are the sockets of others that a store has sent messages to. Each has a connection of its
// own: what a stopped process does not read fills only that one.
type peers struct {
	mu   sync.Mutex
	open map[string]*peer // by the names of the sockets
}

type peer struct {
	conn *net.UnixConn
	full bool // the last message did not get through
}

func (p *peers) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range p.open {
		p.drop(name)
	}
}

func (p *peers) drop(name string) {
	if peer, ok := p.open[name]; ok {
		peer.conn.Close()
		delete(p.open, name)
	}
}

// publish sends a message to the sockets of others. The peers' lock is held.
func (s *Store) publish(message []byte) error {
	dir, err := s.socketsDir()
	if err != nil {
		return err
	}
	sockets, err := socketsIn(dir)
	if err != nil {
		return err
	}
	for name := range s.messenger.peers.open {
		if !sockets[name] {
			s.messenger.peers.drop(name)
		}
	}
	var failed []error
	for name := range sockets {
		if !strings.HasPrefix(name, s.messenger.id) {
			failed = append(failed, s.messenger.peers.send(dir, name, message))
		}
	}
	return errors.Join(failed...)
}

// socketsIn returns the names of the sockets in a directory, which need not exist.
func socketsIn(dir string) (map[string]bool, error) {
	if err := checkOwn(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("no messages between processes: %w: %w", errors.ErrUnsupported, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	sockets := map[string]bool{}
	for _, entry := range entries {
		if entry.Type() == fs.ModeSocket && !strings.HasPrefix(entry.Name(), ".") {
			sockets[entry.Name()] = true
		}
	}
	return sockets, nil
}

// send sends a message to one socket. It removes the socket of a process that has died.
func (p *peers) send(dir, name string, message []byte) error {
	err := p.trySend(dir, name, message)
	switch {
	case err == nil, errors.Is(err, syscall.EAGAIN): // sent, or lost because the process does not read
		return nil
	case errors.Is(err, syscall.ECONNREFUSED):
		os.Remove(filepath.Join(dir, name))
		err = nil
	case errors.Is(err, fs.ErrNotExist): // it has been closed since the directory was read
		err = nil
	}
	p.drop(name)
	return err
}

func (p *peers) trySend(dir, name string, message []byte) error {
	to, ok := p.open[name]
	if !ok {
		conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: filepath.Join(dir, name), Net: "unixgram"})
		if err != nil {
			return err
		}
		conn.SetWriteBuffer(socketBuffer)
		to = &peer{conn: conn}
		if p.open == nil {
			p.open = map[string]*peer{}
		}
		p.open[name] = to
	}
	return to.send(message)
}

// patience is how long a message may wait for a process to read earlier ones: a system may have room
// for ten only, which are sent faster than another process wakes up.
const patience = time.Millisecond

func (p *peer) send(message []byte) error {
	err := p.write(message, false)
	if errors.Is(err, syscall.EAGAIN) && !p.full {
		p.conn.SetWriteDeadline(time.Now().Add(patience))
		err = p.write(message, true)
		p.conn.SetWriteDeadline(time.Time{})
	}
	p.full = errors.Is(err, syscall.EAGAIN)
	return err
}

// write sends a message if there is room for it, or with wait when there is, until the deadline.
func (p *peer) write(message []byte, wait bool) error {
	raw, err := p.conn.SyscallConn()
	if err != nil {
		return err
	}
	err = syscall.EAGAIN
	raw.Write(func(fd uintptr) (done bool) {
		_, err = syscall.Write(int(fd), message)
		return !wait || !errors.Is(err, syscall.EAGAIN)
	})
	return err
}
