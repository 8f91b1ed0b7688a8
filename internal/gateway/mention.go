package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/batch"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/internal/modelname"
	"dappco.re/go/core/go-ratelimit/project"
)

// What an operator has paused may be mentioned where the gateway does not look otherwise: the model of a
// request that is no call in a format that it reads, models that a call may fall back to, and users of
// such requests and of the calls of a batch. While something is paused, the gateway looks there.

// maxMentioned is how many models a request may mention while one is paused.
const maxMentioned = 100

// mayMentionPaused reports whether something is paused that a body may mention.
func (x *exchange) mayMentionPaused() bool {
	s := x.g.controls.State()
	return s.PausesModels() || x.usersInBodies() && s.PausesInside(x.Project)
}

// usersInBodies reports whether the body says who the user is.
func (x *exchange) usersInBodies() bool { return x.User == "" && len(x.cfg.Users.Fields) > 0 }

// mention notes the models that a body mentions, and its user if that is paused.
func (x *exchange) mention(body []byte) error {
	if !x.mayMentionPaused() {
		return nil
	}
	values, err := batch.Fields(body, "model", "models", "fallbacks")
	if err != nil {
		return err
	}
	for _, value := range values {
		if err := x.mentionModels(value); err != nil {
			return err
		}
	}
	if !x.usersInBodies() {
		return nil
	}
	x.mentionUser(batch.UserIn(body, x.cfg.Users.Fields))
	return nil
}

// mentionUser notes a user of the project who is paused.
func (x *exchange) mentionUser(user string) {
	path := x.Project + "/" + userName(user, project.MaxID-len(x.Project)-1)
	if user != "" && x.g.controls.State().PausedAt(path) != "" {
		x.pausedUser = path
	}
}

// mentionModels notes all texts in a JSON value, any of which may be the name of a model.
func (x *exchange) mentionModels(value []byte) error {
	for d := json.NewDecoder(bytes.NewReader(value)); ; {
		token, err := d.Token()
		if err != nil { // the value has been read before: this is its end
			return nil
		}
		name, ok := token.(string)
		if !ok || !modelname.Valid(name) || slices.Contains(x.mentioned, name) {
			continue
		}
		x.mentioned = append(x.mentioned, name)
		if len(x.mentioned) > maxMentioned {
			return fmt.Errorf("ratelimit: it names more than %d models, and one of the provider's is paused", maxMentioned)
		}
	}
}

// readMentioned reads the body of a request that is no call in a format that the gateway reads, if it may
// mention what is paused and is JSON.
func (x *exchange) readMentioned() *refusal {
	kind := strings.ToLower(x.r.Header.Get("Content-Type"))
	if x.r.ContentLength == 0 || callsNoModel(x.r.Method, x.target.Path) || kind != "" && !strings.Contains(kind, "json") || !x.mayMentionPaused() {
		return nil
	}
	if refused := firstRefusal(x.checkEncoding, x.readBody); refused != nil {
		return refused
	}
	if err := x.mention(x.body); err != nil {
		return refusalf(http.StatusBadRequest, "something is paused, and the gateway cannot tell whether the request is for it: the body: %s", message.Plain(err))
	}
	return nil
}
