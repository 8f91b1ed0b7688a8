package sqlitestore

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// children are what this program does as another process of a test, with the store in a file, when
// its parent says so.
var children = map[string]func(s *Store, input string) error{
	"admit":   admit,
	"hammer":  hammer,
	"stepped": admitStepped,
}

const asChild = "SQLITESTORE_CHILD"

func TestMain(m *testing.M) {
	name := os.Getenv(asChild)
	if name == "" {
		goleak.VerifyTestMain(m) // a closed store leaves no goroutine
		return
	}
	if err := child(name, os.Args[1]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func child(name, path string) error {
	s := newStore(path)
	s.busyTimeout = time.Minute // a busy machine may keep a process that has the lock from running
	if err := s.open(); err != nil {
		return err
	}
	defer s.Close()
	fmt.Println("ready")
	input, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil {
		return err
	}
	return children[name](s, input)
}

// process is a child process.
type process struct {
	*exec.Cmd
	input  io.WriteCloser
	output *bufio.Reader
}

// start returns a child that is ready to begin.
func start(t testing.TB, name, path string) *process {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.Command(program, path)}
	p.Env = append(os.Environ(), asChild+"="+name)
	p.Stderr = os.Stderr
	if p.input, err = p.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	output, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.output = bufio.NewReader(output)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Process.Kill()
		p.Wait()
	})
	if said := p.line(t); said != "ready\n" {
		t.Fatal(said)
	}
	return p
}

func (p *process) begin(input string) { fmt.Fprintln(p.input, input) }

func (p *process) line(t testing.TB) string {
	t.Helper()
	line, err := p.output.ReadString('\n')
	if err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	return line
}

// count returns how many lines the child prints, until there are as many as most or it ends.
func (p *process) count(most int) (n int64) {
	for n < int64(most) {
		if _, err := p.output.ReadString('\n'); err != nil {
			break
		}
		n++
	}
	return n
}
