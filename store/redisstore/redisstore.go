// Package redisstore is a [store.Store] in Redis or Valkey, which any number of
// machines share exactly.
//
// A node decides with package limit, on what it knows of the accounts that it uses. One call of a
// script, whatever the number of limits and outside of clusters whatever the number of keys, reads
// the server's clock, compares what the node knows with what is there, and records the decision. If
// other nodes have charged more than the limits have to spare, the node decides again. Decisions that
// are asked for while others are under way share the next call.
//
// # Exactly once
//
// A call whose answer gets lost is sent again, and does not charge twice: the server
// remembers the answers to the last calls for a minute, and repeats them. If a caller has
// left before the answer arrives, what was taken for it is given back.
//
// # Servers
//
// The URL names a server, nodes of a cluster, or Sentinels: see [Config]. Servers must be
// Redis 7.0, Valkey 7.2, or newer. In a cluster, keys with the same beginning, up to their
// last slash, are in one slot, and one call decides on them. Keys of different slots are
// taken one after another, in one order for all nodes, and given back if a later one
// denies. While that happens, another call may be denied that would have passed.
//
// Redis should not evict keys that are in use: set its maxmemory-policy to
// noeviction, or to one that evicts by time to live. If Redis evicts usage, or loses it
// (Redis was killed, and its append-only file is up to a second behind; a replica took
// over that was a little behind), as much may be admitted again: at most what was admitted
// in the time that was lost. A key expires once nothing of it is in use any more. If Redis has
// forgotten everything, the nodes put back what it last said to them: see [StoreLoss].
package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
	"github.com/redis/rueidis"
)

// Config configures a [Store]. The zero Config is ready to use.
type Config struct {
	// URL is the address of the server, as in
	//
	//	redis://127.0.0.1:6379/0
	//	rediss://user:password@redis.example.com:6380
	//	redis://sentinel-1:26379?addr=sentinel-2:26379&master_set=mymaster
	//	redis://node-1:6379?addr=node-2:6379&addr=node-3:6379
	//
	// with rediss for TLS, a user and password of Redis's ACL, and the names of further Sentinels
	// or nodes of a cluster. A timeout in it, as in ?timeout=1s, is the Timeout if that is 0. The default is
	// redis://127.0.0.1:6379/0.
	URL string

	// Namespace is the prefix of the names of all keys. Stores with the same namespace share their
	// limits. The default is "ratelimit".
	Namespace string

	// Timeout is the longest time that a call waits for Redis. A call that must charge something
	// else first (what was admitted while Redis was lost) waits up to this time
	// for each charge, and Reset and Keys do for each thousand keys. The default is 250ms.
	Timeout time.Duration

	// OnStoreLoss is what to do while Redis is lost. The default is Deny.
	OnStoreLoss StoreLoss

	// OnEvent is called with events about Redis: it keeps nothing when it is restarted, it is lost, the node has
	// decided without it, it is back, it was charged for what was admitted without it. The calls come in order, one at
	// a time, and should not take long. OnEvent may be nil.
	OnEvent func(store.Event)
}

const (
	defaultURL       = "redis://127.0.0.1:6379/0"
	defaultNamespace = "ratelimit"
	defaultTimeout   = 250 * time.Millisecond
	maxNamespace     = 200
	announceEvery    = 2 * time.Second // how often a node announces itself, with Share
)

// Store is a [store.Store] in Redis. Make one with [New] or [NewFromClient].
type Store struct {
	client    rueidis.Client
	owned     bool // the store closes the client
	namespace string
	timeout   time.Duration
	channel   channel // for messages between nodes
	books     *bookkeeper

	top   layer // gets the calls of the store first
	close func() error
}

var _ store.Store = (*Store)(nil)

// New connects to the server and returns a store in it. It returns an error if the server does not
// answer.
func New(cfg Config) (*Store, error) {
	option, timeout, err := parseURL(cmp.Or(cfg.URL, defaultURL))
	if err != nil {
		return nil, err
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, timeout, defaultTimeout)
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	timeout = cfg.Timeout
	option.DisableCache = true
	if option.Dialer.Timeout == 0 {
		option.Dialer.Timeout = max(timeout, time.Second)
	}
	if option.ConnWriteTimeout == 0 {
		option.ConnWriteTimeout = max(timeout, time.Second) // after this time the client closes a silent connection
	}
	if option.TLSConfig != nil {
		option.TLSConfig.ServerName = "" // the default: the host of each server
		option.Sentinel.TLSConfig = option.TLSConfig
	}
	client, err := rueidis.NewClient(option)
	if err != nil {
		return nil, refusedBy(option.InitAddress[0], err)
	}
	s, err := NewFromClient(client, cfg)
	if err != nil {
		client.Close()
		return nil, err
	}
	s.owned = true
	return s, nil
}

