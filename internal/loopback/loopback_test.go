package loopback

import "testing"

func TestIs(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1": true, "127.0.0.1:80": true, "127.9.9.9:80": true, "[::1]:80": true, "[::1]": true, "::1": true,
		"localhost": true, "LOCALHOST:80": true, "[::ffff:127.0.0.1]:80": true,
		"": false, ":80": false, "0.0.0.0:80": false, "[::]:80": false, "10.0.0.1": false, "example.com:80": false,
		"127.0.0.1.example.com": false, "localhost.example.com:80": false,
	} {
		if got := Is(address); got != want {
			t.Errorf("%q: got %v, want %v", address, got, want)
		}
	}
}
