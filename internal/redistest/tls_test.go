package redistest

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"testing"

	"github.com/redis/rueidis"
)

var alice = []string{"--user", "alice", "on", ">se/cr@t", "~*", "+@all", "--user", "default", "off"}

// ping returns the error of a client that logs in with a URL.
func ping(t *testing.T, url string, config *tls.Config) error {
	t.Helper()
	option, err := rueidis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	if config != nil {
		config = config.Clone()
		config.ServerName = option.TLSConfig.ServerName
		option.TLSConfig = config
	}
	client, err := rueidis.NewClient(option)
	if err != nil {
		return err
	}
	defer client.Close()
	return client.Do(t.Context(), client.B().Ping().Build()).Error()
}

func TestTLS(t *testing.T) {
	t.Parallel()
	s := NewTLS(t, alice...)
	url := s.LoginURL("alice", "se/cr@t")
	if err := ping(t, url, s.Config); err != nil {
		t.Error(err)
	}
	var unknown x509.UnknownAuthorityError
	if err := ping(t, url, nil); !errors.As(err, &unknown) {
		t.Error("a stranger is trusted", err)
	}
	text, err := os.ReadFile(s.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		t.Fatalf("%s", text)
	}
	if err := ping(t, url, &tls.Config{RootCAs: pool}); err != nil {
		t.Error(err)
	}
}

func TestLogin(t *testing.T) {
	t.Parallel()
	s := New(t, alice...)
	if err := ping(t, s.LoginURL("alice", "se/cr@t"), nil); err != nil {
		t.Error(err)
	}
	for _, url := range []string{s.URL(), s.LoginURL("alice", "secret"), s.LoginURL("bob", "se/cr@t")} {
		var refusal *rueidis.RedisError
		if err := ping(t, url, nil); !errors.As(err, &refusal) {
			t.Error(url, err)
		}
	}
}
