package admin

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// How many a page has.
const (
	usualPage   = 100
	largestPage = 1000
)

// query returns the parameters of a request, of which these are known.
func query(r *http.Request, known ...string) (url.Values, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, problemf(http.StatusBadRequest, "the query: %v", err)
	}
	for name, values := range q {
		if !slices.Contains(known, name) {
			return nil, problemf(http.StatusBadRequest, "unknown parameter %.40q: those that are known are %q", name, known)
		}
		if len(values) > 1 {
			return nil, problemf(http.StatusBadRequest, "the parameter %s is there %d times: it may be once", name, len(values))
		}
	}
	return q, nil
}

// limitIn returns how many a client asks for.
func limitIn(q url.Values) (int, error) {
	if !q.Has("limit") {
		return usualPage, nil
	}
	n, err := strconv.Atoi(q.Get("limit"))
	if err != nil || n < 1 || n > largestPage {
		return 0, problemf(http.StatusBadRequest, "limit is %.40q: it must be from 1 to %d", q.Get("limit"), largestPage)
	}
	return n, nil
}

// latest returns the first of a list that follow the number that a client has seen
// last, or, if it says none, the last ones; and the number after which to go on.
func latest[T any](q url.Values, after func(seq uint64, n int) []T, number func(T) uint64) (list []T, next uint64, err error) {
	n, err := limitIn(q)
	if err != nil {
		return nil, 0, err
	}
	if q.Has("after") {
		if next, err = strconv.ParseUint(q.Get("after"), 10, 64); err != nil {
			return nil, 0, problemf(http.StatusBadRequest, "after is %.40q: it must be a number from 0 on", q.Get("after"))
		}
		list = after(next, n)
	} else {
		list = after(0, remembered)
		list = list[max(len(list)-n, 0):]
	}
	if len(list) > 0 {
		next = number(list[len(list)-1])
	}
	return list, next, nil
}

// pageOf returns those of a list whose names follow the one that a client has seen
// last, in order, and what it asks for next, if there are more.
func pageOf[T any](r *http.Request, list []T, name func(T) string) (page []T, next string, err error) {
	q, err := query(r, "after", "limit")
	if err != nil {
		return nil, "", err
	}
	n, err := limitIn(q)
	if err != nil {
		return nil, "", err
	}
	after := q.Get("after")
	list = slices.DeleteFunc(list, func(each T) bool { return name(each) <= after })
	slices.SortFunc(list, func(a, b T) int { return cmp.Compare(name(a), name(b)) })
	if len(list) <= n {
		return list, "", nil
	}
	return list[:n], name(list[n-1]), nil
}
