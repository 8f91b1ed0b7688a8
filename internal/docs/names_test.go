package docs

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// foreign is what documents name although it is not declared here, and whose it is.
var foreign = map[string]string{
	"AccessDeniedException":         "AWS",
	"UnrecognizedClientException":   "AWS",
	"Canceled":                      "gRPC's codes",
	"InvalidArgument":               "gRPC's codes",
	"ResourceExhausted":             "gRPC's codes",
	"Unavailable":                   "gRPC's codes",
	"QuotaFailure":                  "gRPC's error details",
	"RetryInfo":                     "gRPC's error details",
	"Healthcheck":                   "Docker",
	"HttpOnly":                      "cookies",
	"Secure":                        "cookies",
	"Range":                         "a header",
	"Prefer":                        "a header",
	"Ratelimit":                     "a header",
	"RateLimit":                     "a header",
	"Signature":                     "a header",
	"HeapAlloc":                     "Go's runtime",
	"ReverseProxy":                  "net/http/httputil",
	"RestartSec":                    "systemd",
	"StartLimitIntervalSec":         "systemd",
	"TimeoutStopSec":                "systemd",
	"serverURL":                     "Mistral's SDK",
	"apiBase":                       "Continue",
	"terminationGracePeriodSeconds": "Kubernetes",
	"gateway.yaml":                  "the user's own file",
	"config.yaml":                   "LiteLLM's file",
	"BackendTrafficPolicy":          "Envoy Gateway",
	"clientSelectors":               "Envoy Gateway",
	"llmRequestCosts":               "Envoy AI Gateway",
	"OutputToken":                   "Envoy AI Gateway",
	"NewRateLimiter":                "another limiter of projects",
	"ProjectLimit":                  "another limiter of projects",
	"DefaultProjectLimit":           "another limiter of projects",
	"RequestCounter":                "another limiter of projects",
	"RateLimitMiddleware":           "another limiter of projects",
	"DistributedRateLimiter":        "another limiter of projects",
	"project/acme":                  "a setting in Redis",
	"cachedContent":                 "a field of Gemini",
	"ratelimit completion":          "cobra's own command",
}

// Files, packages, Go names, make targets, and commands with their flags exist where a
// document names them in backticks, and commands and our packages' names in code blocks.
func TestNames(t *testing.T) {
	r := newRepository(t)
	for _, d := range documents(t) {
		if d.path == "CHANGELOG.md" { // it mentions names that are gone
			continue
		}
		for _, s := range spans(d, r.folder) {
			for _, fault := range r.faults(d.path, s) {
				t.Errorf("%s:%d: %s", d.path, s.line, fault)
			}
		}
	}
	for name := range foreign {
		if !r.excepted[name] {
			t.Errorf("%s need not be an exception", name)
		}
	}
}

// Each rule finds a name that was made up.
func TestMadeUpNames(t *testing.T) {
	r := newRepository(t)
	for _, text := range []string{
		"limit/nothing.go", "nothing.go", "store/nothing", "limit/noth*.go", "limit.Nothing", "limit.Limiter.Nothing",
		"RateLimiter.Nothing", "Nothing.Stats", "Nothing", "Nothing(ctx)", "Config{Nothing: 1}", "doNothing",
		"make nothing", "ratelimit nothing", "ratelimit serve --nothing", "--nothing", "go run ./examples/nothing",
		"cd benchmarks && go run ./cmd/ratelimit",
	} {
		if faults := r.faults("README.md", span{text: text, dirs: []string{"."}}); len(faults) != 1 {
			t.Errorf("%s: %d faults, want one: %q", text, len(faults), faults)
		}
	}
}

var (
	pathName  = regexp.MustCompile(`^[A-Za-z_][\w.*-]*(/[\w.*-]+)*/?$`)
	extension = regexp.MustCompile(`\.(go|md|lua|ya?ml|json|s|sh|svg|mod)$`)
	member    = regexp.MustCompile(`(?:\b([a-z]\w*)\.)?\b([A-Z]\w*)\.([A-Z]\w*)`)
	qualified = regexp.MustCompile(`\b([a-z]\w*)\.([A-Z]\w*)`)
	word      = regexp.MustCompile(`^([A-Z]\w*[a-z]\w*|[a-z]+[A-Z]\w*)(?:$|[({])`)
	literal   = regexp.MustCompile(`\b([A-Z]\w*)\{([^{}]*)\}`)
	field     = regexp.MustCompile(`\b([A-Z]\w*):`)
	target    = regexp.MustCompile(`^make ([a-z]+)`)
	command   = regexp.MustCompile(`\bratelimit( [a-z]+[^|>#;&]*)`)
	flag      = regexp.MustCompile(`--[a-z][a-z-]*`)
	local     = regexp.MustCompile(`(?:^|\s)(\./[\w./-]+)`)
	enter     = regexp.MustCompile(`^cd ([\w/-]+) &&`)
)

