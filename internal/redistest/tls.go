package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TLS is a server that only speaks TLS on its port.
type TLS struct {
	*Server

	CAFile string      // the certificate of the server's issuer, in PEM
	Config *tls.Config // for a client that trusts the server
}

// NewTLS returns a server that speaks TLS, and runs until the test ends. args are added to those of
// redis-server.
func NewTLS(t testing.TB, args ...string) *TLS {
	t.Helper()
	dir := t.TempDir()
	ca := newIssuer(t, dir)
	cert, key := ca.issue(t, dir)
	pool := x509.NewCertPool()
	pool.AddCert(ca.certificate)
	args = append([]string{"--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", ca.file,
		"--tls-auth-clients", "no"}, args...)
	return &TLS{
		Server: start(t, Options{Args: args, tls: true}),
		CAFile: ca.file,
		Config: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
	}
}

// issuer signs the certificates of servers.
type issuer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	file        string
}

func newIssuer(t testing.TB, dir string) issuer {
	t.Helper()
	template := valid(1, "issuer")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	key := newKey(t)
	file := filepath.Join(dir, "ca.pem")
	der := sign(t, template, template, key, key, file)
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return issuer{certificate: certificate, key: key, file: file}
}

// issue returns the files of a server's certificate and key.
func (i issuer) issue(t testing.TB, dir string) (cert, key string) {
	t.Helper()
	template := valid(2, "server")
	template.IPAddresses, template.DNSNames = []net.IP{net.ParseIP(host)}, []string{"localhost"}
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	private := newKey(t)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "server.pem"), filepath.Join(dir, "server.key")
	sign(t, template, i.certificate, private, i.key, cert)
	write(t, key, "PRIVATE KEY", der)
	return cert, key
}

// sign writes the certificate that a parent issues to the owner of a key.
func sign(t testing.TB, template, parent *x509.Certificate, owner, by *ecdsa.PrivateKey, file string) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &owner.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, "CERTIFICATE", der)
	return der
}

// valid returns a template of a certificate that is valid now.
func valid(serial int64, name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func write(t testing.TB, file, kind string, der []byte) {
	t.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
