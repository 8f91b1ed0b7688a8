package main

import (
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// The health check needs neither a token nor the name that a certificate has, and no admin API.
func TestHealth(t *testing.T) {
	with := func(config string) string {
		return startGateway(t, "--state", "memory", "--config", file(t, "gateway.yaml", config)).base
	}
	token := "admin: {listen: '127.0.0.1:0', token: {file: " + filepath.ToSlash(file(t, "token", "a-secret-of-some-length")) + "}}\n"
	strange := httptest.NewServer(http.NotFoundHandler())
	defer strange.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, c := range []struct {
		address, says string
		code          int
	}{
		{with("admin: {listen: '127.0.0.1:0'}"), "", exitFine},
		{with("admin: off\n"), "", exitFine},
		{with("admin: off\n" + certificateOf(t)), "", exitFine},
		{with(token), "", exitFine},
		{with(token + certificateOf(t)), "", exitFine},
		{strange.URL, "404", exitFailed},
		{gone.URL, "no gateway serves at 127.0.0.1", exitFailed},
		{"http://a b", "not an address", exitUsage},
	} {
		_, address, _ := strings.Cut(c.address, "://")
		if got := run(t, "health", address); got.code != c.code || !strings.Contains(got.stderr, c.says) || got.stdout != "" {
			t.Errorf("%s: %+v", c.address, got)
		}
	}
}

// certificateOf returns the setting tls with a certificate for example.com.
func certificateOf(t *testing.T) string {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	server.Close()
	pair := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert := file(t, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})))
	secret := file(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
	return "tls: {cert: " + filepath.ToSlash(cert) + ", key: " + filepath.ToSlash(secret) + "}\n"
}
