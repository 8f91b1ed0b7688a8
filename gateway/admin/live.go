package admin

import (
	"context"
	"net/http"
	"time"
)

func (a *Admin) overviewLive(r *http.Request) (any, error) {
	q, err := parameters(r, "projects")
	if err != nil {
		return nil, err
	}
	n, err := rowCount(q)
	if err != nil {
		return nil, err
	}
	return stream(func(ctx context.Context, f *feed) error {
		p := a.look(ctx)
		if err := f.send("snapshot", a.overviewOf(p, n)); err != nil {
			return err
		}
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
				o := a.overviewOf(a.look(ctx), n)
				if err := f.send("delta", OverviewDelta{o.Time, o.Mode, o.StoreLost, o.Totals, o.Models, o.Projects, []string{}, []string{}, o.ModelCount, o.ProjectCount}); err != nil {
					return err
				}
			}
		}
	}), nil
}
