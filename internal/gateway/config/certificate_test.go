package config_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
)

// certificate writes a certificate and its key to cert.pem and key.pem in a folder.
func certificate(t testing.TB, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: cert}, "key.pem": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A certificate with which no gateway could start is a fault.
func TestCertificates(t *testing.T) {
	one, other := t.TempDir(), t.TempDir()
	certificate(t, one)
	certificate(t, other)
	for _, c := range []struct{ name, cert, key, fault string }{
		{"a pair", one + "/cert.pem", one + "/key.pem", ""},
		{"no certificate", one + "/none", one + "/key.pem", ":2:9: tls.cert: the file cannot be found: it must hold the certificate, in PEM"},
		{"no key", one + "/cert.pem", one + "/none", ":3:8: tls.key: the file cannot be found: it must hold the key, in PEM"},
		{"a folder", one, one + "/key.pem", ":2:9: tls.cert: it is not a file: it must be one that holds the certificate, in PEM"},
		{"another's key", one + "/cert.pem", other + "/key.pem", ":1:1: tls: cert and key are not a certificate: private key does not match public key: they must be PEM, and belong together"},
		{"no PEM", "testdata/secrets/lines", one + "/key.pem", ":1:1: tls: cert and key are not a certificate: failed to find any PEM data in certificate input: they must be PEM, and belong together"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := config.Parse("gateway.yaml", []byte("tls:\n  cert: "+c.cert+"\n  key: "+c.key+"\n"))
			if c.fault == "" && err != nil || c.fault != "" && (err == nil || err.Error() != "ratelimit: gateway.yaml"+c.fault) {
				t.Errorf("got %v, want %q", err, c.fault)
			}
			if _, err := config.Parse("gateway.yaml", []byte("admin: {tls: {cert: "+c.cert+", key: "+c.key+"}}")); (err == nil) != (c.fault == "") {
				t.Errorf("of the admin API: %v", err)
			}
		})
	}
}

func TestCertificateKeysThatOthersCanRead(t *testing.T) {
	dir := t.TempDir()
	certificate(t, dir)
	if err := os.Chmod(filepath.Join(dir, "cert.pem"), 0o644); err != nil { // a certificate is no secret
		t.Fatal(err)
	}
	for mode, warns := range map[os.FileMode]bool{0o600: false, 0o640: false, 0o644: true} {
		if err := os.Chmod(filepath.Join(dir, "key.pem"), mode); err != nil {
			t.Fatal(err)
		}
		var want []string
		if warns {
			want = []string{"gateway.yaml:3:8: tls.key: everybody on this machine can read the file: its mode should be 0600"}
		}
		differ(t, mode.String(), want, parsed(t, "tls:\n  cert: "+dir+"/cert.pem\n  key: "+dir+"/key.pem\n").Warnings)
	}
}
