package httplimit

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/project"
)

func prefixes(all ...string) (ps []netip.Prefix) {
	for _, p := range all {
		ps = append(ps, netip.MustParsePrefix(p))
	}
	return ps
}

func TestClientIP(t *testing.T) {
	const proxy, client = "10.0.0.1:80", "203.0.113.7:4711"
	trusted := prefixes("10.0.0.0/8", "2001:db8:ffff::/48", "::ffff:192.168.0.0/112", "fe80::/10")
	for _, c := range []struct {
		name, peer string
		forwarded  []string
		want       string // empty: ClientIP returns an error
	}{
		{"the peer", client, nil, "203.0.113.7"},
		{"another port", "203.0.113.7:1", nil, "203.0.113.7"},
		{"no port", "203.0.113.7", nil, "203.0.113.7"},
		{"IPv6", "[2001:db8:1:2:3:4:5:6]:80", nil, "2001:db8:1:2::/64"},
		{"the same /64", "[2001:db8:1:2:ffff::1]:80", nil, "2001:db8:1:2::/64"},
		{"another /64", "[2001:db8:1:3::1]:80", nil, "2001:db8:1:3::/64"},
		{"a zone", "[2001:db8:1:2::1%eth0]:80", nil, "2001:db8:1:2::/64"},
		{"IPv4 in IPv6", "[::ffff:203.0.113.7]:80", nil, "203.0.113.7"},
		{"a unix socket", "@", nil, ""},
		{"nothing", "", nil, ""},

		{"spoofed", client, []string{"198.51.100.1"}, "203.0.113.7"},
		{"spoofed with a proxy", client, []string{"198.51.100.1, 10.0.0.1"}, "203.0.113.7"},
		{"garbled", client, []string{"\x00,,;,"}, "203.0.113.7"},

		{"forwarded", proxy, []string{"203.0.113.7"}, "203.0.113.7"},
		{"forwarded by IPv4 in IPv6", "[::ffff:10.0.0.1]:80", []string{"203.0.113.7"}, "203.0.113.7"},
		{"forwarded by a prefix of IPv4 in IPv6", "192.168.0.9:80", []string{"203.0.113.7"}, "203.0.113.7"},
		{"forwarded by IPv6", "[2001:db8:ffff::1]:80", []string{"2001:db8:1:2::9"}, "2001:db8:1:2::/64"},
		{"forwarded by one with a zone", "[fe80::1%eth0]:80", []string{"203.0.113.7, fe80::2%eth1"}, "203.0.113.7"},
		{"forwarded IPv4 in IPv6", proxy, []string{"::ffff:203.0.113.7"}, "203.0.113.7"},
		{"with a port", proxy, []string{"203.0.113.7:4711"}, "203.0.113.7"},
		{"in brackets", proxy, []string{"[2001:db8:1:2::9]"}, "2001:db8:1:2::/64"},
		{"in brackets, with a port", proxy, []string{"[2001:db8:1:2::9]:4711"}, "2001:db8:1:2::/64"},
		{"what the client sent stands left", proxy, []string{"198.51.100.1, 203.0.113.7"}, "203.0.113.7"},
		{"garbled by the client", proxy, []string{"\xff\x00 nonsense, 203.0.113.7"}, "203.0.113.7"},
		{"two proxies", proxy, []string{"198.51.100.1, 203.0.113.7, 10.2.2.2"}, "203.0.113.7"},
		{"two lines", proxy, []string{"198.51.100.1", "203.0.113.7\t, 10.2.2.2"}, "203.0.113.7"},
		{"a line with proxies only", proxy, []string{"198.51.100.1,203.0.113.7", "10.2.2.2,10.3.3.3"}, "203.0.113.7"},
		{"empty members", proxy, []string{"203.0.113.7, ,,", ""}, "203.0.113.7"},
		{"proxies only", proxy, []string{"10.3.3.3, 10.2.2.2"}, "10.3.3.3"},
		{"the proxy itself", proxy, nil, "10.0.0.1"},
		{"nothing forwarded", proxy, []string{""}, "10.0.0.1"},
		{"only commas", proxy, []string{",,", " , "}, "10.0.0.1"},
		{"unknown", proxy, []string{"203.0.113.7, unknown"}, ""},
		{"garbled by the proxy", proxy, []string{"203.0.113.7, \x00"}, ""},
		{"a name", proxy, []string{"example.com"}, ""},
		{"a prefix", proxy, []string{"203.0.113.0/24"}, ""},
		{"too large", proxy, []string{"203.0.113.256"}, ""},
		{"leading zeros", proxy, []string{"203.0.113.007"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = c.peer
			for _, f := range c.forwarded {
				r.Header.Add("X-Forwarded-For", f)
			}
			got, err := ClientIP(trusted...)(r)
			if got != c.want || (err != nil) != (c.want == "") {
				t.Errorf("%q, %v", got, err)
			}
			if err != nil && !strings.HasPrefix(err.Error(), "ratelimit: ") {
				t.Error(err)
			}
			if prefix := ClientPrefix(trusted...)(r); prefix != prefixNamed(c.want) {
				t.Errorf("ClientPrefix: %v", prefix)
			}
		})
	}
}

