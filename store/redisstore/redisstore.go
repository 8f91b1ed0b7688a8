// Package redisstore is a [store.Store] in Redis or Valkey, which any number of
// machines share exactly.
//
// A decision is one script call, whatever the number of limits and algorithms, and in
// general of keys: the script reads the server's clock, and does exactly the arithmetic of
// package limit. Decisions that are asked for while others are under way wait together,
// and share the next call.
//
// # Exactly once
//
// An answer that gets lost does not charge twice: the server remembers the answers to each
// lane's last call for a minute, and repeats them if the call is repeated. What was taken
// for a caller that has left in the meantime is given back.
//
// # Servers
//
// The URL names a server, nodes of a cluster, or Sentinels: see [Config]. It must be
// Redis 6.2, Valkey 7.2, or newer. In a cluster, keys
// with the same beginning, up to their last slash, are in one slot, and decided on
// together. Others are taken one after another, in one order for all nodes, and given
// back if a later one denies: for as long as that takes, another call may be denied that
// would have passed.
//
// Redis should not evict keys that are in use: set its maxmemory-policy to
// noeviction, or to one that evicts by time to live. Usage that it has evicted or lost
// (it was killed, and its append-only file is up to a second behind; a replica took over
// that was a little behind) may be admitted again: at most what was admitted in the time
// that was lost. Once a key is full again it expires.
package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
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
	// or nodes of a cluster. The default is redis://127.0.0.1:6379/0.
	URL string

	// Namespace is the prefix of the names of all keys. Stores with the same namespace share their
	// limits. The default is "ratelimit".
	Namespace string

	// Timeout is the longest time that a call waits for Redis. A call that has to charge something
	// else first (what was admitted while Redis was lost, the end of a lease) waits for each, and
	// Reset and Keys wait for each thousand keys. The default is 250ms.
	Timeout time.Duration

	// OnStoreLoss is what to do while Redis is lost. The default is Deny.
	OnStoreLoss StoreLoss

	// Lease is for how long a node sets aside slices of the limits of keys that it takes from
	// often, to take from them without asking Redis. A slice is at most a sixteenth of the smallest
	// limit of its key, and limits whose period is less than twice as long have none. Nothing
	// overshoots: a slice counts as used from the time at which it is taken, and what was not taken
	// from it comes back when it ends, at the latest after this time. Until then the other nodes
	// have that much less, and Remaining in decisions is what this node knows. A slice whose end
	// arrives late at the server, by an eighth of this time, is charged in full. The default is 0:
	// no leases. 100ms is a good choice; it must be from 50ms to a minute.
	Lease time.Duration

	// OnEvent is called when Redis is lost, for decisions without it, when it is back, and for what
	// it is charged then. The calls come in order, one at a time, and should not take long. It may
	// be nil.
	OnEvent func(Event)
}

const (
	defaultURL       = "redis://127.0.0.1:6379/0"
	defaultNamespace = "ratelimit"
	defaultTimeout   = 250 * time.Millisecond
	maxNamespace     = 200
	announceEvery    = 2 * time.Second // with Share
)

// Store is a [store.Store] in Redis. Make one with [New] or [NewFromClient].
type Store struct {
	client    rueidis.Client
	owned     bool // the store closes the client
	namespace string
	timeout   time.Duration
	channel   channel // for messages between nodes

	top   layer
	close func() error
}

var _ store.Store = (*Store)(nil)

// New connects to the server and returns a store in it. It returns an error if the server does not
// answer.
func New(cfg Config) (*Store, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	option, err := parseURL(cmp.Or(cfg.URL, defaultURL))
	if err != nil {
		return nil, err
	}
	timeout := cmp.Or(cfg.Timeout, defaultTimeout)
	option.DisableCache = true
	if option.Dialer.Timeout == 0 {
		option.Dialer.Timeout = max(timeout, time.Second)
	}
	if option.ConnWriteTimeout == 0 {
		option.ConnWriteTimeout = max(timeout, time.Second) // after this time a silent connection is given up
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

// refusedBy returns why a server cannot be used. A server that answers with an error is not lost,
// but is not what the URL says.
func refusedBy(address string, err error) error {
	if _, ok := rueidis.IsRedisErr(err); !ok {
		return fmt.Errorf("%w: %s: %w", ErrLost, address, err)
	}
	return fmt.Errorf("ratelimit: %s: %w", address, advised(err))
}

// parseURL parses a URL. Its errors do not quote the URL, which may contain a password.
func parseURL(text string) (rueidis.ClientOption, error) {
	option, err := rueidis.ParseURL(text)
	if err != nil {
		return option, fmt.Errorf("ratelimit: the URL of Redis cannot be read: it must be like %s, or begin with rediss for TLS; "+
			"in a user or password, characters such as / and %% must be escaped", defaultURL)
	}
	return option, nil
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
		err := s.top.Close()
		if s.owned {
			s.client.Close()
		}
		return err
	})
	return s, nil
}

// validate returns what is wrong with cfg and what is allowed, or nil.
func (cfg Config) validate() error {
	switch err := cfg.OnStoreLoss.Validate(); {
	case err != nil:
		return err
	case len(cfg.Namespace) > maxNamespace || strings.ContainsAny(cfg.Namespace, "{}"):
		return fmt.Errorf("ratelimit: the namespace %.40q: it may have %d bytes, and no braces", cfg.Namespace, maxNamespace)
	case cfg.Timeout != 0 && cfg.Timeout < time.Millisecond:
		return fmt.Errorf("ratelimit: a timeout of %v: it must be a millisecond or more", cfg.Timeout)
	case cfg.Lease != 0 && cfg.Lease < 50*time.Millisecond || cfg.Lease > time.Minute:
		return fmt.Errorf("ratelimit: leases of %v: they must be from 50ms to 1m, or 0 for none", cfg.Lease)
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
	remote := newRemote(s.client, s.namespace, s.timeout, nil, func(c change) { fall.changed(c) })
	fall = newFallback(remote, mode, others, cfg.OnEvent)
	fall.clock = remote.link.now
	s.top = fall
	if cfg.Lease > 0 {
		s.top = newLeases(fall, remote, cfg.Lease)
	}
}

// Take implements [store.Store].
func (s *Store) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	return s.top.Take(ctx, charges)
}

// Settle implements [store.Store]. After an error it may be called again, with the same amounts,
// and does what the first call has not done.
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

// Close ends subscriptions, gives leases back, charges Redis for what was admitted without it, and
// ends all calls.
// Later calls get [store.ErrClosed].
func (s *Store) Close() error { return s.close() }