// refusedBy returns the error for a server that cannot be used. If the server has answered with an
// error, it is not lost.
func refusedBy(address string, err error) error {
	if _, ok := rueidis.IsRedisErr(err); ok {
		return fmt.Errorf("ratelimit: %s: %w", address, advised(err))
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok {
		err = dial.Err // without the address, which is there already
	}
	return fmt.Errorf("%w: no connection to %s: %w", ErrLost, address, err)
}

// parseURL parses a URL, and returns the timeout in it, or 0. Its errors do not quote the URL, which may contain a
// password.
func parseURL(text string) (option rueidis.ClientOption, timeout time.Duration, err error) {
	option, err = rueidis.ParseURL(text)
	if err != nil {
		return option, 0, fmt.Errorf("ratelimit: the URL of Redis cannot be read: it must be like %s, or begin with rediss for TLS; "+
			"in a user or password, characters such as / and %% must be escaped", defaultURL)
	}
	parsed, err := url.Parse(text)
	if err != nil || !parsed.Query().Has("timeout") {
		return option, 0, err
	}
	timeout, err = time.ParseDuration(parsed.Query().Get("timeout"))
	if err != nil || timeout == 0 {
		return option, 0, fmt.Errorf("ratelimit: the timeout %.40q in the URL of Redis: it must be like 250ms or 1s", parsed.Query().Get("timeout"))
	}
	return option, timeout, nil
}

// NewFromClient returns a store in the server of a client, which the caller closes, after the
// store. The URL in cfg is not used. A client whose ConnWriteTimeout is about a second notices a
// dead connection sooner.
func NewFromClient(client rueidis.Client, cfg Config) (*Store, error) {
	if client == nil {
		return nil, errors.New("ratelimit: no client is given")
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Store{
		client:    client,
		namespace: cmp.Or(cfg.Namespace, defaultNamespace),
		timeout:   cmp.Or(cfg.Timeout, defaultTimeout),
		channel:   channel{id: rand.Text()},
	}
	s.build(cfg)
	s.close = sync.OnceValue(func() error {
		s.channel.subscriptions.Close()
		internals{s}.AwaitSettled()
		s.books.close()
		err := s.top.Close()
		if s.owned {
			s.client.Close()
		}
		return err
	})
	return s, nil
}

// validate returns an error that says what is wrong with cfg and what is allowed, or nil.
func (cfg Config) validate() error {
	switch err := cfg.OnStoreLoss.Validate(); {
	case err != nil:
		return err
	case len(cfg.Namespace) > maxNamespace || strings.ContainsAny(cfg.Namespace, "{}"):
		return fmt.Errorf("ratelimit: the namespace %.40q: it may have %d bytes, and no braces", cfg.Namespace, maxNamespace)
	case cfg.Timeout != 0 && cfg.Timeout < time.Millisecond:
		return fmt.Errorf("ratelimit: a timeout of %v: it must be a millisecond or more", cfg.Timeout)
	}
	return nil
}

// build makes the layers of the store.
func (s *Store) build(cfg Config) {
	mode := cmp.Or(cfg.OnStoreLoss, Deny)
	var others *nodes
	if mode == Share {
		others = newNodes(s.client, s.namespace, announceEvery)
	}
	var fall *fallback
	var remote *remote
	remote = newRemoteOf(s.client, linkConfig{
		namespace: s.namespace,
		timeout:   s.timeout,
		changed:   func(c change) { fall.changed(c) },
		restore: func(part int) error {
			fall.ledgers.awaitCalls(s.timeout)
			return remote.restore(fall.ledgers.observedIn(func(key string) bool { return !remote.cluster || partOf(key) == part }))
		},
	})
	fall = newFallback(remote, mode, others, cfg.OnEvent)
	fall.clock = remote.link.now
	if others != nil {
		fall.groupOf = remote.link.groupOf
		others.start()
	}
	s.books = newBookkeeper(remote)
	s.top = fall
	if cfg.OnEvent != nil {
		if err := s.unsaved(); err != nil {
			fall.emit(store.Event{Kind: store.Unsaved, Err: err})
		}
	}
}

// Take implements [store.Store].
func (s *Store) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	return s.top.Take(ctx, charges)
}

// Settle implements [store.Store]. After an error it may be called again, with the same amounts: it
// settles what the first call has not settled.
func (s *Store) Settle(ctx context.Context, r store.Receipt, actual []int64) error {
	return s.top.Settle(ctx, r, actual)
}

// Peek implements [store.Store].
func (s *Store) Peek(ctx context.Context, charges []store.Charge) ([]limit.Decision, error) {
	return s.top.Peek(ctx, charges)
}

// Read implements [store.Store].
func (s *Store) Read(ctx context.Context, keys ...string) ([]*limit.Account, int64, error) {
	return s.top.Read(ctx, keys...)
}

// Keys implements [store.Store]. It scans every key of the database.
func (s *Store) Keys(ctx context.Context, prefix string) ([]string, error) {
	return s.top.Keys(ctx, prefix)
}

// Reset implements [store.Store]. It scans every key of the database.
func (s *Store) Reset(ctx context.Context, prefix string) error { return s.top.Reset(ctx, prefix) }

// Close ends subscriptions, sends what is not in the books yet, charges Redis for what was admitted without it, and
// ends all calls.
// Later calls get [store.ErrClosed].
func (s *Store) Close() error { return s.close() }
