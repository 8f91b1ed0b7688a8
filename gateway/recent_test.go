package gateway

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func seqs(list []Record) []uint64 {
	var all []uint64
	for _, rec := range list {
		all = append(all, rec.Seq)
	}
	return all
}

func TestRecent(t *testing.T) {
	r := newRecent(4)
	if got := r.after(&Filter{}, 0, 9); len(got) != 0 {
		t.Fatalf("of none: %v", got)
	}
	for i, project := range []string{"a", "b", "a", "a", "b", "a"} { // there is no room for 1 and 2 any more
		rec := Record{Project: project}
		if r.add(&rec, nil); rec.Seq != uint64(i+1) {
			t.Fatalf("request %d has number %d", i+1, rec.Seq)
		}
	}
	for _, c := range []struct {
		project string
		after   uint64
		n       int
		want    []uint64
	}{
		{"", 0, 9, []uint64{3, 4, 5, 6}},
		{"", 0, 2, []uint64{3, 4}},
		{"", 4, 9, []uint64{5, 6}},
		{"", 6, 9, nil},
		{"", 7, 9, []uint64{3, 4, 5, 6}}, // a number from another run of the gateway
		{"", 1 << 63, 2, []uint64{3, 4}},
		{"", 0, 0, nil},
		{"", 0, -1, nil},
		{"a", 0, 9, []uint64{3, 4, 6}},
		{"a", 3, 1, []uint64{4}},
		{"b", 0, 9, []uint64{5}},
		{"c", 0, 9, nil},
	} {
		if got := seqs(r.after(&Filter{Project: c.project}, c.after, c.n)); !cmp.Equal(got, c.want) {
			t.Errorf("after(%q, %d, %d) is %v: want %v", c.project, c.after, c.n, got, c.want)
		}
	}
}

func TestRecentKeepsACopy(t *testing.T) {
	r := newRecent(4)
	rec := Record{Project: "a"}
	r.add(&rec, nil)
	rec.Project = "changed"
	r.after(&Filter{}, 0, 1)[0].Project = "changed"
	if got := r.after(&Filter{}, 0, 1)[0].Project; got != "a" {
		t.Errorf("the project is %q now", got)
	}
}

// The ring returns the same as a list that keeps everything.
func TestRecentIsAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 8).Draw(t, "size")
		r := newRecent(size)
		var all []Record
		project := rapid.SampledFrom([]string{"", "a", "b"})
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			rec := Record{Project: project.Draw(t, "project")}
			r.add(&rec, nil)
			all = append(all, rec)
		}
		of, after, n := project.Draw(t, "of"), rapid.Uint64Range(0, 31).Draw(t, "after"), rapid.IntRange(0, 9).Draw(t, "n")
		got := r.after(&Filter{Project: of}, after, n)
		if after > uint64(len(all)) {
			after = 0
		}
		var want []Record
		for _, rec := range all[max(len(all)-size, 0):] {
			if rec.Seq > after && (of == "" || rec.Project == of) && len(want) < n {
				want = append(want, rec)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestRecentConcurrently(t *testing.T) {
	r := newRecent(64)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 200 {
				r.add(&Record{Project: fmt.Sprint(i)}, nil)
			}
		})
		wg.Go(func() {
			for range 50 {
				last := uint64(0)
				for _, rec := range r.after(&Filter{}, 0, 64) {
					if rec.Seq <= last || rec.Project == "" {
						t.Errorf("%d of project %q comes after %d", rec.Seq, rec.Project, last)
					}
					last = rec.Seq
				}
			}
		})
	}
	wg.Wait()
	if got := seqs(r.after(&Filter{}, 1599, 9)); !cmp.Equal(got, []uint64{1600}) {
		t.Errorf("the last is %v: want 1600", got)
	}
}

func BenchmarkRecent(b *testing.B) {
	r := newRecent(1024)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		rec := Record{Project: "search", Path: "/openai/v1/chat/completions"}
		for pb.Next() {
			r.add(&rec, nil)
		}
	})
}
