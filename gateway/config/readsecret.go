package config

import (
	"os"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
)

const (
	wantSecret = "{env: NAME} or {file: PATH}"
	maxSecret  = 64 << 10 // bytes
)

// secret reads where a secret is, and the secret from there. What stands in the
// configuration is not shown, since it may be the secret itself in the wrong place.
func secret(to *Secret) func(place) {
	return func(p place) {
		if isScalar(p.node) {
			p.fault("a secret does not belong into this file: it must be %s", wantSecret)
			return
		}
		from, ok := p.only()
		if !ok {
			p.fault("it must be %s", wantSecret)
			return
		}
		var value string
		switch from.Key.GetToken().Value {
		case "env":
			value, ok = p.child(p.path+".env", from.Key.GetToken(), from.Value).variable()
		case "file":
			value, ok = p.child(p.path+".file", from.Key.GetToken(), from.Value).secretFile()
		default:
			ok = false
			p.fault("it must be %s", wantSecret)
		}
		if ok {
			*to = NewSecret(value)
		}
	}
}

// only returns the one entry of a mapping, if it has one.
func (p place) only() (*ast.MappingValueNode, bool) {
	switch n := p.node.(type) {
	case *ast.MappingNode:
		if len(n.Values) == 1 {
			return n.Values[0], true
		}
	case *ast.MappingValueNode:
		return n, true
	}
	return nil, false
}

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	harmless     = regexp.MustCompile(`^[A-Z_][A-Z0-9_]{0,63}$`) // a name that is certainly no key
)

// variable returns what an environment variable holds.
func (p place) variable() (string, bool) {
	const want = "the name of an environment variable: letters, digits and _"
	name, ok := p.text(want)
	if !ok {
		return "", false
	}
	if !variableName.MatchString(name) {
		p.fault("it must be %s", want)
		return "", false
	}
	if !harmless.MatchString(name) {
		name = "of that name"
	}
	value := os.Getenv(p.node.GetToken().Value)
	if value == "" {
		p.fault("the environment variable %s is not set, or empty: it must hold the secret", name)
		return "", false
	}
	return value, p.fitSecret(value)
}

// secretFile returns what a file holds, without the newline at its end.
func (p place) secretFile() (string, bool) {
	var path string
	filePath(&path)(p)
	if path == "" {
		return "", false
	}
	info, ok := p.file(path, "the secret")
	if !ok {
		return "", false
	}
	if info.Size() > maxSecret {
		p.fault("the file has %d bytes: a secret may have %d", info.Size(), maxSecret)
		return "", false
	}
	p.warnOfReaders(info)
	return p.secretText(path)
}

// file returns what is known of a file, which must hold something.
func (p place) file(path, what string) (os.FileInfo, bool) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		p.fault("the file cannot be found: it must hold %s", what)
	case !info.Mode().IsRegular():
		p.fault("it is no file: it must be one that holds %s", what)
	default:
		return info, true
	}
	return nil, false
}

func (p place) warnOfReaders(info os.FileInfo) {
	if info.Mode().Perm()&0o004 != 0 {
		p.warn("everybody on this machine can read the file: its mode should be 0600")
	}
}

func (p place) secretText(path string) (string, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		p.fault("the file cannot be read: it must be one that this user may read")
		return "", false
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if value == "" {
		p.fault("the file is empty: it must hold the secret")
		return "", false
	}
	return value, p.fitSecret(value)
}

func (p place) fitSecret(value string) bool {
	fit := utf8.ValidString(value) && !strings.ContainsFunc(value, unicode.IsControl)
	if !fit {
		p.fault("the secret has control characters, such as a newline, or is not UTF-8: it must be one line of text")
	}
	return fit
}
