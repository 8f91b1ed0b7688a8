package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// block is a block of code in docs/getting-started.md.
type block struct{ kind, text string }

// Every command of docs/getting-started.md works as it is written, one after another, except that
// the ports are free ones. The blocks of text show lines of what the commands before them print.
func TestGettingStarted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are for a POSIX shell")
	}
	s := newSession(t)
	printed := ""
	for _, b := range gettingStarted(t) {
		switch {
		case b.kind == "yaml":
			if err := os.WriteFile(filepath.Join(s.folder, "gateway.yaml"), []byte(s.adapt.Replace(b.text)), 0o600); err != nil {
				t.Fatal(err)
			}
		case b.kind == "text":
			if !shownIn(printed, b.text) {
				t.Errorf("this is not printed:\n%s\nbut:\n%s", b.text, printed)
			}
		case strings.HasPrefix(b.text, "# terminal "):
			s.start(t, b.text)
		default:
			printed = s.run(t, b.text)
		}
	}
}

// session is the terminals in which the commands run.
type session struct {
	folder      string
	environment []string
	adapt       *strings.Replacer // what the test changes of the commands
	assigned    string            // variables that later commands use
	terminals   map[string]*exec.Cmd
}

func newSession(t *testing.T) *session {
	source, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	provider, gateway, admin := testkit.NewPort(t).Addr, testkit.NewPort(t).Addr, testkit.NewPort(t).Addr
	s := &session{folder: t.TempDir(), terminals: map[string]*exec.Cmd{}}
	s.adapt = strings.NewReplacer(
		"go build -v -o ratelimit ./cmd/ratelimit", `(cd "$SOURCE" && CGO_ENABLED=0 go build -v -trimpath -o "$FOLDER/ratelimit" ./cmd/ratelimit)`,
		"./ratelimit mock", "exec ./ratelimit mock --listen "+provider,
		"./ratelimit serve", "exec ./ratelimit serve --listen "+gateway+" --admin "+admin,
		"127.0.0.1:8090", provider, "127.0.0.1:8080", gateway)
	s.environment = append(os.Environ(), "SOURCE="+source, "FOLDER="+s.folder, "RATELIMIT_ADMIN=http://"+admin)
	t.Cleanup(func() {
		for _, c := range s.terminals {
			c.Process.Kill()
			c.Wait()
		}
	})
	return s
}

func (s *session) command(commands string) *exec.Cmd {
	c := exec.Command("sh", "-ec", s.adapt.Replace(commands))
	c.Dir, c.Env = s.folder, s.environment
	return c
}

func (s *session) run(t *testing.T, commands string) string {
	t.Helper()
	out, err := s.command(s.assigned + commands).CombinedOutput()
	if err != nil {
		t.Fatalf("%s\n%v\n%s", commands, err, out)
	}
	for _, assigned := range regexp.MustCompile(`(?m)^call='.*'$`).FindAllString(commands, -1) {
		s.assigned += assigned + "\n"
	}
	return string(out)
}

// start runs commands in a terminal of their own, until the program in it serves. What runs there
// ends before.
func (s *session) start(t *testing.T, commands string) {
	t.Helper()
	name, commands, _ := strings.Cut(commands, "\n")
	if old := s.terminals[name]; old != nil {
		old.Process.Kill()
		old.Wait()
	}
	log := new(testkit.Log)
	c := s.command(commands)
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	s.terminals[name] = c
	log.Await(t, `at http://|serves http://`)
}

// gettingStarted returns the blocks of the document.
func gettingStarted(t *testing.T) (blocks []block) {
	t.Helper()
	text, err := os.ReadFile("../../docs/getting-started.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile("(?s)```(sh|yaml|text)\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, block{found[1], found[2]})
	}
	if len(blocks) < 12 {
		t.Fatalf("only %d blocks were found", len(blocks))
	}
	return blocks
}

// shownIn reports whether a text is printed. An ellipsis stands for anything, and so does the number
// of seconds in Retry-After; how wide a gap is does not matter.
func shownIn(printed, text string) bool {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(text), "…", `[\s\S]*`)
	pattern = regexp.MustCompile(`Retry-After: \d+`).ReplaceAllString(pattern, `Retry-After: \d+`)
	return regexp.MustCompile(strings.Join(strings.Fields(pattern), `\s+`)).MatchString(printed)
}
