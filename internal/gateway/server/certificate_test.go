package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// pair is the files of a certificate and its key.
type pair struct{ cert, key string }

// write makes a certificate with a serial number, and puts it into the files.
func (p pair) write(t *testing.T, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{p.cert: {Type: "CERTIFICATE", Bytes: cert}, p.key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func newPair(t *testing.T) pair {
	t.Helper()
	dir := t.TempDir()
	p := pair{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	p.write(t, 1)
	return p
}

// serial returns the serial number of the certificate that a server sends.
func serial(t *testing.T, address string) int64 {
	t.Helper()
	c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

func TestCertificateIsRenewed(t *testing.T) {
	files := newPair(t)
	r := start(t, mock(), basic+"tls: {cert: "+files.cert+", key: "+files.key+"}\n")
	address := r.Clients.String()
	if n := serial(t, address); n != 1 {
		t.Fatalf("it shows certificate %d", n)
	}
	files.write(t, 2)
	r.log.await(t, "was renewed", 1)
	if n := serial(t, address); n != 2 {
		t.Errorf("it shows certificate %d, want 2", n)
	}
	if err := os.WriteFile(files.cert, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.signals <- syscall.SIGHUP
	r.log.await(t, "could not be renewed", 1)
	r.log.await(t, "could not be reloaded", 1) // before the files are valid again
	if n := serial(t, address); n != 2 {
		t.Errorf("it shows certificate %d, want 2", n)
	}
	files.write(t, 3) // now the configuration, which was refused, is valid again
	r.log.await(t, "the configuration was reloaded", 1)
	if n := serial(t, address); n != 3 {
		t.Errorf("it shows certificate %d, want 3", n)
	}
}

func TestTLSClientsMayUseHTTP2(t *testing.T) {
	files := newPair(t)
	r := start(t, mock(), basic+"tls: {cert: "+files.cert+", key: "+files.key+"}\n")
	r.base = "https://" + r.Clients.String()
	for _, c := range []struct {
		http2 bool
		proto string
	}{{true, "HTTP/2.0"}, {false, "HTTP/1.1"}} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: c.http2}
		client := &http.Client{Transport: transport}
		resp, err := client.Get(r.base + "/nothing")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.Proto != c.proto {
			t.Errorf("it speaks %s, want %s", resp.Proto, c.proto)
		}
		if status, err := r.call(client); err != nil || status != http.StatusOK {
			t.Errorf("a call: %d, %v", status, err)
		}
		transport.CloseIdleConnections()
	}
	if c, err := tls.Dial("tcp", r.Clients.String(), &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11}); err == nil {
		c.Close()
		t.Error("it speaks TLS 1.1")
	}
}
