package server

import (
	"crypto/tls"
	"fmt"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
)

// certificate is a TLS certificate that is read again when its files change.
type certificate struct {
	files     config.TLS
	cert, key *watcher
	current   atomic.Pointer[tls.Certificate]
}

func newCertificate(files config.TLS) (*certificate, error) {
	c := &certificate{files: files, cert: newWatcher(files.Cert, nil), key: newWatcher(files.Key, nil)}
	return c, c.load()
}

// changed reports whether one of the files has changed.
func (c *certificate) changed() bool {
	cert, key := c.cert.changed(), c.key.changed()
	return cert || key
}

// load reads the files. If they are not valid, the last certificate stays.
func (c *certificate) load() error {
	pair, err := tls.LoadX509KeyPair(c.files.Cert, c.files.Key)
	if err != nil {
		return fmt.Errorf("ratelimit: the certificate %s with the key %s: %w", c.files.Cert, c.files.Key, err)
	}
	c.current.Store(&pair)
	return nil
}

// config returns the configuration of a listener that uses the certificate.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current.Load(), nil },
	}
}
