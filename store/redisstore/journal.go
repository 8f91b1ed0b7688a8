package redisstore

import (
	"context"
	"strconv"

	"github.com/redis/rueidis"

	"dappco.re/go/core/go-ratelimit/internal/settings"
)

var _ settings.Journal = internals{}

func (s *Store) journal(name string) string { return s.namespace + ":journal:" + name }

// appendToJournal is the script that appends a line to a list, and trims the list.
var appendToJournal = rueidis.NewLuaScript(`
redis.call('RPUSH', KEYS[1], ARGV[1])
redis.call('LTRIM', KEYS[1], -tonumber(ARGV[2]), -1)
return 1
`)

// AppendLine implements [settings.Journal].
func (s internals) AppendLine(ctx context.Context, name, line string, most int) error {
	within, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := appendToJournal.Exec(within, s.client, []string{s.journal(name)}, []string{line, strconv.Itoa(most)}).Error(); err != nil {
		return commandError(ctx, err)
	}
	return nil
}

// Lines implements [settings.Journal].
func (s internals) Lines(ctx context.Context, name string) ([]string, error) {
	within, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	lines, err := s.client.Do(within, s.client.B().Lrange().Key(s.journal(name)).Start(0).Stop(-1).Build()).AsStrSlice()
	if err != nil {
		return nil, commandError(ctx, err)
	}
	return lines, nil
}
