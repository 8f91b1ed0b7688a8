package admin

import (
	"context"
	"maps"
	"math"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/gateway"
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
		booked, err := gateway.LastUses(func(q books.Query) (*books.Summary, error) { return u.admin.gateway.Usage(ctx, q) }, now)
		if err == nil {
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
					if at := now.Truncate(time.Minute).Add(-time.Duration(ago) * time.Minute); lot.Key != "" && at.After(used[lot.Key]) {
						used[lot.Key] = at
					}
					break
				}
			}
		}
	}
	return used
}
