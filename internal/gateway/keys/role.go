package keys

import (
	"fmt"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/project"
)

// Role is what a token of the admin API may do.
type Role string

const (
	RoleMetrics  Role = "metrics"  // read the metrics, and nothing else
	RoleViewer   Role = "viewer"   // see everything
	RoleOperator Role = "operator" // change limits, pause, and make and revoke keys, too
	RoleAdmin    Role = "admin"    // everything: make and revoke tokens, reload, and switch the gateway's mode, too
)

// Roles are all roles. Each may do what those before it may.
var Roles = []Role{RoleMetrics, RoleViewer, RoleOperator, RoleAdmin}

// Includes reports whether the role may do what another may.
func (r Role) Includes(other Role) bool {
	have, need := slices.Index(Roles, r), slices.Index(Roles, other)
	return have >= 0 && need >= 0 && have >= need
}

// CheckRole returns what is wrong with a role and what is allowed, or nil. within is the project to which a token or a
// user with the role is bound, or empty.
func CheckRole(r Role, within string) error {
	switch {
	case !slices.Contains(Roles, r):
		var names []string
		for _, each := range Roles {
			names = append(names, string(each))
		}
		return fmt.Errorf("%w: the role is %.40q: it must be one of %s", ErrInvalid, string(r), strings.Join(names, ", "))
	case within != "" && (r == RoleMetrics || r == RoleAdmin):
		return fmt.Errorf("%w: the role %s is for all projects: only viewers and operators can be bound to one", ErrInvalid, r)
	}
	return nil
}

// validateToken returns what is wrong with the fields that only tokens have, or that they lack.
func (k *Key) validateToken() error {
	if err := CheckRole(k.Role, k.Project); err != nil {
		return err
	}
	if k.Name == "" {
		return fmt.Errorf("%w: a token needs a name, which the audit log has", ErrInvalid)
	}
	if k.Limit != (project.Limit{}) || k.Models != nil {
		return fmt.Errorf("%w: a token has neither limits nor models: only keys of clients have these", ErrInvalid)
	}
	return nil
}

// Within reports whether a project is another one, or below it. All are below the empty one.
func Within(id, of string) bool {
	return of == "" || strings.HasPrefix(id, of) && (len(id) == len(of) || id[len(of)] == '/')
}
