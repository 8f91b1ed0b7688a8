package admin

import (
	"context"
	"maps"
	"math"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
)

// keyUses knows when each key was last used: from the books, which are of all gateways and outlive them, by the hour or
// the day; and of the last 15 minutes from the figures.
type keyUses struct {
	admin *Admin

	mu     sync.Mutex
	read   time.Time // when the books were read
	booked map[string]time.Time
}

// readBooksEvery is how often the books are read. Pages ask every few seconds.
const readBooksEvery = time.Minute

// last returns when each key was last used, by its id, as far as that is known.
func (u *keyUses) last(ctx context.Context) map[string]time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now().UTC()
	if now.Sub(u.read) >= readBooksEvery {
		booked := map[string]time.Time{}
		if u.add(ctx, booked, books.ByDay, now.AddDate(-2, 0, 0)) && u.add(ctx, booked, books.ByHour, now.Add(-24*time.Hour)) {
			u.read, u.booked = now, booked
		}
	}
	used := maps.Clone(u.booked)
	if used == nil {
		used = map[string]time.Time{}
	}
	all := gatherWith(ctx, u.admin, "figures", nil, u.admin.ownFigures(math.MaxInt))
	for _, of := range all.answers {
		for i := range of.Lots {
			lot := &of.Lots[i]
			for ago := range lot.PassedBy {
				if place := len(lot.PassedBy) - 1 - ago; lot.PassedBy[place]+lot.DeniedBy[place] > 0 {
					later(used, lot.Key, now.Truncate(time.Minute).Add(-time.Duration(ago)*time.Minute))
					break
				}
			}
		}
	}
	return used
}

// add adds what the books have by the hour or the day, and reports whether they could be read.
func (u *keyUses) add(ctx context.Context, to map[string]time.Time, by books.Dimension, since time.Time) bool {
	report, err := u.admin.report(ctx, books.Query{By: []books.Dimension{books.ByKey, by}, Since: since.Unix()})
	if err != nil {
		return false
	}
	for i := range report.Rows {
		later(to, report.Rows[i].Key, report.Rows[i].Time)
	}
	return true
}

// later sets the time of a key, unless it has a later one.
func later(to map[string]time.Time, key string, at time.Time) {
	if key != "" && at.After(to[key]) {
		to[key] = at
	}
}
