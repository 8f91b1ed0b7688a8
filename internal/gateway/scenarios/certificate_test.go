package scenarios

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// certificate is a certificate for this machine, in files, and the roots that trust it.
type certificate struct {
	cert, key string
	trust     *x509.CertPool
}

// newCertificate returns the certificate of package httptest.
func newCertificate(t *testing.T) *certificate {
	t.Helper()
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	dir := t.TempDir()
	c := &certificate{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), x509.NewCertPool()}
	key, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	c.trust.AddCert(s.Certificate())
	for file, block := range map[string]*pem.Block{
		c.cert: {Type: "CERTIFICATE", Bytes: s.Certificate().Raw},
		c.key:  {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// yaml returns the section of a configuration that uses the certificate.
func (c *certificate) yaml() string { return fmt.Sprintf("tls: {cert: %s, key: %s}\n", c.cert, c.key) }

// connect returns a client that speaks HTTP/1.1 over TLS.
func (c *certificate) connect(t *testing.T, address string) *caller {
	t.Helper()
	conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: c.trust, NextProtos: []string{"http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	return &caller{conn, bufio.NewReader(conn)}
}
