package issuer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"dappco.re/go/core/go-ratelimit/internal/loopback"
)

const (
	fetchTimeout = 10 * time.Second
	maxFetched   = 1 << 20 // bytes of a document of the issuer's
	maxKeys      = 100

	// refreshEvery is how often keys are fetched, so that one which the issuer has withdrawn is not valid for longer.
	// retryEvery is how often they may be fetched in between: because a token names a key that is not known, as
	// strangers can with every request, or because the last fetch has failed.
	refreshEvery = 10 * time.Minute
	retryEvery   = 15 * time.Second
)

// keySet has the keys of an issuer. It fetches them when they are first needed, when they are old, and when a token
// names one that is not known. While they are fetched, tokens that name a known key do not wait.
type keySet struct {
	fetch func() ([]jose.JSONWebKey, error)

	mu       sync.Mutex
	now      *published    // nil: none were fetched yet
	tried    time.Time     // when the last fetch began that was not due, or that has failed
	lastErr  error         // of the last fetch
	fetching chan struct{} // closed when the fetch in progress has ended; nil: none is in progress
}

// published is the keys that an issuer has published at one time.
type published struct {
	keys []jose.JSONWebKey
	at   time.Time
}

// current returns the keys that were fetched last, or nil, and has them fetched anew if they are old.
func (s *keySet) current(now time.Time) *published {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != nil && now.Sub(s.now.at) >= refreshEvery {
		s.refresh(now)
	}
	return s.now
}

// find returns the keys with an id that may have signed by an algorithm, of the keys that were fetched last. Without
// an id, all keys for the algorithm may have.
func (s *keySet) find(id, algorithm string, now time.Time) ([]jose.JSONWebKey, *published, error) {
	s.current(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.matching(id, algorithm)
	if len(found) == 0 {
		s.refresh(now)
		if fetched := s.fetching; fetched != nil {
			s.mu.Unlock()
			<-fetched
			s.mu.Lock()
			found = s.matching(id, algorithm)
		}
	}
	if s.now == nil {
		return nil, nil, fmt.Errorf("%w: %v", ErrUnavailable, s.lastErr)
	}
	return found, s.now, nil
}

// refresh begins to fetch the keys, unless that was tried a moment ago. A fetch that was due does not count as such: a
// rotation just after it is seen at once. The caller has locked mu.
func (s *keySet) refresh(now time.Time) {
	if s.fetching != nil || !s.tried.IsZero() && now.Sub(s.tried) < retryEvery {
		return
	}
	due := s.now == nil || now.Sub(s.now.at) >= refreshEvery
	s.tried, s.fetching = now, make(chan struct{})
	go func() {
		keys, err := s.fetch()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lastErr = err
		if err == nil {
			s.now = &published{keys, now}
			if due {
				s.tried = time.Time{}
			}
		}
		close(s.fetching)
		s.fetching = nil
	}()
}

func (s *keySet) matching(id, algorithm string) (found []jose.JSONWebKey) {
	if s.now == nil {
		return nil
	}
	for _, k := range s.now.keys {
		if (id == "" || k.KeyID == id) && (k.Algorithm == "" || k.Algorithm == algorithm) {
			found = append(found, k)
		}
	}
	return found
}

// fetchKeys fetches the public keys with which the issuer signs.
func (i *Issuer) fetchKeys() ([]jose.JSONWebKey, error) {
	at := i.cfg.JWKS
	if at == "" {
		d, err := i.discover()
		if err != nil {
			return nil, err
		}
		at = d.JWKS
	}
	var set jose.JSONWebKeySet
	if err := i.get(at, &set); err != nil {
		return nil, err
	}
	var keys []jose.JSONWebKey
	for _, k := range set.Keys {
		if k.IsPublic() && k.Valid() && (k.Use == "" || k.Use == "sig") && len(keys) < maxKeys {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("the issuer publishes no key for signatures")
	}
	return keys, nil
}

// discovery is an issuer's configuration, as OpenID Connect Discovery has it.
type discovery struct {
	Issuer    string `json:"issuer"`
	Authorize string `json:"authorization_endpoint"`
	Token     string `json:"token_endpoint"`
	JWKS      string `json:"jwks_uri"`

	Methods []string `json:"token_endpoint_auth_methods_supported"` // how a client proves who it is
}

// discover fetches the issuer's configuration.
func (i *Issuer) discover() (d discovery, err error) {
	if err := i.get(strings.TrimSuffix(i.cfg.Issuer, "/")+"/.well-known/openid-configuration", &d); err != nil {
		return d, err
	}
	if d.Issuer != i.cfg.Issuer {
		return d, fmt.Errorf("the configuration is of the issuer %.100q, and not of %q", d.Issuer, i.cfg.Issuer)
	}
	return d, nil
}

// get fetches a JSON document of the issuer's.
func (i *Issuer) get(from string, to any) error {
	if err := CheckURL(from); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, from, nil)
	if err != nil {
		return err
	}
	return i.do(req, to)
}

// do sends a request to the issuer, and decodes its answer.
func (i *Issuer) do(req *http.Request, to any) error {
	req.Header.Set("Accept", "application/json")
	resp, err := i.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers with status %d", req.URL.Redacted(), resp.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxFetched))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, to); err != nil {
		return fmt.Errorf("what %s answers is not the JSON that it should be", req.URL.Redacted())
	}
	return nil
}

// CheckURL returns what is wrong with a URL of an issuer's, or nil.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || u.Scheme != "https" && (u.Scheme != "http" || !loopback.Is(u.Host)) {
		return errors.New("it must be a URL that begins with https://, or with http:// on this machine")
	}
	return nil
}
