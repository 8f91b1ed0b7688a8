//go:build unix

package sqlitestore

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func init() {
	children["open"] = func(*Store, string) error { return nil }
	children["locked"] = lockedByOthers
}

// Open finds a file that cannot be written to.
func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name         string
		folder, file fs.FileMode
		want         string
	}{
		{"both can be written to", 0o777, 0o666, ""},
		{"the file is read-only", 0o777, 0o444, reasonUnwritable},
		{"the file is not readable", 0o777, 0, reasonUnwritable},
		{"the folder is read-only", 0o555, 0o666, reasonUnwritable},
		{"both are read-only", 0o555, 0o444, reasonUnwritable},
		{"there is no file, and the folder is read-only", 0o555, absent, "permission denied"},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := filepath.Join(dir, test.name)
			path := filepath.Join(folder, "limits.db")
			if test.file == absent {
				os.Mkdir(folder, 0o700)
			} else {
				s := openAt(t, path)
				take(t, s, charge("key", 1, perDay(10)))
				s.Close()
				os.Chmod(path, test.file)
			}
			if err := os.Chmod(folder, test.folder); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.Chmod(folder, 0o700) })
			got := openAsAnother(t, path)
			if test.want == "" && got == "ready" {
				return
			}
			if !strings.HasPrefix(got, "ratelimit: "+path) || !strings.Contains(got, test.want) {
				t.Errorf("%q; want %q", got, test.want)
			}
		})
	}
}

const absent = fs.FileMode(1 << 20)

// openAsAnother returns the output of a process that opens a file as a user without the permission
// to write everywhere, which the user who runs tests may have.
func openAsAnother(t *testing.T, path string) string {
	t.Helper()
	program := "/proc/self/exe" // another user may start it, wherever it is
	if os.Geteuid() != 0 {
		program = os.Args[0]
	}
	cmd := exec.Command(program, path)
	cmd.Env = append(os.Environ(), asChild+"=open")
	cmd.Stdin = strings.NewReader("\n")
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	output, err := cmd.CombinedOutput()
	if _, failed := err.(*exec.ExitError); err != nil && !failed {
		t.Skip(err)
	}
	return strings.TrimSpace(string(output))
}

// Opening a file again must not drop the locks that a store of this process has on it, as closing a
// file does.
func TestOpenAgainKeepsLocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.db")
	s := openAt(t, path)
	openAt(t, path).Close()
	if !locked(t, path) {
		t.Error("the locks of a store are gone")
	}
	s.Close()
	if locked(t, path) {
		t.Error("it is locked, and nobody has it open")
	}
}

func locked(t *testing.T, path string) bool {
	p := start(t, "locked", path)
	p.begin("")
	return p.line(t) == "true\n"
}

// lockedByOthers reports whether another process holds the lock that SQLite holds as long as it has
// a file open.
func lockedByOthers(s *Store, _ string) error {
	file, err := os.OpenFile(s.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	shared := syscall.Flock_t{Type: syscall.F_WRLCK, Start: 1<<30 + 2, Len: 510}
	if err := syscall.FcntlFlock(file.Fd(), syscall.F_GETLK, &shared); err != nil {
		return err
	}
	fmt.Println(shared.Type != syscall.F_UNLCK)
	return nil
}
