package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// terminal is a real terminal, in which a command runs: tmux, without a user's settings.
type terminal struct{ socket string }

// openTerminal opens a terminal of a size, and runs a command in it.
func openTerminal(t *testing.T, columns, rows int, command ...string) *terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Fatal("there is no tmux: scripts/deps.sh installs it")
	}
	term := &terminal{filepath.Join(t.TempDir(), "tmux")}
	settings := file(t, "tmux.conf", "set -g escape-time 0\nset -g status off\n")
	shell := []string{"sh", "-c", `"$@"; echo "ended with $?"; exec cat`, "sh"} // tmux may lose the last words of a command at whose end it closes the terminal
	term.tmux(t, slices.Concat([]string{"-f", settings, "new-session", "-d", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(rows), "--"}, shell, command)...)
	t.Cleanup(func() { exec.Command("tmux", "-S", term.socket, "kill-server").Run() })
	return term
}

func (term *terminal) tmux(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", term.socket}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// press presses keys, by tmux's names.
func (term *terminal) press(t *testing.T, keys ...string) {
	t.Helper()
	term.tmux(t, append([]string{"send-keys"}, keys...)...)
}

// await waits until the screen matches a pattern, and returns the screen.
func (term *terminal) await(t *testing.T, pattern string) string {
	t.Helper()
	wanted, screen := regexp.MustCompile(pattern), ""
	defer func() {
		if t.Failed() {
			t.Logf("the screen:\n%s", screen)
		}
	}()
	testkit.Eventually(t, "the screen has "+pattern, func() bool {
		screen = term.tmux(t, "capture-pane", "-p")
		return wanted.MatchString(screen)
	})
	return screen
}

// awaitEnd waits until the command has ended, and returns its exit code.
func (term *terminal) awaitEnd(t *testing.T) string {
	t.Helper()
	ended := regexp.MustCompile(`ended with (\d+)`)
	return ended.FindStringSubmatch(term.await(t, ended.String()))[1]
}

// In real terminals of two sizes, top shows who waits, sorts, filters, and pauses after a question.
func TestTopInATerminal(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			p := startProgram(t) // of which no call was denied yet, so that the order of rows is that of their calls
			p.ask(t, "acme/search", "any")
			for range 3 {
				p.ask(t, "zebra", "any")
			}
			term := openTerminal(t, size[0], size[1], p.command.Path, "top", "--admin", p.admin)
			screen := term.await(t, `(?s)passed.*\nmodel .*\nm .*rpm \d+ / 100.*\nzebra .*\nacme/search .*q quit`)
			for _, line := range strings.Split(screen, "\n") {
				if utf8.RuneCountInString(line) > size[0] {
					t.Errorf("%d columns: %s", utf8.RuneCountInString(line), line)
				}
			}
			if size[0] == 200 && (!strings.Contains(screen, "15 minutes") || !strings.Contains(screen, "dollars")) {
				t.Errorf("a wide terminal has room for more:\n%s", screen)
			}
			p.ask(t, "zebra", "any")
			term.await(t, `m .*rpm 5 / 100`) // live
			term.press(t, "/", "z", "e", "b")
			term.await(t, `(?s)filter: zeb.*\nzebra`)
			term.press(t, "Enter", "Tab", "p")
			term.await(t, `Pause project zebra\?`)
			term.press(t, "n")
			term.await(t, `nothing was changed`)
			term.press(t, "p")
			term.await(t, `Pause project zebra\?`)
			term.press(t, "y")
			term.await(t, `(?s)zebra +\S+ .*PAUSED.*project zebra is paused`)
			if status := p.ask(t, "zebra", "any"); status != 429 {
				t.Errorf("a call of a paused project: %d", status)
			}
			term.press(t, "p")
			term.await(t, `Resume project zebra\?`)
			term.press(t, "y")
			term.await(t, `project zebra is resumed`)
			term.press(t, "Escape")
			term.await(t, `(?s)\nacme/search`)
			term.press(t, "Enter")
			term.await(t, `limit +used +of`)
			term.press(t, "q")
			if code := term.awaitEnd(t); code != "0" {
				t.Errorf("code %s", code)
			}
		})
	}
	t.Run("the gateway goes", func(t *testing.T) {
		p := startProgram(t)
		term := openTerminal(t, 80, 24, p.command.Path, "top", "--admin", p.admin)
		term.await(t, `q quit`)
		p.command.Process.Kill()
		p.command.Wait()
		term.await(t, `THE GATEWAY DOES NOT ANSWER`)
		term.press(t, "C-c")
		if code := term.awaitEnd(t); code != "0" {
			t.Errorf("code %s", code)
		}
	})
}

// In a terminal, a change is shown and asked for; status fits; colours are there, and not with NO_COLOR.
func TestChangesInATerminal(t *testing.T) {
	p := startProgram(t)
	for range 5 {
		p.ask(t, "a-project-with-a-rather-long-name/and-another-one-inside-of-it/deeper", "any")
	}
	ask := []string{p.command.Path, "project", "set", "default", "requests_per_minute=3", "--admin", p.admin}
	p.ask(t, "default", "any")
	term := openTerminal(t, 80, 24, ask...)
	term.await(t, `(?s)requests_per_minute +none +→ +3.*Change this\? \[y/N\]`)
	term.press(t, "n", "Enter")
	term.await(t, `nothing was changed`)
	if code := term.awaitEnd(t); code != "1" {
		t.Errorf("code %s", code)
	}
	term = openTerminal(t, 80, 24, ask...)
	term.await(t, `Change this\?`)
	term.press(t, "y", "Enter")
	term.await(t, `project default is changed`)
	if code := term.awaitEnd(t); code != "0" {
		t.Errorf("code %s", code)
	}

	status := []string{p.command.Path, "status", "--admin", p.admin}
	term = openTerminal(t, 80, 24, status...)
	term.awaitEnd(t)
	screen := term.await(t, `closest limit`)
	if !regexp.MustCompile(`(?m)^default +requests_per_minute 0 / 3 +0%$`).MatchString(screen) || !strings.Contains(screen, "…") {
		t.Errorf("status:\n%s", screen)
	}
	if coloured := term.tmux(t, "capture-pane", "-p", "-e"); !strings.Contains(coloured, "\x1b[1m") {
		t.Errorf("there are no styles: %q", coloured)
	}
	term = openTerminal(t, 80, 24, append([]string{"env", "TERM=dumb"}, status...)...)
	term.awaitEnd(t)
	if coloured := term.tmux(t, "capture-pane", "-p", "-e"); strings.Contains(coloured, "\x1b[1m") {
		t.Errorf("a dumb terminal gets styles: %q", coloured)
	}
	run(t, "model", "pause", "m", "--admin", p.admin)
	for _, env := range []string{"NO_COLOR=", "NO_COLOR=1"} {
		term = openTerminal(t, 80, 24, append([]string{"env", env}, status...)...)
		term.awaitEnd(t)
		term.await(t, `paused by an operator`)
		if coloured := term.tmux(t, "capture-pane", "-p", "-e"); strings.Contains(coloured, "\x1b[31m") != (env == "NO_COLOR=") {
			t.Errorf("%s: %q", env, coloured)
		}
	}
}
