package webhook_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/webhook"
)

// delivered is a receiver that takes nothing until it is opened, and then keeps whose budgets it gets messages about.
type delivered struct {
	opened chan struct{}
	mu     sync.Mutex
	owners []string
}

func (d *delivered) take(req *http.Request) (int, error) {
	select {
	case <-d.opened:
	case <-req.Context().Done():
		return 0, req.Context().Err()
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return 0, err
	}
	var m webhook.Message
	if err := json.Unmarshal(body, &m); err != nil {
		return 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.owners = append(d.owners, fmt.Sprint(m.Data.Owner, " ", m.Data.Percent))
	return http.StatusOK, nil
}

// Users that a client invents do not take the places of other projects, nor of their own project. What has found no
// place is delivered when a later call finds the budget at its threshold.
func TestInventedUsersFillOnlyTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newSender(t, "https://example.com/hook")
		to := &delivered{opened: make(chan struct{})}
		s.Through(transport(to.take))
		l, err := project.NewWithConfig(project.Config{Thresholds: []int{50}, Observer: s, Limits: map[string]project.Limit{
			"acme": {RequestsPerDay: 1400}, "acme/*": {RequestsPerDay: 1}, "other": {RequestsPerDay: 1},
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		everybody := func() {
			for i := range 700 {
				l.Allow(t.Context(), fmt.Sprintf("acme/user%d", i))
				synctest.Wait()
			}
		}
		everybody()
		l.Allow(t.Context(), "other")
		synctest.Wait()
		close(to.opened)
		synctest.Wait()
		for _, owner := range []string{"other 50", "acme 50"} {
			if at := slices.Index(to.owners, owner); at < 0 || at > 4 {
				t.Errorf("%s is the message %d of %d: want one of the first", owner, at, len(to.owners))
			}
		}
		if n := len(to.owners); n > 100 {
			t.Errorf("%d messages have waited", n)
		}
		everybody() // whose budgets are used up by now
		slices.Sort(to.owners)
		if n := len(slices.Compact(to.owners)); n != 702 || len(to.owners) != 702 {
			t.Errorf("%d messages of %d budgets: want one of each of 702", len(to.owners), n)
		}
	})
}
