package config

import (
	"os"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	wantSecret = "{env: NAME} or {file: PATH}"
	maxSecret  = 64 << 10 // bytes
)

// secret reads where a secret is, and the secret from there. Faults do not show what stands in
// the configuration, since it may be the secret itself in the wrong place.
func secret(to *Secret) func(yamlValue) {
	return func(p yamlValue) {
		if _, isText := p.Scalar(); isText {
			p.Fault("do not write secrets in this file: it must be %s", wantSecret)
			return
		}
		from, at, ok := p.Only()
		switch {
		case ok && from == "env":
			to.value = variable(at)
		case ok && from == "file":
			to.value = secretFile(at)
		default:
			p.Fault("it must be %s", wantSecret)
		}
	}
}

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	harmless     = regexp.MustCompile(`^[A-Z_][A-Z0-9_]{0,63}$`) // a name that is certainly no key
)

// variable returns the secret in an environment variable, or records a fault and returns "".
func variable(p yamlValue) string {
	const want = "the name of an environment variable: letters, digits and _"
	name, ok := p.Text(want)
	if !ok {
		return ""
	}
	if !variableName.MatchString(name) {
		p.Fault("it must be %s", want)
		return ""
	}
	value := os.Getenv(name)
	if value == "" {
		if !harmless.MatchString(name) {
			name = "of that name"
		}
		p.Fault("the environment variable %s is not set, or empty: it must hold the secret", name)
	}
	return checkedSecret(p, value)
}

// secretFile returns the secret in a file, without the newline at its end, or records a fault and
// returns "".
func secretFile(p yamlValue) string {
	var path string
	filePath(&path)(p)
	if path == "" {
		return ""
	}
	info, ok := file(p, path, "the secret")
	if !ok {
		return ""
	}
	if info.Size() > maxSecret {
		p.Fault("the file has %d bytes: a secret may have %d", info.Size(), maxSecret)
		return ""
	}
	warnOfReaders(p, info)
	text, err := os.ReadFile(path)
	if err != nil {
		p.Fault("the file cannot be read: it must be one that this user may read")
		return ""
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if value == "" {
		p.Fault("the file is empty: it must hold the secret")
	}
	return checkedSecret(p, value)
}

// file describes a file, or records a fault if there is none; what says what the file must hold.
func file(p yamlValue, path, what string) (os.FileInfo, bool) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		p.Fault("the file cannot be found: it must hold %s", what)
	case !info.Mode().IsRegular():
		p.Fault("it is not a file: it must be one that holds %s", what)
	default:
		return info, true
	}
	return nil, false
}

// warnOfReaders warns if every user of the machine can read a file with a secret.
func warnOfReaders(p yamlValue, info os.FileInfo) {
	if info.Mode().Perm()&0o004 != 0 {
		p.Warn("everybody on this machine can read the file: its mode should be 0600")
	}
}

// checkedSecret returns a secret that can be sent in a header, or records a fault and returns "".
func checkedSecret(p yamlValue, value string) string {
	if utf8.ValidString(value) && !strings.ContainsFunc(value, unicode.IsControl) {
		return value
	}
	p.Fault("the secret has control characters, such as a newline, or is not UTF-8: it must be one line of text")
	return ""
}