// prefixNamed returns the prefix of the client that ClientIP names.
func prefixNamed(id string) netip.Prefix {
	switch {
	case id == "":
		return netip.Prefix{}
	case !strings.Contains(id, "/"):
		id += "/32"
	}
	return netip.MustParsePrefix(id)
}

func TestClientIPWithoutProxies(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "10.0.0.1:80"
	r.Header.Set("X-Forwarded-For", "203.0.113.7")
	if got, err := ClientIP()(r); got != "10.0.0.1" || err != nil {
		t.Error(got, err)
	}
}

// ClientPrefix allocates nothing.
func TestClientPrefixAllocations(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "[2001:db8:1:2::1]:80"
	r.Header.Set("X-Forwarded-For", "203.0.113.7, 2001:db8:1:3::1")
	key := ClientPrefix(prefixes("2001:db8::/32")...)
	if got := testing.AllocsPerRun(100, func() { key(r) }); got != 0 || key(r) != prefixNamed("203.0.113.7") {
		t.Errorf("%v allocations, %v", got, key(r))
	}
}

// Each client has a limit of its own, and cannot get that of another by the headers it sends.
func TestClientIPOverTheWire(t *testing.T) {
	for _, c := range []struct {
		name    string
		trusted []netip.Prefix
		passed  int32
	}{
		{"not believed", nil, 1},
		{"believed", prefixes("127.0.0.0/8", "::1/128"), 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			limiter := newLimiter(t, project.Limit{RequestsPerDay: 1})
			next := &fine{}
			server := httptest.NewServer(Middleware(limiter, Identify(ClientIP(c.trusted...)))(next))
			defer server.Close()
			for _, forwarded := range []string{"203.0.113.1", "203.0.113.2", "203.0.113.3", "203.0.113.4", "203.0.113.4:99"} {
				r, err := http.NewRequestWithContext(t.Context(), "GET", server.URL, nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("X-Forwarded-For", forwarded)
				response, err := server.Client().Do(r)
				if err != nil {
					t.Fatal(err)
				}
				response.Body.Close()
			}
			if next.calls.Load() != c.passed {
				t.Errorf("%d passed", next.calls.Load())
			}
		})
	}
}

// The header of an untrusted peer changes nothing. With the header of a trusted one, ClientIP returns
// an error, or a client that does not depend on the addresses to the left of it.
func FuzzClientIP(f *testing.F) {
	f.Add("203.0.113.7:80", "198.51.100.1", "10.0.0.1")
	f.Add("10.0.0.1:80", "198.51.100.1, 203.0.113.7", "10.2.2.2")
	f.Add("[2001:db8::1%eth0]:80", ",,", "::ffff:10.0.0.1")
	f.Add("10.0.0.1", "[::1]:80,", "unknown")
	identify := ClientIP(prefixes("10.0.0.0/8", "::1/128")...)
	ask := func(peer string, forwarded ...string) (string, error) {
		return identify(&http.Request{RemoteAddr: peer, Header: http.Header{"X-Forwarded-For": forwarded}})
	}
	f.Fuzz(func(t *testing.T, peer, one, two string) {
		id, err := ask(peer, one, two)
		if err != nil {
			if id != "" {
				t.Errorf("%q with an error", id)
			}
			return
		}
		if err := project.CheckID(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
		if prefix, err := netip.ParsePrefix(id); err == nil {
			if prefix.Bits() != 64 || prefix != prefix.Masked() || prefix.Addr().Is4In6() {
				t.Errorf("%q", id)
			}
		} else if a, err := netip.ParseAddr(id); err != nil || !a.Is4() {
			t.Errorf("%q is no address", id)
		}
		if joined, err := ask(peer, one+","+two); joined != id || err != nil {
			t.Errorf("%q in two lines, %q in one", id, joined)
		}
		if without, err := ask(peer); err == nil && !strings.HasPrefix(without, "10.") && without != "::/64" && without != id {
			t.Errorf("%q is %q by what it sent", without, id)
		}
		if strings.HasPrefix(id, "10.") || id == "::/64" {
			return // a proxy: the addresses to the left of it count
		}
		if more, err := ask(peer, "192.0.2.9, nonsense", one, two); more != id || err != nil {
			t.Errorf("%q is %q, %v by what stands left", id, more, err)
		}
	})
}
