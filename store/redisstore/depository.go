package redisstore

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"dappco.re/go/core/go-ratelimit/internal/accounts"
	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/store"
)

var _ accounts.Depository = internals{}

// Deposits are in hashes in Redis, all of which expire some time after the last deposit:
//
//	<namespace>:{deposits}          the deposits, by their ids
//	<namespace>:{deposits}:names    the other name of an id, and the id of a name
//	<namespace>:{deposits}:at       a sorted set: when they were deposited, in Unix seconds
//	<namespace>:{deposits}:begun    the settlements that have begun, by the ids of their deposits
//
// A settlement is written down before anything of it happens, and the first one stands. Then each part of
// it happens once, by a marker with the settlement's own name: see once in lua/books.lua. So whichever process ends in
// the middle, another one can go on, and an id may be used again.
func (s *Store) depositKeys() []string {
	key := s.namespace + ":{deposits}"
	return []string{key, key + ":names", key + ":at", key + ":begun"}
}

var (
	putDeposit = rueidis.NewLuaScript(`
if redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2]) == 0 then return 0 end
redis.call('ZADD', KEYS[3], ARGV[3], ARGV[1])
for i = 1, #KEYS do redis.call('EXPIRE', KEYS[i], 2851200) end -- 33 days
return 1
`)
	nameDeposit = rueidis.NewLuaScript(`
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return end
local before = redis.call('HGET', KEYS[2], ARGV[1])
if before then redis.call('HDEL', KEYS[2], before) end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2], ARGV[2], ARGV[1])
redis.call('EXPIRE', KEYS[2], 2851200)
`)
	findDeposit = rueidis.NewLuaScript(`
local id = ARGV[1]
local found = redis.call('HGET', KEYS[1], id)
if not found then
  id = redis.call('HGET', KEYS[2], id)
  found = id and redis.call('HGET', KEYS[1], id)
end
if not found then return {} end
return {id, found}
`)
	beginSettlement = rueidis.NewLuaScript(`
local found = redis.call('HGET', KEYS[1], ARGV[1])
if not found then return {} end
redis.call('HSETNX', KEYS[4], ARGV[1], ARGV[2])
redis.call('EXPIRE', KEYS[4], 2851200)
return {found, redis.call('HGET', KEYS[4], ARGV[1])}
`)
	dropDeposit = rueidis.NewLuaScript(`
local name = redis.call('HGET', KEYS[2], ARGV[1])
if name then redis.call('HDEL', KEYS[2], ARGV[1], name) end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('HDEL', KEYS[4], ARGV[1])
`)
	dueDeposits = rueidis.NewLuaScript(`
local due = redis.call('HKEYS', KEYS[4])
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', '(' .. ARGV[1], 'LIMIT', 0, 1000)) do due[#due + 1] = id end
local beyond = redis.call('ZCARD', KEYS[3]) - tonumber(ARGV[2])
if beyond > 0 then
  for _, id in ipairs(redis.call('ZRANGE', KEYS[3], 0, math.min(beyond, 1000) - 1)) do due[#due + 1] = id end
end
return due
`)
)

// runDeposits runs a script on the deposits.
func (s *Store) runDeposits(ctx context.Context, script *rueidis.Lua, args ...string) (rueidis.RedisResult, error) {
	within, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	result := script.Exec(within, s.client, s.depositKeys(), args)
	if err := result.Error(); err != nil && !rueidis.IsRedisNil(err) {
		return result, commandError(ctx, err)
	}
	return result, nil
}

// Deposit implements [accounts.Depository].
func (s internals) Deposit(ctx context.Context, id string, r store.Receipt, note []byte) error {
	d := accounts.Deposit{Note: note}
	if r != nil {
		own, ok := r.(*receipt)
		if !ok || own.remote != s.books.remote {
			return store.ErrReceipt
		}
		for _, t := range own.takes {
			d.Add(t.charge.Key, t.charge.Limits, t.Receipt)
		}
	}
	result, err := s.runDeposits(ctx, putDeposit, id, string(d.Encode()), strconv.FormatInt(s.books.link.now()/int64(time.Second), 10))
	if err != nil {
		return err
	}
	if n, err := result.AsInt64(); err != nil || n == 0 {
		return accounts.ErrDeposited
	}
	return nil
}

// NameDeposit implements [accounts.Depository].
func (s internals) NameDeposit(ctx context.Context, id, name string) error {
	_, err := s.runDeposits(ctx, nameDeposit, id, name)
	return err
}

// FindDeposit implements [accounts.Depository].
func (s internals) FindDeposit(ctx context.Context, name string) (id string, note []byte, err error) {
	found, err := s.pair(ctx, findDeposit, name)
	if err != nil || found == nil {
		return "", nil, err
	}
	d, err := accounts.DecodeDeposit([]byte(found[1]))
	if err != nil {
		return found[0], nil, err
	}
	return found[0], d.Note, nil
}

