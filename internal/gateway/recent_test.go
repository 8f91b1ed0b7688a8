package gateway

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

func seqs(list []Record) []uint64 {
	var all []uint64
	for _, rec := range list {
		all = append(all, rec.Seq)
	}
	return all
}

// Requests are numbered by the time of their end in microseconds, so that those of several gateways have one order. No two
// have the same number, and numbers grow whatever the clock does.
func TestRecentNumbers(t *testing.T) {
	r := newRecent(4)
	for _, c := range []struct {
		at   int64
		took time.Duration
		want uint64
	}{{1000, 5 * time.Microsecond, 1005}, {1001, 4 * time.Microsecond, 1006}, {2000, 0, 2000}, {1500, 0, 2001}} {
		rec := Record{Time: time.UnixMicro(c.at), Took: c.took}
		r.add(&rec, nil)
		if rec.Seq != c.want {
			t.Errorf("%+v has number %d", c, rec.Seq)
		}
	}
}

func TestRecent(t *testing.T) {
	r := newRecent(4)
	if got := r.after(&Filter{}, 0, 9); len(got) != 0 {
		t.Fatalf("of none: %v", got)
	}
	for i, project := range []string{"a", "b", "a", "a", "b", "a"} { // there is no room for 1 and 2 any more
		rec := Record{Project: project}
		r.add(&rec, nil)
		if rec.Seq != uint64(i+1) {
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
		{"", 7, 9, nil}, // of another gateway, whose last request was later
		{"", 1 << 63, 2, nil},
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

// Requests without a key, and with one that nobody knows, do not push out the denials of projects.
func TestStrangersPushOutNoDenials(t *testing.T) {
	t.Setenv("TEST_PROVIDER_KEY", "sk-of-the-provider")
	r := newRig(t, withKeys+"defaults: {max_wait: 0s}\nprojects: {acme: {requests_per_day: 1}}\n", mockprovider.Config{})
	secret, _ := r.newKey(t, "acme", "")
	for range 2 {
		r.post(t, chat, hello, "Authorization", "Bearer "+secret)
	}
	denied := r.last(t)
	for i := range maxRecent + 76 {
		req := httptest.NewRequest("POST", "http://127.0.0.1"+chat, strings.NewReader(hello))
		if i%2 == 0 {
			req.Header.Set("Authorization", "Bearer "+testkit.Forged(secret))
		}
		r.ServeHTTP(httptest.NewRecorder(), req)
	}
	found := r.RecentBy(Filter{Outcomes: []Outcome{Denied}}, 0, 10)
	if len(found) != 1 || found[0].ID != denied.ID || found[0].Project != "acme" {
		t.Errorf("of %+v is left: %+v", denied, found)
	}
	if n := len(r.RecentBy(Filter{Outcomes: []Outcome{Refused}}, 0, 2*maxRecent)); n != maxRecent {
		t.Errorf("%d requests of strangers are kept: want %d", n, maxRecent)
	}
}

// The rings return the same as a list that keeps the last requests that were admitted, the last that
// were not, and the last of nobody, in the order in which they came.
func TestRecentIsAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 8).Draw(t, "size")
		r := newRecent(size)
		var all []Record
		project, model, key := rapid.SampledFrom([]string{"", "a", "a/b", "ab"}), rapid.SampledFrom([]string{"", "m", "n"}), rapid.SampledFrom([]string{"", "k"})
		outcome := rapid.SampledFrom([]Outcome{Passed, Denied, Refused, Throttled, Failed, Cut, Left, Lost})
		for i := range rapid.IntRange(0, 40).Draw(t, "steps") {
			rec := Record{ID: fmt.Sprint(i), Time: time.Unix(int64(i), 0), Project: project.Draw(t, "project"), Model: model.Draw(t, "model"), Key: key.Draw(t, "key"), Outcome: outcome.Draw(t, "outcome")}
			r.add(&rec, nil)
			all = append(all, rec)
		}
		f := Filter{Project: project.Draw(t, "of"), Model: model.Draw(t, "of model"), Key: key.Draw(t, "of key"), Since: time.Unix(rapid.Int64Range(0, 40).Draw(t, "since"), 0)}
		if rapid.Bool().Draw(t, "some outcomes") {
			f.Outcomes = rapid.SliceOfN(outcome, 1, 3).Draw(t, "outcomes")
		}
		seqs := []uint64{0, 2, 1 << 63}
		for _, rec := range all {
			seqs = append(seqs, rec.Seq)
		}
		after, n := rapid.SampledFrom(seqs).Draw(t, "after"), rapid.IntRange(0, 9).Draw(t, "n")
		got := r.after(&f, after, n)
		kind := func(rec Record) string {
			switch {
			case rec.Outcome != Denied && rec.Outcome != Refused && rec.Outcome != Lost:
				return "admitted"
			case rec.Project == "":
				return "of a stranger"
			}
			return "denied"
		}
		kept := map[string][]Record{}
		for _, rec := range all {
			kept[kind(rec)] = append(kept[kind(rec)], rec)
		}
		var want []Record
		for _, rec := range all {
			of := kept[kind(rec)]
			old := len(of) > size && rec.Seq < of[len(of)-size].Seq
			fits := f.Project == "" || rec.Project == f.Project || strings.HasPrefix(rec.Project, f.Project+"/")
			fits = fits && (f.Model == "" || rec.Model == f.Model) && (f.Key == "" || rec.Key == f.Key) && !rec.Time.Before(f.Since)
			fits = fits && (f.Outcomes == nil || slices.Contains(f.Outcomes, rec.Outcome))
			if found, _, ok := r.find(rec.ID); ok == old || ok && found.Seq != rec.Seq {
				t.Fatalf("%s is found: %v, as %d", rec.ID, ok, found.Seq)
			}
			if !old && rec.Seq > after && fits && len(want) < n {
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
