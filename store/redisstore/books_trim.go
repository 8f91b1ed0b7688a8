package redisstore

import (
	"context"

	"dappco.re/go/core/go-ratelimit/internal/books"
)

// trim merges old hours into days, and drops old days.
func (k *bookkeeper) trim(ctx context.Context, r books.Retention) error {
	hours, days := r.Cut(k.link.now())
	all, err := k.pages(ctx, &books.Query{Until: max(hours, days)})
	if err != nil {
		return err
	}
	for p := range all {
		switch {
		case p.at < days:
			err = k.drop(ctx, p)
		case !p.day && p.at < hours:
			err = k.mergeHour(ctx, p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// drop deletes a page.
func (k *bookkeeper) drop(ctx context.Context, p page) error {
	if err := k.command(ctx, k.client.B().Unlink().Key(k.name(p)).Build()).Error(); err != nil {
		return commandError(ctx, err)
	}
	if err := k.command(ctx, k.client.B().Srem().Key(k.index(p.shelf)).Member(k.name(p)).Build()).Error(); err != nil {
		return commandError(ctx, err)
	}
	return nil
}

// mergeHour moves all lines of an hour to its day. Another node may do the same: each line is moved
// once.
func (k *bookkeeper) mergeHour(ctx context.Context, hour page) error {
	day := page{hour.shelf, true, books.DayOf(hour.at)}
	return k.scanPage(ctx, hour, func(lines []books.Line) error {
		if len(lines) == 0 {
			return nil
		}
		o := k.newBookOp(stepMove, hour, day)
		w := writer(o.body)
		for _, l := range lines {
			w.bytes([]byte(fieldOf(l.Owner)))
		}
		o.body = w
		return k.link.do(ctx, o)
	})
}
