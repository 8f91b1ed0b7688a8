package fair

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// The sum that a pool keeps of what a group has used is the sum of what its members have used, whatever has happened.
func TestUsedInGroups(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		p := NewPool([]limit.Limit{limit.New(1000, time.Minute).Using(limit.SlidingLog), limit.PerHour(1e6).ResetHourly(0, nil)}, 0)
		acme := newGroup("acme", nil, Terms{Max: 900000})
		groups := []*Group{acme, newGroup("acme/search", acme, Terms{Max: 500000}), newGroup("other", nil, Terms{}), nil}
		who := make([]*Who, 20)
		for i := range who {
			who[i] = &Who{Name: fmt.Sprint(i), Group: groups[random.IntN(len(groups))]}
		}
		now := int64(time.Hour)
		for step := range 500 {
			w, n, at := who[random.IntN(len(who))], random.Int64N(100), now-random.Int64N(int64(2*time.Minute))
			amounts := []Amount{{N: n, Count: 1000}, {N: n, Count: 1e6}}
			switch random.IntN(20) {
			case 0:
				w.Group = groups[random.IntN(len(groups))]
			case 1:
				now += random.Int64N(int64(10 * time.Minute))
			case 2:
				p.Hear("node", now, Report{Members: []MemberReport{{Name: w.Name, Parts: []PartReport{{Used: n}, {Used: n}}}}})
			case 3:
				p.Confirm(w, now, amounts, []int64{3 * n, -1})
			case 4:
				p.Reset()
			case 5, 6, 7, 8:
				p.Correct(w, at, []int64{n - 50, n - 50}, nil)
			case 9, 10:
				now += random.Int64N(int64(time.Second))
			default:
				if !p.Take(w, Terms{}, now, amounts, false).Denied && n > 50 {
					p.GiveBack(w, now, amounts, true)
				}
			}
			p.move(now)
			for i := range p.quotas {
				p.each(func(g *node) {
					sum := int64(0)
					for _, m := range p.members {
						for x := m; x != nil; x = x.above {
							if x == g {
								sum += m.parts[i].usedAt(now)
							}
						}
					}
					if got := g.parts[i].usedAt(now); got != sum {
						t.Fatalf("seed %d, step %d: %v are counted of quota %d in %q; its members have used %v", seed, step, got, i, g.name, sum)
					}
				})
			}
		}
	}
}
