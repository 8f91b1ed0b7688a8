package admin

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// listed returns the projects of the decisions in an answer, and after what the next begin.
func (r *rig) listed(t testing.TB, query string) (projects string, next uint64) {
	t.Helper()
	list := as[DecisionList](t, r.want(t, 200, "GET", "/v1/decisions?"+query, ""))
	var all []string
	for _, d := range list.Decisions {
		all = append(all, d.Project)
	}
	return strings.Join(all, " "), list.Next
}

// Decisions are filtered by project and all below it, by model, key, outcome and time.
func TestDecisionFilters(t *testing.T) {
	r := newRig(t, asking)
	for _, c := range [][3]string{{"a", "gpt-4o"}, {"a/b", "gpt-4o"}, {"ab", "once"}, {"a/b/c", "once"}, {"x", "shared"}, {"not an id", "gpt-4o"}} {
		r.asks(t, c[1], "X-Project-ID", c[0])
	}
	seqs := as[DecisionList](t, r.want(t, 200, "GET", "/v1/decisions", "")).Decisions
	for query, want := range map[string]string{
		"":                           "a a/b ab a/b/c x ",
		"project=a":                  "a a/b a/b/c",
		"project=a/b":                "a/b a/b/c",
		"project=nobody":             "",
		"model=once":                 "ab a/b/c",
		"model=once&project=a":       "a/b/c",
		"outcome=denied":             "a/b/c",
		"outcome=denied,refused":     "a/b/c ",
		"outcome=passed":             "a a/b ab x",
		"outcome=passed&limit=1":     "x",
		"key=nobody":                 "",
		"since=1h":                   "a a/b ab a/b/c x ",
		"since=2999-01-01":           "",
		"after=SECOND":               "ab a/b/c x ",
		"after=SECOND&limit=2":       "ab a/b/c",
		"after=THIRD&outcome=passed": "x",
		"after=0&outcome=refused":    "",
	} {
		query = strings.NewReplacer("SECOND", fmt.Sprint(seqs[1].Seq), "THIRD", fmt.Sprint(seqs[2].Seq)).Replace(query)
		if got, _ := r.listed(t, query); got != want {
			t.Errorf("%q: %q: want %q", query, got, want)
		}
	}
	for query, says := range map[string]string{
		"outcome=sad":        "must be some of passed, denied, refused, throttled, failed, cut, left, lost",
		"outcome=denied,":    "must be some of",
		"outcome=lost,lost":  "once is enough",
		"since=yesterday":    "how long ago",
		"model=a&model=b":    "once",
		"colour=red":         "unknown parameter",
		"limit=0":            "from 1 to 1000",
		"after=-1":           "from 0 on",
		"outcome=%0a%0d%00x": "must be some of",
	} {
		if a := r.want(t, 400, "GET", "/v1/decisions?"+query, ""); !strings.Contains(a.text, says) {
			t.Errorf("%q: %s", query, a.text)
		}
	}
}

// A storm of denials does not push out the calls that have caused it, and who follows with after gets
// every decision once, in order.
func TestStormOfDenials(t *testing.T) {
	r := newRig(t, asking)
	r.asks(t, "once", "X-Project-ID", "first")
	last, all := uint64(0), 0
	for range 12 {
		for range 100 {
			r.asks(t, "once", "X-Project-ID", "storm")
		}
		for {
			list := as[DecisionList](t, r.want(t, 200, "GET", "/v1/decisions?limit=70&after="+fmt.Sprint(last), ""))
			if len(list.Decisions) == 0 {
				break
			}
			for _, d := range list.Decisions {
				all++
				if d.Seq <= last {
					t.Fatalf("%d comes after %d", d.Seq, last)
				}
				last = d.Seq
			}
			if list.Next != last {
				t.Fatalf("the next is %d after %d", list.Next, last)
			}
		}
	}
	if all != 1201 {
		t.Errorf("%d decisions were listed", all)
	}
	list := as[DecisionList](t, r.want(t, 200, "GET", "/v1/decisions?after=0&limit=2", ""))
	if d := list.Decisions; d[0].Project != "first" || d[0].Outcome != gateway.Passed || !strings.HasSuffix(d[1].ID, fmt.Sprint("_", 1201-1024+1)) {
		t.Errorf("%+v", d)
	}
	if got, _ := r.listed(t, "outcome=passed"); got != "first" {
		t.Errorf("what passed: %q", got)
	}
	kept := as[DecisionList](t, r.want(t, 200, "GET", "/v1/decisions?limit=1000", "")).Decisions
	testkit.Equal(t, "the last page", 1000, len(kept))
}

// Names that clients choose stay harmless: in the list, in explanations and in filters.
func TestHostileNames(t *testing.T) {
	r := newRig(t, asking)
	for _, model := range []string{"\x00\x1b[31m", "</script><script>alert(1)</script>", "\u202e\ufeff", strings.Repeat("ä", 3000), "a\nevent: change\ndata: {}", `"},{"`} {
		_, id := r.asks(t, model, "X-User-ID", strings.Repeat("u", 900))
		e := r.explained(t, id)
		if strings.ContainsAny(e.Sentence, "\x00\x1b\n\u202e") || len(e.Sentence) > 4000 {
			t.Errorf("%q", e.Sentence)
		}
		a := r.want(t, 200, "GET", "/v1/decisions?model="+url.QueryEscape(e.Decision.Model), "")
		if strings.ContainsAny(strings.TrimSuffix(a.text, "\n"), "\x00\x1b\n<") || len(as[DecisionList](t, a).Decisions) == 0 {
			t.Errorf("%.300q", a.text)
		}
	}
}
