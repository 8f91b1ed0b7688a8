package admit

import (
	"math/bits"
	"slices"

	"dappco.re/go/core/go-ratelimit/project"
)

// Tightest returns the window of which the smallest part is left, as a member of RateLimit. It is
// empty if all windows have the same owner: RateLimit says as much then.
func (r *Result) Tightest() string {
	windows := r.Windows()
	if r.Decision.Share.Window != nil {
		windows = slices.Clone(windows)
		for i := range windows {
			r.narrow(&windows[i])
		}
	}
	return tightest(windows, r.Project)
}

func tightest(windows []project.Standing, own string) string {
	if len(windows) == 0 || windows[0].Owner == windows[len(windows)-1].Owner {
		return ""
	}
	least := &windows[0]
	for i := range windows {
		if smaller(&windows[i], least) {
			least = &windows[i]
		}
	}
	return string(appendLimit(nil, own, least, least.ResetAfter))
}

// smaller reports whether a smaller part is left of one window than of another.
func smaller(one, other *project.Standing) bool {
	high, low := bits.Mul64(uint64(max(one.Remaining, 0)), uint64(other.Window.Count))
	otherHigh, otherLow := bits.Mul64(uint64(max(other.Remaining, 0)), uint64(one.Window.Count))
	return high < otherHigh || high == otherHigh && low < otherLow
}
