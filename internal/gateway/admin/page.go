package admin

import (
	"cmp"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// How many entries a page has.
const (
	defaultPage = 100
	maxPage     = 1000
)

// parameters returns the parameters of a request's query. It refuses all but the known ones.
func parameters(r *http.Request, known ...string) (url.Values, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, problemf(http.StatusBadRequest, "the query: %v", err)
	}
	for name, values := range q {
		if !slices.Contains(known, name) {
			return nil, problemf(http.StatusBadRequest, "unknown parameter %.40q: the parameters are %q", name, known)
		}
		if len(values) > 1 {
			return nil, problemf(http.StatusBadRequest, "the parameter %s is there %d times: it may be there once", name, len(values))
		}
	}
	return q, nil
}

// pageSize returns how many entries a client asks for.
func pageSize(q url.Values) (int, error) {
	if !q.Has("limit") {
		return defaultPage, nil
	}
	n, err := strconv.Atoi(q.Get("limit"))
	if err != nil || n < 1 || n > maxPage {
		return 0, problemf(http.StatusBadRequest, "limit is %.40q: it must be from 1 to %d", q.Get("limit"), maxPage)
	}
	return n, nil
}

// pageAfter returns a page of numbered entries: the first ones after the number that the
// client gives, or the last ones if it gives none. next is the number after which the next
// page begins.
func pageAfter[T any](q url.Values, after func(seq uint64, n int) []T, number func(T) uint64) (list []T, next uint64, err error) {
	n, err := pageSize(q)
	if err != nil {
		return nil, 0, err
	}
	if q.Has("after") {
		if next, err = strconv.ParseUint(q.Get("after"), 10, 64); err != nil {
			return nil, 0, problemf(http.StatusBadRequest, "after is %.40q: it must be a number from 0 on", q.Get("after"))
		}
		list = after(next, n)
	} else {
		list = after(0, math.MaxInt)
		list = list[max(len(list)-n, 0):]
	}
	if len(list) > 0 {
		next = number(list[len(list)-1])
	}
	return list, next, nil
}

// firstAfter returns the first n entries after a number of a list in the order of numbers, and those with the number of the
// last: two gateways may have given the same one.
func firstAfter[T any](list []T, number func(T) uint64, after uint64, n int) []T {
	list = slices.DeleteFunc(list, func(each T) bool { return number(each) <= after })
	end := min(n, len(list))
	for end > 0 && end < len(list) && number(list[end]) == number(list[end-1]) {
		end++
	}
	return list[:end]
}

// pageOf returns a page of a list in the order of names: the entries whose names follow the
// one that the client gives. next is the name after which the next page begins, or "" if
// there is none.
func pageOf[T any](r *http.Request, list []T, name func(T) string, also ...string) (page []T, next string, err error) {
	q, err := parameters(r, append([]string{"after", "limit"}, also...)...)
	if err != nil {
		return nil, "", err
	}
	n, err := pageSize(q)
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
