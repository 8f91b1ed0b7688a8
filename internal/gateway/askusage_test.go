package gateway

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// refuser is a server that refuses stream_options, and counts its requests.
type refuser struct{ requests atomic.Int64 }

func (s *refuser) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	body, _ := io.ReadAll(r.Body)
	if strings.Contains(string(body), "stream_options") || strings.Contains(string(body), "refused") {
		http.Error(w, "stream_options: extra fields not permitted", http.StatusUnprocessableEntity)
		return
	}
	io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: [DONE]\n\n")
}

// A server that refuses stream_options gets a stream twice only once, if the account is the
// gateway's. A client's own account, or a body that is refused either way, must not switch
// metering off for others.
func TestAServerThatRefusesStreamOptionsIsRemembered(t *testing.T) {
	t.Setenv("KEY", "sk")
	refused := strings.Replace(unasked, "Hello", "refused", 1)
	for _, c := range []struct {
		name, provider string
		bodies         []string
		requests       int64
	}{
		{"the gateway's key", "base_url: MOCK, key: {env: KEY}", []string{unasked, unasked, unasked}, 4},
		{"the client's key", "base_url: MOCK", []string{unasked, unasked, unasked}, 6},
		{"refused either way", "base_url: MOCK, key: {env: KEY}", []string{refused, refused, unasked, unasked}, 7},
		{"said by the configuration", "base_url: MOCK, stream_usage: off", []string{unasked, unasked}, 2},
	} {
		server := new(refuser)
		r := newRigBefore(t, "providers: {x: {"+c.provider+", models: {gpt-4o: {max_rpm: 100, max_tpm: 100000}}}}\n", server)
		for _, body := range c.bodies {
			r.post(t, "/x/v1/chat/completions", body)
		}
		r.settled(t)
		if got := server.requests.Load(); got != c.requests {
			t.Errorf("%s: the server has had %d requests, want %d", c.name, got, c.requests)
		}
		s := r.Models().Stats("x/gpt-4o")
		if int64(s.RPM) != c.requests {
			t.Errorf("%s: %d requests are charged, of %d", c.name, s.RPM, c.requests)
		}
		if s.TPM < 50 { // max_tokens is charged, because usage is unknown
			t.Errorf("%s: %d tokens are charged", c.name, s.TPM)
		}
	}
}

// A deployment is asked for usage again after a while: it may have been upgraded.
func TestAServerIsAskedForUsageAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var u expiringSet
		if u.has(1) {
			t.Error("it is not asked, although it has refused nothing")
		}
		u.add(1, usageRefusedFor)
		time.Sleep(usageRefusedFor - 1)
		if !u.has(1) {
			t.Error("usage is asked for too early")
		}
		time.Sleep(time.Nanosecond)
		if u.has(1) {
			t.Error("it is never asked again")
		}
	})
}

// A server that refuses stream_options for one model, which another server may serve, or for
// an old api-version, is still asked for the usage of its other models.
func TestOneModelDoesNotSwitchMeteringOffForOthers(t *testing.T) {
	t.Setenv("KEY", "sk")
	server := new(refuser)
	r := newRigBefore(t, "providers: {x: {base_url: MOCK, key: {env: KEY}, models: {\"*\": {max_rpm: 100}}}}\n", server)
	for i, c := range []struct {
		path, model string
		requests    int64
	}{
		{"/x/v1/chat/completions?api-version=1", "gpt-4o", 2},
		{"/x/v1/chat/completions?api-version=1", "gpt-4o", 1},
		{"/x/v1/chat/completions?any=thing&api-version=1", "gpt-4o", 1},
		{"/x/v1/chat/completions?api-version=2", "gpt-4o", 2},
		{"/x/v1/chat/completions?api-version=1", "gpt-4.1", 2},
	} {
		before := server.requests.Load()
		r.post(t, c.path, strings.Replace(unasked, "gpt-4o", c.model, 1))
		if got := server.requests.Load() - before; got != c.requests {
			t.Errorf("stream %d: the server has had %d requests, want %d", i, got, c.requests)
		}
	}
}
