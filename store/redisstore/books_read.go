package redisstore

import (
	"context"

	"github.com/redis/rueidis"

	"dappco.re/go/core/go-ratelimit/internal/books"
)

// read adds up what a query asks for. If pages are trimmed meanwhile, it begins anew.
func (k *bookkeeper) read(ctx context.Context, q books.Query) (*books.Summary, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	for {
		before, err := k.pages(ctx, &q)
		if err != nil {
			return nil, err
		}
		sum := books.NewSum(q)
		for p := range before {
			err := k.scanPage(ctx, p, func(lines []books.Line) error {
				for _, l := range lines {
					sum.Add(l)
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
		after, err := k.pages(ctx, &q)
		if err != nil {
			return nil, err
		}
		if !trimmed(before, after) {
			return sum.Summary()
		}
	}
}

// trimmed reports whether lines were moved or deleted: then a page has fewer lines than before.
func trimmed(before, after map[page]int64) bool {
	for p, n := range before {
		if after[p] < n {
			return true
		}
	}
	return false
}

// pages returns the numbers of lines of all pages that a query asks for.
func (k *bookkeeper) pages(ctx context.Context, q *books.Query) (map[page]int64, error) {
	if err := k.link.alive(); err != nil {
		return nil, err
	}
	lines := map[page]int64{}
	for shelf := range k.shelves {
		names, err := k.command(ctx, k.client.B().Smembers().Key(k.index(shelf)).Build()).AsStrSlice()
		if err != nil {
			return nil, commandError(ctx, err)
		}
		for _, name := range names {
			p, ok := k.pageOf(shelf, name)
			if !ok || !q.Covers(p.at) {
				continue
			}
			lines[p], err = k.command(ctx, k.client.B().Hlen().Key(name).Build()).AsInt64()
			if err != nil {
				return nil, commandError(ctx, err)
			}
		}
	}
	return lines, nil
}

// command sends a command, and waits for its answer as long as any call does.
func (k *bookkeeper) command(ctx context.Context, c rueidis.Completed) rueidis.RedisResult {
	within, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	return k.client.Do(within, c)
}

// scanPage calls each with the lines of a page, some at a time. Each line comes once.
func (k *bookkeeper) scanPage(ctx context.Context, p page, each func([]books.Line) error) error {
	seen := map[string]bool{} // a scan may return a line several times
	for cursor := uint64(0); ; {
		found, err := k.command(ctx, k.client.B().Hscan().Key(k.name(p)).Cursor(cursor).Count(linesAtOnce).Build()).AsScanEntry()
		if err != nil {
			return commandError(ctx, err)
		}
		var lines []books.Line
		for i := 0; i+1 < len(found.Elements); i += 2 {
			field := found.Elements[i]
			if seen[field] {
				continue
			}
			seen[field] = true
			l, err := lineOf(p, field, found.Elements[i+1])
			if err != nil {
				return err
			}
			lines = append(lines, l)
		}
		if err := each(lines); err != nil {
			return err
		}
		if cursor = found.Cursor; cursor == 0 {
			return nil
		}
	}
}

// lineOf reads a line of a page.
func lineOf(p page, field, value string) (books.Line, error) {
	l := books.Line{At: p.at, Day: p.day}
	l.Owner = ownerOf(field)
	r := reader{rest: []byte(value)}
	for u := books.Unit(0); u < books.Beside || u < books.Units && len(r.rest) > 0; u++ {
		l.Amounts[u] = r.number()
	}
	return l, r.err
}
