package config

import (
	"crypto/tls"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// address reads where to listen.
func address(to *string) func(place) {
	return func(p place) {
		const want = "a host and a port, such as 127.0.0.1:8080, or :8080 for all interfaces"
		text, ok := p.text(want)
		if !ok {
			return
		}
		host, port, err := net.SplitHostPort(text)
		_, wrong := strconv.ParseUint(port, 10, 16)
		if err != nil || wrong != nil || !fitHost(host) {
			p.fault("%s: it must be %s", shown(text), want)
			return
		}
		*to = text
	}
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9._-]*$`)

func fitHost(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil || hostName.MatchString(host)
}

// Loopback reports whether only this machine can reach an address, with a port or
// without.
func Loopback(address string) bool {
	host := address
	if name, _, err := net.SplitHostPort(address); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && ip.IsLoopback()
}

// collide reports whether nobody can listen at both of two addresses.
func collide(a, b string) bool {
	hostA, portA, _ := net.SplitHostPort(a)
	hostB, portB, _ := net.SplitHostPort(b)
	return portA == portB && portA != "0" && (everywhere(hostA) || everywhere(hostB) || plainHost(hostA) == plainHost(hostB))
}

// everywhere reports whether to listen at a host is to listen at all addresses of the
// machine, of both kinds.
func everywhere(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

func plainHost(host string) string {
	if host = strings.ToLower(host); host == "localhost" {
		return "127.0.0.1"
	}
	return host
}

// adminAddress is address, or off.
func adminAddress(to *string) func(place) {
	return func(p place) {
		if text, ok := p.text("a host and a port, or off"); ok && text == "off" {
			*to = ""
			return
		} else if ok {
			address(to)(p)
		}
	}
}

func certificate(to *TLS) func(place) {
	return func(p place) {
		p.fields(
			field{"cert", func(p place) { p.pem(&to.Cert, "the certificate") }},
			field{"key", func(p place) {
				if info, ok := p.pem(&to.Key, "the key"); ok {
					p.warnOfReaders(info)
				}
			}},
		)
		if p.r.faulty(p.path) || *to == (TLS{}) {
			return
		}
		if to.Cert == "" || to.Key == "" {
			p.fault("only one of cert and key: there must be both, or none")
			return
		}
		if _, err := tls.LoadX509KeyPair(to.Cert, to.Key); err != nil {
			p.fault("cert and key make no certificate: %s: they must be PEM, and belong together", strings.TrimPrefix(err.Error(), "tls: "))
		}
	}
}

// pem reads the path of a file, which must be there.
func (p place) pem(to *string, what string) (os.FileInfo, bool) {
	if filePath(to)(p); *to == "" {
		return nil, false
	}
	return p.file(*to, what+", in PEM")
}

func (c *Config) readAdmin(p place) {
	p.fields(
		field{"listen", adminAddress(&c.Admin.Listen)},
		field{"tls", certificate(&c.Admin.TLS)},
		field{"token", secret(&c.Admin.Token)},
		field{"audit", c.Admin.readAudit},
	)
}

// readAudit reads the path of a file to which the gateway must be able to append.
func (a *Admin) readAudit(p place) {
	if filePath(&a.Audit)(p); a.Audit == "" {
		return
	}
	if f, err := os.OpenFile(a.Audit, os.O_RDWR|os.O_APPEND, 0); err == nil {
		f.Close()
		return
	} else if errors.Is(err, fs.ErrPermission) { // the gateway may run as somebody else
		p.warn("this user may not read and write it: the gateway's must")
		return
	} else if !errors.Is(err, fs.ErrNotExist) {
		p.fault("it cannot be written: it must be a file")
		return
	}
	if folder, err := os.Stat(filepath.Dir(a.Audit)); err != nil || !folder.IsDir() {
		p.fault("there is no folder for it: it must be a file in one that exists")
	}
}

// state reads where to count. A URL is not shown, since it may hold a password.
func state(to *string) func(place) {
	const want = "the path of a SQLite file, a URL that begins with redis:// or rediss://, or memory"
	return func(p place) {
		text, ok := p.stateText(want)
		if !ok {
			return
		}
		scheme, _, isURL := strings.Cut(text, "://")
		isRedis := isURL && (scheme == "redis" || scheme == "rediss")
		switch {
		case !isRedis && !isScalar(p.node):
			p.fault("what is there is no URL of Redis: it must begin with redis:// or rediss://; a path, or memory, stands here itself")
		case !isURL:
			if path, ok := p.home(text); ok {
				*to = path
			}
		case !isRedis:
			p.fault("it is another kind of URL: it must be %s", want)
		case !fitRedis(text):
			p.fault("the URL of Redis cannot be read: it must be like redis://127.0.0.1:6379/0; " +
				"in a user or password, characters such as / and %% must be escaped")
		default:
			*to = text
		}
	}
}

// stateText returns what stands there, or, as it may be a URL with a password, where it
// is said to be.
func (p place) stateText(want string) (string, bool) {
	if _, elsewhere := p.only(); elsewhere {
		var s Secret
		secret(&s)(p)
		return s.Reveal(), s != Secret{}
	}
	text, ok := p.text(want)
	if ok && password(text) {
		p.warn("the password of Redis can be seen: state should be %s", wantSecret)
	}
	return text, ok
}

func fitRedis(text string) bool {
	_, err := rueidis.ParseURL(text)
	return err == nil
}

// Redis reports whether the state is in Redis.
func (c *Config) Redis() bool {
	return strings.HasPrefix(c.State, "redis://") || strings.HasPrefix(c.State, "rediss://")
}

// password reports whether a URL holds one.
func password(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.User == nil {
		return false
	}
	_, has := u.User.Password()
	return has
}
