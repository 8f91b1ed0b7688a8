package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "write the golden files anew")

// outcome is the result of a command line.
type outcome struct {
	code           int
	stdout, stderr string
}

// run runs a command line.
func run(t *testing.T, args ...string) outcome {
	t.Helper()
	return runIn(t.Context(), args...)
}

func runIn(ctx context.Context, args ...string) outcome {
	var stdout, stderr bytes.Buffer
	code := Main(ctx, args, strings.NewReader(""), &stdout, &stderr)
	return outcome{code, stdout.String(), stderr.String()}
}

// The help of every command is as in its golden file.
func TestHelp(t *testing.T) {
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		path := c.CommandPath()
		args := append(strings.Fields(path)[1:], "--help")
		file := filepath.Join("testdata", "help", strings.ReplaceAll(path, " ", "-")+".txt")
		t.Run(path, func(t *testing.T) {
			got := run(t, args...)
			if got.code != exitFine || got.stderr != "" {
				t.Errorf("code %d, stderr %q", got.code, got.stderr)
			}
			if *update {
				if err := os.WriteFile(file, []byte(got.stdout), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v (make it with -update)", err)
			}
			if diff := cmp.Diff(string(want), got.stdout); diff != "" {
				t.Errorf("the help has changed (-want +got); see it, and run the test with -update:\n%s", diff)
			}
		})
		for _, below := range c.Commands() {
			visit(below)
		}
	}
	visit(newRoot())
}

// Every command has a description and an example.
func TestCommandsAreDescribed(t *testing.T) {
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		if c.Short == "" || c.Example == "" || c.Args == nil {
			t.Errorf("%s lacks its description, its example, or its arguments", c.CommandPath())
		}
		for _, below := range c.Commands() {
			visit(below)
		}
	}
	visit(newRoot())
}

// A wrong command line gets an error that says where to read on, and nothing else.
func TestWrongUsage(t *testing.T) {
	for _, c := range []struct {
		args string
		want string
	}{
		{"srve", "ratelimit: ratelimit has no command \"srve\": did you mean serve?\nSee `ratelimit --help`.\n"},
		{"nonsense", "ratelimit: ratelimit has no command \"nonsense\"\nSee `ratelimit --help`.\n"},
		{"status --wach", "ratelimit: unknown flag: --wach: did you mean --watch?\nSee `ratelimit status --help`.\n"},
		{"project set acme --tokens-per-minute 5", "ratelimit: unknown flag: --tokens-per-minute: a field is written without dashes, as in tokens_per_minute=100\nSee `ratelimit project set --help`.\n"},
		{"--nonsense", "ratelimit: unknown flag: --nonsense\nSee `ratelimit --help`.\n"},
		{"serve extra", "ratelimit: ratelimit serve does not know what to do with \"extra\"\nSee `ratelimit serve --help`.\n"},
		{"serve --config", "ratelimit: flag needs an argument: --config\nSee `ratelimit serve --help`.\n"},
		{"check", "ratelimit: ratelimit check needs FILE, or --example\nSee `ratelimit check --help`.\n"},
		{"check a b", "ratelimit: ratelimit check does not know what to do with \"b\"\nSee `ratelimit check --help`.\n"},
		{"key create", "ratelimit: ratelimit key create needs PROJECT\nSee `ratelimit key create --help`.\n"},
		{"key revok x", "ratelimit: ratelimit key has no command \"revok\": did you mean revoke?\nSee `ratelimit key --help`.\n"},
		{"key create p --expires -1s", "ratelimit: invalid argument \"-1s\" for \"--expires\" flag: it must be 0 or more, such as 90m, 12h or 30d\nSee `ratelimit key create --help`.\n"},
		{"key rotate id --grace -1s", "ratelimit: invalid argument \"-1s\" for \"--grace\" flag: it must be 0 or more, such as 90m, 12h or 30d\nSee `ratelimit key rotate --help`.\n"},
		{"demo --for 0s", "ratelimit: --for is 0s: it must be more than 0\nSee `ratelimit demo --help`.\n"},
		{"status --admin ftp://x", "ratelimit: the address of the admin API must be one such as http://127.0.0.1:8081\nSee `ratelimit status --help`.\n"},
		{"check --example x", "ratelimit: ratelimit check --example does not know what to do with \"x\"\nSee `ratelimit check --help`.\n"},
		{"completion tcsh", "ratelimit: ratelimit completion has no command \"tcsh\": did you mean bash or fish or zsh?\nSee `ratelimit completion --help`.\n"},
		{"completion bash x", "ratelimit: ratelimit completion bash does not know what to do with \"x\"\nSee `ratelimit completion bash --help`.\n"},
		{"serve --config=", "ratelimit: --config is empty: it must have a value, or be left out\nSee `ratelimit serve --help`.\n"},
		{"serve --state=", "ratelimit: --state is empty: it must have a value, or be left out\nSee `ratelimit serve --help`.\n"},
		{"demo --listen=", "ratelimit: --listen is empty: it must have a value, or be left out\nSee `ratelimit demo --help`.\n"},
		{"demo --listen here", "ratelimit: --listen: \"here\": it must be a host and a port, such as 127.0.0.1:8080, or :8080 for all interfaces\nSee `ratelimit demo --help`.\n"},
		{"migrate a b c", "ratelimit: ratelimit migrate does not know what to do with \"c\"\nSee `ratelimit migrate --help`.\n"},
	} {
		got := run(t, strings.Fields(c.args)...)
		if diff := cmp.Diff(outcome{exitUsage, "", c.want}, got, cmp.AllowUnexported(outcome{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.args, diff)
		}
	}
}

// An empty argument, as of a variable that is not set, is refused.
func TestEmptyArgument(t *testing.T) {
	for _, args := range [][]string{{"check", ""}, {"migrate", ""}, {"key", "revoke", ""}} {
		if got := run(t, args...); got.code != exitUsage || !strings.Contains(got.stderr, "is empty") || got.stdout != "" {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

// Without a command, the program prints its help.
func TestNoCommand(t *testing.T) {
	for _, args := range [][]string{{}, {"key"}, {"completion"}} {
		if got := run(t, args...); got.code != exitFine || !strings.Contains(got.stdout, "Usage:") {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

func TestVersion(t *testing.T) {
	for _, how := range []string{"version", "--version"} {
		if got := run(t, how); got != (outcome{exitFine, thisBuild().String() + "\n", ""}) || !strings.HasPrefix(got.stdout, "ratelimit ") {
			t.Errorf("%s: %+v", how, got)
		}
	}
	var b build
	if err := json.Unmarshal([]byte(run(t, "version", "--json").stdout), &b); err != nil || b != thisBuild() {
		t.Errorf("%+v, %v", b, err)
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := run(t, "completion", shell); got.code != exitFine || !strings.Contains(got.stdout, "ratelimit") {
			t.Errorf("%s: code %d, %s", shell, got.code, got.stderr)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"__complete st", "status\tShow"},
		{"__complete check x", "yaml\nyml\n:8"},
		{"__complete check x y", ":4"},
		{"__complete key ro", "rotate\t"},
	} {
		if got := run(t, strings.Fields(c.args)...); !strings.Contains(got.stdout, c.want) {
			t.Errorf("%s: %q has no %q", c.args, got.stdout, c.want)
		}
	}
}
