package admin

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
)

// rowOrders are the orders of projects that a client may ask for. Those that are equal in one are in
// the order of harm.
var rowOrders = map[string]func(a, b *standing) int{
	"harm":     func(a, b *standing) int { return 0 },
	"pressure": byPressure,
	"name":     func(a, b *standing) int { return cmp.Compare(a.name, b.name) },
	"waiting":  func(a, b *standing) int { return cmp.Compare(b.waiting, a.waiting) },
	"denied":   func(a, b *standing) int { return cmp.Compare(b.recent.Denied, a.recent.Denied) },
	"calls":    func(a, b *standing) int { return cmp.Compare(b.recent.Passed, a.recent.Passed) },
}

// orderNames are the names of rowOrders, as problems list them.
var orderNames = []string{"harm", "pressure", "name", "waiting", "denied", "calls"}

// overviewProjects answers with some of the rows of all projects.
func (a *Admin) overviewProjects(r *http.Request) (any, error) {
	q, err := parameters(r, "search", "below", "sort", "offset", "limit")
	if err != nil {
		return nil, err
	}
	n, err := pageSize(q)
	if err != nil {
		return nil, err
	}
	from := 0
	if q.Has("offset") {
		if from, err = strconv.Atoi(q.Get("offset")); err != nil || from < 0 {
			return nil, problemf(http.StatusBadRequest, "offset is %.40q: it must be a number from 0 on", q.Get("offset"))
		}
	}
	order := rowOrders[cmp.Or(q.Get("sort"), "harm")]
	if order == nil {
		return nil, problemf(http.StatusBadRequest, "sort is %.40q: it must be one of %s", q.Get("sort"), strings.Join(orderNames, ", "))
	}
	a.lookout.look(r.Context(), false)
	return a.lookout.projectRows(strings.ToLower(q.Get("search")), q.Get("below"), order, from, n), nil
}

// projectRows returns the rows that the last look has seen: n from a place on, of the projects with a
// text in their names, that are one or below it, in an order.
func (l *lookout) projectRows(text, below string, order func(a, b *standing) int, from, n int) ProjectRows {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := slices.Clone(l.projects.list)
	if text != "" || below != "" {
		list = slices.DeleteFunc(list, func(s *standing) bool {
			return !strings.Contains(strings.ToLower(s.name), text) || !keys.Within(s.name, below)
		})
	}
	slices.SortStableFunc(list, order)
	from = min(from, len(list))
	return ProjectRows{len(list), rowsOf(list[from:min(from+n, len(list))], l.switchProject)}
}

// inOrder returns projects in the order of harm, as the last look has seen them, and the harm that is done to the calls of
// each. Those that it has not seen come last.
func (l *lookout) inOrder(ids []string) (ordered []string, harm map[string]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := make(map[string]bool, len(ids))
	for _, id := range ids {
		known[id] = true
	}
	harm = make(map[string]string, len(ids))
	for _, s := range l.projects.list {
		if known[s.name] {
			harm[s.name] = harms[s.harm]
			ordered = append(ordered, s.name)
		}
	}
	for _, id := range ids {
		if _, seen := harm[id]; !seen {
			ordered = append(ordered, id)
		}
	}
	return ordered, harm
}

// OverviewProjects returns n rows of projects from a place on. search is a part of their names, in any
// case of letters; sort is "harm", "pressure", "name", "waiting", "denied" or "calls". Both may be empty.
func (c *Client) OverviewProjects(ctx context.Context, search, sort string, offset, n int) (ProjectRows, error) {
	q := url.Values{"search": {search}, "offset": {strconv.Itoa(offset)}, "limit": {strconv.Itoa(n)}}
	if sort != "" {
		q.Set("sort", sort)
	}
	return get[ProjectRows](ctx, c, http.MethodGet, "/v1/overview/projects?"+q.Encode(), nil)
}
