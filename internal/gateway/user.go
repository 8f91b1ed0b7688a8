package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/control"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/project"
)

// identifyUser finds the user of the request in its token, or in a header if the configuration names one.
func (x *exchange) identifyUser() *refusal {
	user := x.tokenUser // which no header replaces
	if name := x.cfg.Users.Header; name != "" && user == "" {
		var refused *refusal
		user, refused = x.headerOnce(name)
		if refused != nil {
			return refused
		}
	}
	return x.setUser(user)
}

// readUser finds the user of the request in its body, if the configuration names fields and no
// header has named the user.
func (x *exchange) readUser() *refusal {
	if x.User != "" {
		return nil
	}
	for _, field := range x.cfg.Users.Fields {
		if user := x.call.Request.User(x.body, field); user != "" {
			return x.setUser(user)
		}
	}
	return nil
}

// setUser sets the user of the request, who may be nobody, and with that its path and its rules.
func (x *exchange) setUser(user string) *refusal {
	x.path = x.Project
	if user != "" {
		x.User = x.countedUser(userName(user, project.MaxID-len(x.Project)-1))
		x.path += "/" + x.User
		if err := project.CheckID(x.path); err != nil {
			return refusalf(http.StatusBadRequest, "project %q has no room for its users: %s", x.Project, message.Detail(err, project.ErrInvalid))
		}
	}
	x.levels = x.setup.tree.Append(x.levelRoom[:0], x.path)
	if s := x.g.controls.State(); s.HasTerms() {
		x.levels = switchedLevels(x.setup.tree, s, x.path)
	}
	x.rules = x.levels[len(x.levels)-1]
	return nil
}

// switchedLevels returns what the configuration says of a path and of all above it, as
// [config.Tree.Append] does, with what an operator has set in place of what the file says. The last says how the calls of
// the path are treated.
func switchedLevels(tree *config.Tree, s *control.State, path string) (levels []*config.Project) {
	for id := range control.Levels(path) {
		rules := tree.At(id)
		if models := s.Project(id).Models; len(models) > 0 {
			switched := config.Project{}
			if rules != nil {
				switched = *rules
			} else {
				switched = *levels[len(levels)-1] // the first name has rules, if only the defaults
			}
			switched.Models = models
			rules = &switched
		}
		if rules != nil {
			levels = append(levels, rules)
		}
	}
	last := *levels[len(levels)-1]
	s.Apply(path, &last)
	levels[len(levels)-1] = &last
	return levels
}

// hashedUser is how many bytes of a hash stand for a user whose name is too long.
const hashedUser = 16

// userName returns the name of a user as a part of a project's path: escaped, so that it is one name
// that is no template, and none that leads elsewhere where paths are resolved. A name that has more
// than room bytes is a hash of the user behind a ~, with which no other name begins.
func userName(user string, room int) string {
	name := url.PathEscape(user)
	if strings.Trim(user, ".") == "" || user[0] == '~' {
		name = strings.ReplaceAll(name, ".", "%2E")
		name = strings.ReplaceAll(name, "~", "%7E")
	}
	if len(name) <= room {
		return name
	}
	hash := sha256.Sum256([]byte(user))
	return "~" + hex.EncodeToString(hash[:hashedUser])
}

// identifyRun finds the run that the request is a part of, if runs have limits.
func (x *exchange) identifyRun() *refusal {
	if x.cfg.Runs == (config.Runs{}) {
		return nil
	}
	run, refused := x.headerOnce(fieldRun)
	if refused != nil || x.r.Header[fieldRun] == nil {
		return refused
	}
	if err := project.CheckRun(run); err != nil {
		return refusalf(http.StatusBadRequest, "X-Run-ID: %s", message.Detail(err, project.ErrInvalid))
	}
	x.Run = x.countedRun(shortened(run))
	return nil
}

// Terms returns how calls of a project are treated, and the models that it may call itself, whatever those above it
// may, with what an operator has switched at run time. No models are all.
func (g *Gateway) Terms(id string) config.Project {
	tree, switched := g.setup.Load().tree, g.controls.State()
	levels := switchedLevels(tree, switched, id)
	terms := *levels[len(levels)-1]
	if tree.At(id) == nil && switched.Project(id).Models == nil {
		terms.Models = nil
	}
	return terms
}
