package redisstore

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// Settings are values beside the counters, such as quotas, which all nodes with the same
// namespace see. They are in a hash in Redis. A node that changes a setting publishes a message on
// a channel with the name of the hash.

func (s *Store) settings() string { return s.namespace + ":settings" }

// patience is how long a command may take at least that no call waits for, such as one for settings: the start of a
// gateway waits for it, or a change by an operator. The command may have to connect first.
const patience = 2 * time.Second

// Settings returns all settings by their names.
func (s internals) Settings(ctx context.Context) (map[string]string, error) {
	within, cancel := context.WithTimeout(ctx, max(s.timeout, patience))
	defer cancel()
	values, err := s.client.Do(within, s.client.B().Hgetall().Key(s.settings()).Build()).AsStrMap()
	if err != nil {
		return nil, commandError(ctx, err)
	}
	return values, nil
}

// putSettings is the script that sets fields of the hash, or only new ones. It publishes a message if
// that changes any, and returns the values that the fields have then.
var putSettings = rueidis.NewLuaScript(`
local now, changed = {}, false
for i = 2, #ARGV, 2 do
  local field, value = ARGV[i], ARGV[i + 1]
  local current = redis.call('HGET', KEYS[1], field)
  if current ~= value and not (current and ARGV[1] == 'new') then
    redis.call('HSET', KEYS[1], field, value)
    current, changed = value, true
  end
  now[#now + 1] = current
end
if changed then
  redis.call('PUBLISH', KEYS[1], '')
end
return now
`)

// PutSettings sets values by their names, or with onlyNew only those of names without a value, in
// one step. It returns the values that the names have now.
func (s internals) PutSettings(ctx context.Context, values map[string]string, onlyNew bool) (map[string]string, error) {
	if len(values) == 0 {
		return nil, nil
	}
	args := []string{"all"}
	if onlyNew {
		args[0] = "new"
	}
	var names []string
	for name, value := range values {
		names = append(names, name)
		args = append(args, name, value)
	}
	within, cancel := context.WithTimeout(ctx, max(s.timeout, patience))
	defer cancel()
	now, err := putSettings.Exec(within, s.client, []string{s.settings()}, args).AsStrSlice()
	if err != nil {
		return nil, commandError(ctx, err)
	}
	current := map[string]string{}
	for i, name := range names {
		current[name] = now[i]
	}
	return current, nil
}

// swapSetting is the script that sets a field of the hash if its value is still the old one.
var swapSetting = rueidis.NewLuaScript(`
if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then
  return 0
end
if ARGV[2] ~= ARGV[3] then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
  redis.call('PUBLISH', KEYS[1], '')
end
return 1
`)

// SwapSetting sets the value of a name if the value is still old; an empty old is none. It reports whether
// it did.
func (s internals) SwapSetting(ctx context.Context, name, old, new string) (bool, error) {
	within, cancel := context.WithTimeout(ctx, max(s.timeout, patience))
	defer cancel()
	swapped, err := swapSetting.Exec(within, s.client, []string{s.settings()}, []string{name, old, new}).AsInt64()
	if err != nil {
		return false, commandError(ctx, err)
	}
	return swapped == 1, nil
}

// WatchSettings calls changed when settings may have changed, one call at a time, until stop
// returns. It also calls changed when it begins to watch, and whenever it can watch again after it
// could not.
func (s internals) WatchSettings(changed func()) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	news := make(chan struct{}, 1)
	notify := func() {
		select {
		case news <- struct{}{}:
		default: // a notification is pending
		}
	}
	var watching sync.WaitGroup
	watching.Go(func() { s.subscribe(ctx, s.settings(), notify, func(string) { notify() }) })
	watching.Go(func() {
		for {
			select {
			case <-news:
				changed()
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		watching.Wait()
	}
}

// resubscribe is the shortest wait before the store subscribes again. The longest is twice as long.
const resubscribe = 250 * time.Millisecond

// subscribe calls subscribed after each subscription to a channel, and received for each message,
// until ctx ends. Both must return at once, because the connection waits for them.
func (s *Store) subscribe(ctx context.Context, channel string, subscribed func(), received func(message string)) {
	hooked := rueidis.WithOnSubscriptionHook(ctx, func(rueidis.PubSubSubscription) { subscribed() })
	for {
		s.client.Receive(hooked, s.client.B().Subscribe().Channel(channel).Build(), func(m rueidis.PubSubMessage) { received(m.Message) })
		select {
		case <-time.After(resubscribe + rand.N(resubscribe)):
		case <-ctx.Done():
			return
		}
	}
}
