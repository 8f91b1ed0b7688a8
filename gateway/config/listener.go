package config

import (
	"net"
	"net/netip"
	"net/url"
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

func port(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
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
			field{"cert", filePath(&to.Cert)},
			field{"key", filePath(&to.Key)},
		)
		if (to.Cert == "") != (to.Key == "") && !p.r.faulty(p.path) {
			p.fault("only one of cert and key: there must be both, or none")
		}
	}
}

func (c *Config) readAdmin(p place) {
	p.fields(
		field{"listen", adminAddress(&c.Admin.Listen)},
		field{"tls", certificate(&c.Admin.TLS)},
		field{"token", secret(&c.Admin.Token)},
		field{"audit", filePath(&c.Admin.Audit)},
	)
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
		switch {
		case !isURL:
			if path, ok := p.home(text); ok {
				*to = path
			}
		case scheme != "redis" && scheme != "rediss":
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
