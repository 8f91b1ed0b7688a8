package admin

import (
	"fmt"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func sortedCopy(list []string) []string { return slices.Sorted(slices.Values(list)) }

// All pages together are the whole list, in order.
func TestPages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfNDistinct(rapid.StringN(1, 4, -1), 0, 20, rapid.ID).Draw(t, "list")
		limit := rapid.IntRange(1, 8).Draw(t, "limit")
		var got []string
		after := ""
		for {
			r := httptest.NewRequest("GET", fmt.Sprintf("/?limit=%d&after=%s", limit, url.QueryEscape(after)), nil)
			page, next, err := pageOf(r, slices.Clone(list), func(name string) string { return name })
			if err != nil || len(page) > limit {
				t.Fatal(page, err)
			}
			if len(page) == 0 && after != "" {
				t.Fatal("a page follows, but there is nothing on it")
			}
			got = append(got, page...)
			if after = next; after == "" {
				break
			}
		}
		if diff := cmp.Diff(sortedCopy(list), got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// A client that asks for each next page of a growing list misses no entry that the list
// still has, and gets none twice.
func TestFollow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := &audit{log: discard}
		limit := rapid.IntRange(1, 5).Draw(t, "limit")
		var seen []uint64
		q := url.Values{"limit": {fmt.Sprint(limit)}, "after": {"0"}}
		for range rapid.IntRange(0, 10).Draw(t, "steps") {
			for range rapid.IntRange(0, 8).Draw(t, "entries") {
				if err := a.write(&Entry{}); err != nil {
					t.Fatal(err)
				}
			}
			seq := func(e Entry) uint64 { return e.Seq }
			list, next, err := pageAfter(q, func(after uint64, n int) []Entry { return firstAfter(slices.Clone(a.last), seq, after, n) }, seq)
			if err != nil || len(list) > limit {
				t.Fatal(list, err)
			}
			for _, e := range list {
				seen = append(seen, e.Seq)
			}
			q.Set("after", fmt.Sprint(next))
		}
		for i, seq := range seen {
			if seq != uint64(i+1) {
				t.Fatalf("it has seen %v", seen)
			}
		}
	})
}
