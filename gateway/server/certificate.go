package server

import (
	"crypto/tls"
	"fmt"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/gateway/config"
)

// certificate is one that is read from its files anew when they change.
type certificate struct {
	files    config.TLS
	watchers [2]*config.Watcher // of the files
	current  atomic.Pointer[tls.Certificate]
}

func newCertificate(files config.TLS) (*certificate, error) {
	c := &certificate{files: files}
	c.watchers = [...]*config.Watcher{config.NewWatcher(files.Cert), config.NewWatcher(files.Key)} // before they are read
	return c, c.load()
}

// load reads the files. If they make no certificate, the last one stays.
func (c *certificate) load() error {
	pair, err := tls.LoadX509KeyPair(c.files.Cert, c.files.Key)
	if err != nil {
		return fmt.Errorf("ratelimit: the certificate %s with the key %s: %w", c.files.Cert, c.files.Key, err)
	}
	c.current.Store(&pair)
	return nil
}

// config returns that of a listener which shows the certificate.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current.Load(), nil },
	}
}
