package state

import (
	"math"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/limit"
)

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		quota Quota
		says  string // empty: the quota is valid
	}{
		{Quota{}, ""},
		{Quota{MaxRPM: MaxQuota, MaxConcurrent: MaxQuota, DayResetsAt: "00:00 America/Los_Angeles", Margin: MaxMargin, Reserve: 99.9}, ""},
		{Quota{MaxTPD: -1}, "max_tpd of -1: it must be from 1 to 9007199254740992, or 0 for unlimited"},
		{Quota{MaxConcurrent: MaxQuota + 1}, "max_concurrent of 9007199254740993"},
		{Quota{Margin: MaxMargin + 1}, "it must be from 0s to 30s"},
		{Quota{Reserve: 100}, "reserve of 100%: it must be from 0%, which is none, to less than 100%"},
		{Quota{Reserve: -1}, "reserve of -1%"},
		{Quota{Reserve: limit.Percent(math.NaN())}, "reserve of NaN%"},
		{Quota{DayResetsAt: "00:00 Local"}, `day_resets_at of "00:00 Local": it must be a time of day and a time zone`},
		{Quota{DayResetsAt: "25:00 UTC"}, "it must be a time of day and a time zone"},
	} {
		err := c.quota.Validate()
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%+v: %v, want %q", c.quota, err, c.says)
		}
	}
}

func TestCheckTime(t *testing.T) {
	for year, fine := range map[int]bool{-1: false, 0: true, 9999: true, 10_000: false} {
		if err := CheckTime(time.Date(year, 7, 1, 0, 0, 0, 0, time.UTC)); (err == nil) != fine {
			t.Errorf("the year %d: %v", year, err)
		}
	}
}

// Each dimension has a field of the quota for its maximum, which no other dimension has.
func TestMax(t *testing.T) {
	q := Quota{MaxRPM: 1, MaxTPM: 2, MaxRPD: 3, MaxInputTPM: 4, MaxOutputTPM: 5, MaxTPD: 6, MaxConcurrent: 7, DayResetsAt: "00:00 UTC", Auto: true}
	want := map[kind.Kind]int{kind.MaxRPM: 1, kind.MaxTPM: 2, kind.MaxRPD: 3, kind.MaxInputTPM: 4, kind.MaxOutputTPM: 5, kind.MaxTPD: 6, kind.MaxConcurrent: 7}
	for d := range kind.Models {
		changed := q
		if *changed.Max(d) = 100; *q.Max(d) != want[d] || changed == q {
			t.Errorf("%v is %d: %+v", d, *q.Max(d), changed)
		}
		if *changed.Max(d) = want[d]; changed != q {
			t.Errorf("%v: %+v", d, changed)
		}
	}
}