// faults returns what a span names that does not exist.
func (r *repository) faults(document string, s span) (faults []string) {
	fault := func(what, name string) {
		if foreign[name] != "" {
			r.excepted[name] = true
			return
		}
		faults = append(faults, fmt.Sprintf("there is no %s %s", what, name))
	}
	if name := s.text; !s.code && pathName.MatchString(name) {
		first, _, slash := strings.Cut(name, "/")
		switch {
		case slash && document == "benchmarks/README.md" && !extension.MatchString(name):
			if strings.Contains(r.scenarios, `"`+first) && !r.isScenario(name) {
				fault("scenario", name)
			}
		case extension.MatchString(name) || slash && slices.Contains(r.top, first):
			if !r.exists(name, s.dirs) {
				fault("file or folder", name)
			}
		}
	}
	if !s.code || s.lang == "go" {
		r.checkGo(s, fault)
	}
	if s.lang != "go" {
		r.checkCommands(s, fault)
	}
	return faults
}

// checkGo checks names of ours: package.Name, Type.Member, Type{Field: …}, and in backticks
// a Name or aName that stands alone or is called.
func (r *repository) checkGo(s span, fault func(what, name string)) {
	for _, found := range qualified.FindAllStringSubmatch(s.text, -1) {
		if names := r.packages[found[1]]; names != nil && !names[found[2]] {
			fault("Go name", found[0])
		}
	}
	if s.code {
		return
	}
	for _, found := range member.FindAllStringSubmatch(s.text, -1) {
		ours := r.packages[found[1]] != nil || found[1] == ""
		if ours && !r.members[found[2]][found[3]] {
			fault("Go name", found[0])
		}
	}
	for _, found := range literal.FindAllStringSubmatch(s.text, -1) {
		for _, f := range field.FindAllStringSubmatch(found[2], -1) {
			if r.members[found[1]] != nil && !r.members[found[1]][f[1]] {
				fault("field", found[1]+"."+f[1])
			}
		}
	}
	if found := word.FindStringSubmatch(s.text); found != nil && !r.names[found[1]] {
		fault("Go name", found[1])
	}
}

// checkCommands checks make targets, the program's commands and their flags, and folders
// that go is asked to run or test.
func (r *repository) checkCommands(s span, fault func(what, name string)) {
	if found := target.FindStringSubmatch(s.text); found != nil && !strings.Contains(r.makefile, "\n"+found[1]+":") {
		fault("target", s.text)
	}
	for _, found := range command.FindAllStringSubmatch(s.text, -1) {
		r.checkCommand(found[1], fault)
	}
	if !s.code && strings.HasPrefix(s.text, "--") {
		name := flag.FindString(s.text)
		if !slices.ContainsFunc(slices.Collect(maps.Values(r.help)), func(help string) bool { return hasFlag(help, name) }) {
			fault("flag", name)
		}
	}
	dirs := s.dirs
	if found := enter.FindStringSubmatch(s.text); found != nil {
		dirs = []string{found[1]}
	}
	for _, found := range local.FindAllStringSubmatch(s.text, -1) {
		if strings.Contains(s.text, "go ") && !r.exists(strings.TrimSuffix(found[1], "/..."), dirs) {
			fault("folder", found[1])
		}
	}
}

// checkCommand checks the words that follow the program's name: a command, commands below
// it, and flags.
func (r *repository) checkCommand(words string, fault func(what, name string)) {
	name := "ratelimit"
	for _, w := range strings.Fields(words) {
		if r.help[name+" "+w] == "" {
			break
		}
		name += " " + w
	}
	if name == "ratelimit" {
		fault("command", "ratelimit "+strings.Fields(words)[0])
		return
	}
	for _, f := range flag.FindAllString(words, -1) {
		if !hasFlag(r.help[name], f) {
			fault("flag", name+" "+f)
		}
	}
}

func hasFlag(help, flag string) bool {
	return regexp.MustCompile(regexp.QuoteMeta(flag) + `\s`).MatchString(help)
}
