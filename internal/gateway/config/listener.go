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

	"dappco.re/go/core/go-ratelimit/internal/strictyaml"
)

// address reads the address at which to listen.
func address(to *string) func(yamlValue) {
	const want = "a host and a port, such as 127.0.0.1:8080, or :8080 for all interfaces"
	return strictyaml.Parsed(to, want, func(text string) (string, bool) {
		host, port, err := net.SplitHostPort(text)
		_, wrong := strconv.ParseUint(port, 10, 16)
		return text, err == nil && wrong == nil && validHost(host)
	})
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9._-]*$`)

func validHost(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil || hostName.MatchString(host)
}

// collide reports whether one process cannot listen at both of two addresses.
func collide(a, b string) bool {
	hostA, portA, _ := net.SplitHostPort(a)
	hostB, portB, _ := net.SplitHostPort(b)
	return portA == portB && portA != "0" && (allAddresses(hostA) || allAddresses(hostB) || plainHost(hostA) == plainHost(hostB))
}

// allAddresses reports whether a host stands for all addresses of the machine, of IPv4 and IPv6.
func allAddresses(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

func plainHost(host string) string {
	host = strings.ToLower(host)
	if host == "localhost" {
		return "127.0.0.1"
	}
	return host
}

// adminAddress reads an address, or off, which is none.
func adminAddress(to *string) func(yamlValue) {
	return func(p yamlValue) {
		if text, ok := p.Text("a host and a port, or off"); ok && text == "off" {
			*to = ""
			return
		} else if ok {
			address(to)(p)
		}
	}
}

func certificate(to *TLS) func(yamlValue) {
	return func(p yamlValue) {
		p.Fields(
			field("cert", func(p yamlValue) { pem(p, &to.Cert, "the certificate") }),
			field("key", func(p yamlValue) {
				if info, ok := pem(p, &to.Key, "the key"); ok {
					warnOfReaders(p, info)
				}
			}),
		)
		if p.Faulty() || *to == (TLS{}) {
			return
		}
		if to.Cert == "" || to.Key == "" {
			p.Fault("only one of cert and key is set: both must be, or neither")
			return
		}
		if _, err := tls.LoadX509KeyPair(to.Cert, to.Key); err != nil {
			p.Fault("cert and key are not a certificate: %s: they must be PEM, and belong together", strings.TrimPrefix(err.Error(), "tls: "))
		}
	}
}

// pem reads the path of a file, which must exist.
func pem(p yamlValue, to *string, what string) (os.FileInfo, bool) {
	filePath(to)(p)
	if *to == "" {
		return nil, false
	}
	return file(p, *to, what+", in PEM")
}

func (c *Config) readAdmin(p yamlValue) {
	if text, ok := p.Scalar(); ok && text == "off" {
		c.Admin.Listen = ""
		return
	}
	p.Fields(
		field("listen", adminAddress(&c.Admin.Listen)),
		field("tls", certificate(&c.Admin.TLS)),
		field("token", secret(&c.Admin.Token)),
		field("oidc", func(p yamlValue) { c.Admin.OIDC = readOIDC(p) }),
		field("audit", c.Admin.readAudit),
	)
}

// readAudit reads the path of a file to which the gateway must be able to append.
func (a *Admin) readAudit(p yamlValue) {
	filePath(&a.Audit)(p)
	if a.Audit == "" {
		return
	}
	if f, err := os.OpenFile(a.Audit, os.O_RDWR|os.O_APPEND, 0); err == nil {
		f.Close()
		return
	} else if errors.Is(err, fs.ErrPermission) { // the gateway may run as another user
		p.Warn("this user may not read and write it: the gateway's user must be able to")
		return
	} else if !errors.Is(err, fs.ErrNotExist) {
		p.Fault("it cannot be written: it must be a file")
		return
	}
	if folder, err := os.Stat(filepath.Dir(a.Audit)); err != nil || !folder.IsDir() {
		p.Fault("its directory does not exist: it must be a file in one that does")
	}
}

// storage reads where usage is counted. Faults do not show a URL, which may hold a password.
func storage(to *string) func(yamlValue) {
	const want = "the path of a SQLite file, a URL that begins with redis:// or rediss://, or memory"
	return func(p yamlValue) {
		text, here, ok := stateText(p, want)
		if !ok {
			return
		}
		scheme, _, isURL := strings.Cut(text, "://")
		isRedis := isURL && (scheme == "redis" || scheme == "rediss")
		switch {
		case !isRedis && !here:
			p.Fault("its value is not a URL of Redis: it must begin with redis:// or rediss://; a path, or memory, must be in this file itself")
		case strings.Contains(text, "$"):
			p.Fault("variables are not expanded here: for the URL of Redis in a variable it must be {env: NAME}, such as state: {env: REDIS_URL}")
		case !isURL && isAddress.MatchString(text):
			p.Fault("it looks like the address of a server: for Redis it must be like redis://127.0.0.1:6379/0; a file with such a name must begin with ./")
		case !isURL:
			*to = home(p, text)
		case !isRedis:
			p.Fault("it is another kind of URL: it must be %s", want)
		case !validRedis(text):
			p.Fault("the URL of Redis cannot be read: it must be like redis://127.0.0.1:6379/0; " +
				"in a user or password, characters such as / and %% must be escaped")
		default:
			*to = text
		}
	}
}

// isAddress matches texts that are no path of a file: a host with a port, and a scheme without slashes. A drive of
// Windows has one letter.
var isAddress = regexp.MustCompile(`^(//|[A-Za-z0-9][A-Za-z0-9.+_-]+:|\[[0-9A-Fa-f:.]+\]:)`)

// stateText returns the text of the field state, and whether the configuration itself has it: a
// URL with a password may be in the environment or in another file.
func stateText(p yamlValue, want string) (text string, here, ok bool) {
	if _, _, elsewhere := p.Only(); elsewhere {
		var s Secret
		secret(&s)(p)
		return s.Reveal(), false, s != Secret{}
	}
	text, ok = p.Text(want)
	if ok && password(text) {
		p.Warn("the password of Redis can be seen: state should be %s", wantSecret)
	}
	return text, true, ok
}

func validRedis(text string) bool {
	_, err := rueidis.ParseURL(text)
	return err == nil
}

// Redis reports whether usage is counted in Redis.
func (c *Config) Redis() bool {
	return strings.HasPrefix(c.State, "redis://") || strings.HasPrefix(c.State, "rediss://")
}

// password reports whether a URL holds a password.
func password(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.User == nil {
		return false
	}
	_, has := u.User.Password()
	return has
}
