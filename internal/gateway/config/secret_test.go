package config_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
)

func TestSecretsAreNotSeen(t *testing.T) {
	type holder struct {
		Key  config.Secret
		Keys []config.Secret
		By   map[string]*config.Secret
	}
	s := config.NewSecret("hunter2")
	h := holder{s, []config.Secret{s}, map[string]*config.Secret{"a": &s}}
	var seen strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10.3s", "%t"} {
		fmt.Fprintf(&seen, verb+"\n", s)
		fmt.Fprintf(&seen, verb+"\n", h)
		fmt.Fprintf(&seen, verb+"\n", &h)
	}
	fmt.Fprintln(&seen, s, h, fmt.Errorf("%w: %v", os.ErrInvalid, s))
	out, err := json.Marshal(map[string]any{"h": h, "p": &s})
	if err != nil {
		t.Fatal(err)
	}
	seen.Write(out)
	for _, handler := range []slog.Handler{slog.NewJSONHandler(&seen, nil), slog.NewTextHandler(&seen, nil)} {
		slog.New(handler).Info("log", "s", s, "p", &s, "h", h, slog.Group("g", "s", s))
	}
	for _, hidden := range []string{"hunter2", "68756e74657232", "68756E74657232", "104 117"} {
		if strings.Contains(seen.String(), hidden) {
			t.Errorf("%q is seen in\n%s", hidden, seen.String())
		}
	}
	if s.Reveal() != "hunter2" || s.String() != "[secret]" || (config.Secret{}).String() != "" {
		t.Errorf("%q, %q, %q", s.Reveal(), s.String(), config.Secret{}.String())
	}
	if text, err := s.MarshalText(); err != nil || string(text) != "[secret]" {
		t.Errorf("%s, %v", text, err)
	}
	if none, err := json.Marshal(config.Secret{}); err != nil || string(none) != `""` {
		t.Errorf("%s, %v", none, err)
	}
}

func TestSecretFiles(t *testing.T) {
	const fine = ""
	for _, c := range []struct {
		text, want, fault string
	}{
		{"hunter2-hunter2-", "hunter2-hunter2-", fine},
		{"hunter2-hunter2-\n", "hunter2-hunter2-", fine},
		{"hunter2-hunter2-\r\n", "hunter2-hunter2-", fine},
		{" hunter2-hunter2 ", " hunter2-hunter2 ", fine},
		{"hunter2\n\n", "", "control characters"},
		{"hunt\x00er2", "", "control characters"},
		{"hunt\xffer2", "", "control characters"},
		{"", "", "the file is empty"},
		{"\r\n", "", "the file is empty"},
		{strings.Repeat("x", 64<<10+1), "", "the file has 65537 bytes"},
	} {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := config.Parse("gateway.yaml", []byte("admin: {token: {file: "+path+"}}"))
		switch {
		case c.fault != fine:
			if err == nil || !strings.Contains(err.Error(), c.fault) || strings.Contains(err.Error(), "hunt") {
				t.Errorf("%.20q: got %v, want %s", c.text, err, c.fault)
			}
		case err != nil || got.Admin.Token.Reveal() != c.want || got.Warnings != nil:
			t.Errorf("%.20q: got %+v, %v", c.text, got, err)
		}
	}
}

func TestSecretFilesThatOthersCanRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	for mode, warns := range map[os.FileMode]bool{0o600: false, 0o640: false, 0o644: true, 0o604: true} {
		if err := os.WriteFile(path, []byte("hunter2-hunter2-\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		c := parsed(t, "admin:\n  token:\n    file: "+path)
		var want []string
		if warns {
			want = []string{"gateway.yaml:3:11: admin.token.file: everybody on this machine can read the file: its mode should be 0600"}
		}
		differ(t, mode.String(), want, c.Warnings)
	}
}