// pair runs a script that returns two texts, or nothing.
func (s *Store) pair(ctx context.Context, script *rueidis.Lua, args ...string) ([]string, error) {
	result, err := s.runDeposits(ctx, script, args...)
	if err != nil {
		return nil, err
	}
	found, err := result.AsStrSlice()
	if err != nil || len(found) != 2 {
		return nil, err
	}
	return found, nil
}

// begun is a settlement that has begun.
type begun struct {
	Name   string // a random one, for its markers
	Actual []int64
	Entry  *books.Entry
}

// SettleDeposit implements [accounts.Depository].
func (s internals) SettleDeposit(ctx context.Context, id string, actual []int64, e *books.Entry) error {
	found, err := s.pair(ctx, findDeposit, id)
	if err != nil || found == nil {
		return err
	}
	d, err := accounts.DecodeDeposit([]byte(found[1]))
	if err != nil {
		return err
	}
	if len(actual) != len(d.Charges) {
		return store.ErrReceipt
	}
	first, err := s.beginSettlement(ctx, id, begun{rand.Text(), actual, e})
	if err != nil || first == nil {
		return err
	}
	if err := s.finishDeposit(ctx, d, first); err != nil {
		return err
	}
	return s.DropDeposit(ctx, id)
}

// beginSettlement writes a settlement down, unless there is one, and returns the one that counts. It
// returns nil if the deposit is gone.
func (s *Store) beginSettlement(ctx context.Context, id string, own begun) (*begun, error) {
	text, err := json.Marshal(own)
	if err != nil {
		return nil, fmt.Errorf("ratelimit: the settlement of a deposit: %w", err)
	}
	found, err := s.pair(ctx, beginSettlement, id, string(text))
	if err != nil || found == nil {
		return nil, err
	}
	var first begun
	if err := json.Unmarshal([]byte(found[1]), &first); err != nil {
		return nil, fmt.Errorf("%w: its settlement: %w", accounts.ErrDeposit, err)
	}
	return &first, nil
}

// finishDeposit books and settles a deposit, as far as that has not happened yet.
func (s *Store) finishDeposit(ctx context.Context, d *accounts.Deposit, as *begun) error {
	if len(as.Actual) != len(d.Charges) {
		return store.ErrReceipt
	}
	if as.Entry != nil {
		if err := s.books.bookOnce(ctx, as); err != nil {
			return err
		}
	}
	r := s.books.remote
	takes := make([]*chargeReceipt, len(d.Charges))
	for i := range d.Charges {
		limits, _ := d.Charges[i].Terms() // which were read before
		takes[i] = &chargeReceipt{Receipt: d.Charges[i].Receipt(), charge: store.Charge{Key: d.Charges[i].Key, Limits: limits, N: d.Charges[i].N}}
	}
	for _, part := range r.byPart(len(takes), func(i int) string { return takes[i].charge.Key }) {
		part = slices.DeleteFunc(part, func(i int) bool { return as.Actual[i] < 0 || as.Actual[i] == takes[i].N })
		if len(part) == 0 {
			continue
		}
		if err := r.settleOnce(ctx, &task{kind: taskSettle, takes: pick(takes, part), actual: pick(as.Actual, part)}, as.Name); err != nil {
			return err
		}
	}
	return nil
}

// settleOnce makes a settlement, unless that has happened.
func (r *remote) settleOnce(ctx context.Context, t *task, name string) error {
	o := r.compose(newReplicas(0), []*task{t}, r.link.now()).op
	o.apart = true
	o.once(r.marker(o.part, "settled", name))
	return r.do(ctx, o)
}

// bookOnce books the entry of a settlement, unless that has happened.
func (k *bookkeeper) bookOnce(ctx context.Context, as *begun) error {
	clean := as.Entry.Clean()
	p := page{shelf: k.shelfOf(clean.Project), at: books.HourOf(k.link.now())}
	o := k.newBookOp(stepBook, p)
	o.body = appendLine(o.body, &clean)
	o.once(k.marker(p.shelf, "booked", as.Name))
	return k.link.do(ctx, o)
}

// marker returns the name in Redis of the marker of something that a settlement has done.
func (r *remote) marker(part int, done, settlement string) string {
	return r.namespace + ":{" + strconv.Itoa(part) + "}:" + done + ":" + settlement
}

// once lets an op happen once, by a marker.
func (o *op) once(marker string) {
	o.keys = append([]string{marker}, o.keys...)
	o.body = append([]byte{stepOnce}, o.body...)
}

// DropDeposit implements [accounts.Depository].
func (s internals) DropDeposit(ctx context.Context, id string) error {
	_, err := s.runDeposits(ctx, dropDeposit, id)
	return err
}

// DueDeposits implements [accounts.Depository].
func (s internals) DueDeposits(ctx context.Context, before int64, most int) ([]string, error) {
	result, err := s.runDeposits(ctx, dueDeposits, strconv.FormatInt(before/int64(time.Second), 10), strconv.Itoa(most))
	if err != nil {
		return nil, err
	}
	ids, err := result.AsStrSlice()
	if err != nil {
		return nil, commandError(ctx, err)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}
