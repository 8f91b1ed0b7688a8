package main

import (
	"context"
	"crypto/rand"
	"strconv"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/throttled/throttled/v2"
	throttledredis "github.com/throttled/throttled/v2/store/goredisstore.v9"
	ulule "github.com/ulule/limiter/v3"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"
)

const (
	nameRedisStore = "redisstore"
	nameEvalsha    = "an EVALSHA a decision"
	nameOnce       = "an EVALSHA a decision, which happens once"
)

// vast admits all that is asked here, and regains one a second: what was used stays in Redis while
// others have their turns.
var vast = quota{1_000_000_000, 30 * 365 * 24 * time.Hour}

// patience is for how long a call of ours may take, which is what go-redis allows: a busy machine is
// not a lost server.
const patience = 5 * time.Second

// asker is a contestant at work on one server.
type asker struct {
	ask   func(key string) (allowed bool, err error)
	close func()
}

// redisContestant is one way of limiting with Redis, with the limit vast unless its name says
// otherwise.
type redisContestant struct {
	name    string
	kind    kind
	build   func(addr string) (asker, error)
	callers int // 0: as many as any crowd has
}

// redisContestants are ours, the peers, and beside them the least that a limiter can do which asks
// for each decision by itself: without and with a key that makes it happen once.
func redisContestants() []redisContestant {
	return []redisContestant{
		{name: nameEvalsha, kind: floor, build: evalsha},
		{name: nameOnce, kind: floor, build: evalshaOnce},
		{name: nameRedisStore, kind: ours, build: redisStore(vast.limit())},
		{name: "redis_rate", kind: peer, build: redisRate},
		{name: "throttled", kind: peer, build: throttledRedis},
		{name: "ulule/limiter", kind: peer, build: ululeRedis},
	}
}

// openRedis opens a store whose counters no other contestant sees.
func openRedis(addr string, cfg redisstore.Config) (*redisstore.Store, error) {
	cfg.URL = "redis://" + addr
	cfg.Namespace = rand.Text()[:len("ratelimit")] // as long as the default
	return redisstore.New(cfg)
}

func redisStore(limits ...limit.Limit) func(addr string) (asker, error) {
	return func(addr string) (asker, error) {
		s, err := openRedis(addr, redisstore.Config{Timeout: patience})
		if err != nil {
			return asker{}, err
		}
		ctx := context.Background()
		ask := func(key string) (bool, error) {
			_, decisions, err := s.Take(ctx, []store.Charge{{Key: key, Limits: limits, N: 1}})
			return store.Allowed(decisions), err
		}
		return asker{ask, func() { s.Close() }}, nil
	}
}

// leastGCRA is no more than GCRA needs. ARGV: microseconds that one costs, and that all may.
var leastGCRA = rueidis.NewLuaScript(`
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local full = math.max(redis.call('GET', KEYS[1]) or 0, now) + ARGV[1]
if full - now > tonumber(ARGV[2]) then
  return 0
end
redis.call('SET', KEYS[1], full, 'PX', math.ceil((full - now) / 1000))
return 1
`)

// leastOnce is leastGCRA for decisions that happen once, however often they are sent: it remembers the last
// decision of a marker. KEYS besides: the marker. ARGV besides: the decision's number.
var leastOnce = rueidis.NewLuaScript(`
local time = redis.call('TIME')
local found = redis.call('MGET', KEYS[1], KEYS[2])
if found[2] and string.match(found[2], '^%d+') == ARGV[3] then
  return tonumber(string.sub(found[2], -1))
end
local now = time[1] * 1000000 + time[2]
local full = math.max(found[1] or 0, now) + ARGV[1]
if full - now > tonumber(ARGV[2]) then
  return 0
end
redis.call('SET', KEYS[2], ARGV[3] .. ' 1', 'PX', 60000)
redis.call('SET', KEYS[1], full, 'PX', math.ceil((full - now) / 1000))
return 1
`)

// evalsha has the client of redisstore, and sends one script call for each decision.
func evalsha(addr string) (asker, error) {
	return evalshaWith(addr, func(ctx context.Context, client rueidis.Client, key, each, all string) rueidis.RedisResult {
		return leastGCRA.Exec(ctx, client, []string{"least:" + key}, []string{each, all})
	})
}

// evalshaOnce is evalsha with a marker beside each decision that is under way.
func evalshaOnce(addr string) (asker, error) {
	var number atomic.Int64
	free := make(chan string, callers)
	for i := range callers {
		free <- "marker:" + strconv.Itoa(i)
	}
	return evalshaWith(addr, func(ctx context.Context, client rueidis.Client, key, each, all string) rueidis.RedisResult {
		marker := <-free
		defer func() { free <- marker }()
		return leastOnce.Exec(ctx, client, []string{"once:" + key, marker}, []string{each, all, strconv.FormatInt(number.Add(1), 10)})
	})
}

func evalshaWith(addr string, call func(ctx context.Context, client rueidis.Client, key, each, all string) rueidis.RedisResult) (asker, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	if err != nil {
		return asker{}, err
	}
	ctx := context.Background()
	each := strconv.FormatInt(vast.period.Microseconds()/vast.count, 10)
	all := strconv.FormatInt(vast.period.Microseconds(), 10)
	ask := func(key string) (bool, error) { return call(ctx, client, key, each, all).AsBool() }
	return asker{ask, client.Close}, nil
}

// goRedis is the peers' client as it comes: on 2 cores, with up to 20 connections. With one for each
// goroutine they were no faster.
func goRedis(addr string) *redis.Client { return redis.NewClient(&redis.Options{Addr: addr}) }

func redisRate(addr string) (asker, error) {
	client := goRedis(addr)
	l := redis_rate.NewLimiter(client)
	ctx, quota := context.Background(), redis_rate.Limit{Rate: int(vast.count), Burst: int(vast.count), Period: vast.period}
	ask := func(key string) (bool, error) {
		r, err := l.Allow(ctx, key, quota)
		return err == nil && r.Allowed > 0, err
	}
	return asker{ask, func() { client.Close() }}, nil
}

func throttledRedis(addr string) (asker, error) {
	client := goRedis(addr)
	l := must(throttled.NewGCRARateLimiterCtx(must(throttledredis.NewCtx(client, "throttled:")), throttled.RateQuota{
		MaxRate:  throttled.PerDuration(int(vast.count), vast.period),
		MaxBurst: int(vast.count) - 1,
	}))
	l.SetMaxCASAttemptsLimit(1 << 20) // its 10 are too few for 64 goroutines on one key: it would answer with errors
	ctx := context.Background()
	ask := func(key string) (bool, error) {
		limited, _, err := l.RateLimitCtx(ctx, key, 1)
		return !limited, err
	}
	return asker{ask, func() { client.Close() }}, nil
}

// ululeRedis counts in a fixed window: it has no GCRA.
func ululeRedis(addr string) (asker, error) {
	client := goRedis(addr)
	s, err := ululeredis.NewStore(client)
	if err != nil {
		client.Close()
		return asker{}, err
	}
	l := ulule.New(s, ulule.Rate{Period: vast.period, Limit: vast.count})
	ctx := context.Background()
	ask := func(key string) (bool, error) {
		c, err := l.Get(ctx, key)
		return !c.Reached, err
	}
	return asker{ask, func() { client.Close() }}, nil
}
