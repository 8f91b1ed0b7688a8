package gateway

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/gateway/config"
	"dappco.re/go/core/go-ratelimit/gateway/keys"
	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/project"
)

// anyone is the project of requests that name none.
const anyone = "default"

const fieldProject = "X-Project-Id"

// Where clients put a key, each as its SDK does.
var fieldsOfKeys = []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Api-Key"}

// identify finds out whose request it is: by its virtual key, or by X-Project-ID where
// there are none.
func (x *exchange) identify() *refusal {
	if x.cfg.Keys == config.KeysRequired {
		key, ok := x.key()
		if !ok {
			return x.bad(http.StatusUnauthorized, x.needKey())
		}
		x.Project, x.Key = key.Project, key.ID
		x.keepKeys()
	} else {
		id := anyone
		if said := x.r.Header[fieldProject]; said != nil {
			id = said[0]
		}
		if err := project.CheckID(id); err != nil {
			return x.bad(http.StatusBadRequest, "X-Project-ID: "+strings.TrimPrefix(err.Error(), project.ErrInvalid.Error()+": "))
		}
		x.Project = shortened(id)
		if x.carriesKey() {
			return x.bad(http.StatusUnauthorized, "this gateway has virtual keys switched off, and does not send them on: send the provider's own key, or have the configuration say keys: required")
		}
		if no := x.checkSignature(); no != nil {
			return no
		}
	}
	x.rules = x.cfg.Projects[x.Project]
	if x.rules == nil {
		x.rules = x.cfg.Defaults
	}
	return nil
}

// key returns the virtual key of the request.
func (x *exchange) key() (keys.Key, bool) {
	for _, secret := range x.secrets() {
		if key, ok := x.g.keys.Find(secret); ok {
			return key, true
		}
	}
	return keys.Key{}, false
}

// secrets returns what stands where keys do.
func (x *exchange) secrets() []string {
	found := make([]string, 0, 4)
	for _, field := range fieldsOfKeys {
		for _, value := range x.r.Header[field] {
			if scheme, token, ok := strings.Cut(value, " "); ok && strings.EqualFold(scheme, "bearer") {
				value = strings.TrimSpace(token)
			}
			found = append(found, value)
		}
	}
	if x.target.RawQuery == "" {
		return found
	}
	for pair := range strings.SplitSeq(x.target.RawQuery, "&") {
		if name, value := parameter(pair); slices.Contains(ofCredentials, name) {
			found = append(found, value)
		}
	}
	return found
}

// authorize puts the deployment's key in the place of whatever the client has sent. If
// it has none, the client's own stays.
func (x *exchange) authorize(h http.Header, d *deployment, u *url.URL) {
	x.shared = x.sharedAt(d)
	if !x.shared {
		x.hides, x.call.Applies = nil, x.heeded
		return
	}
	x.hides, x.call.Applies = d.hides, nil
	delete(h, "Accept-Encoding") // what is compressed could not be searched for the key
	for _, field := range fieldsOfKeys {
		delete(h, field)
	}
	if x.has&(kindAccount|kindSignature) != 0 { // nothing that the client signs or hashes is sent with another's key
		drop(h, kindAccount|kindSignature)
	}
	u.RawQuery = without(without(u.RawQuery, ofCredentials), ofSignature)
	if d.key != "" {
		x.putKey(h, d.key)
	}
}

// sharedAt reports whether the account at a deployment is the gateway's.
func (x *exchange) sharedAt(d *deployment) bool {
	return d.key != "" || d.signer != nil || x.cfg.Keys == config.KeysRequired
}

// ownSignature reports whether the client has signed the request with credentials of its
// own, which pass through. Where any deployment's account is the gateway's, a signature of
// the client's means nothing, and must not keep the gateway from asking for usage.
func (x *exchange) ownSignature() bool {
	return !slices.ContainsFunc(x.upstream.deployments, x.sharedAt) && call.Signed(x.r.Header, x.target.RawQuery)
}
