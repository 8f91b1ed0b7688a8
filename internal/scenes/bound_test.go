package scenes

import (
	"math"
	"strings"
	"testing"
)

// wants reports whether the scene says what part a project or key has, because it wants more than it gets.
func (s *scene) wants(id string) bool { return s.want[id]+s.least[id] > 0 }

// checkBound checks the bound of docs/fairness.md for two projects or keys that want more than they get.
func (s *scene) checkBound(t *testing.T, p *played, a, b string) {
	t.Helper()
	apart, most := s.apart(p, a, b), s.mostApart(a, b)
	t.Logf("%s and %s were served %.1f apart, by weight, of %.1f at most", a, b, apart, most)
	if apart > most {
		t.Errorf("%s and %s were served %.1f apart, by weight: want %.1f at most", a, b, apart, most)
	}
}

// apart returns by how much the service of two projects over their weights differs at most, over any interval of the
// second half.
func (s *scene) apart(p *played, a, b string) float64 {
	at, least, most := 0.0, 0.0, 0.0
	for _, c := range p.log {
		switch c.of {
		case a:
			at += float64(c.amount) / s.weight(a)
		case b:
			at -= float64(c.amount) / s.weight(b)
		}
		least, most = min(least, at), max(most, at)
	}
	return most - least
}

// mostApart returns by how much the service of two projects that want more than they get may differ, by weight: by what a
// project of weight 1 beside them has of two minutes, and two of the largest calls. It is endless where weights do not
// decide, and of slots, of which what is held is divided, and not what is served.
func (s *scene) mostApart(a, b string) float64 {
	largest := 1
	for _, c := range s.crews {
		largest = max(largest, c.tokens)
	}
	for _, l := range s.limits {
		if l.Priority != 0 || l.MinShare != 0 || l.MaxShare != 0 {
			return math.Inf(1)
		}
	}
	if s.above(a) != s.above(b) || s.quota.MaxConcurrent > 0 {
		return math.Inf(1)
	}
	return 2*s.share(a)/s.weight(a) + 2*float64(largest)
}

// weight returns the weight of a project or key.
func (s *scene) weight(id string) float64 { return float64(max(s.limits[id].Weight, 1)) }

// above returns the project that a project or key is in; "": none.
func (s *scene) above(id string) string {
	for _, c := range s.crews {
		if c.key == id {
			return c.project
		}
	}
	return id[:max(strings.LastIndex(id, "/"), 0)]
}

// share returns what is due in a minute to a project or key that wants it, beside all others; "" has everything.
func (s *scene) share(id string) float64 {
	if id == "" {
		return float64(s.perMinute())
	}
	weights, seen := 0.0, map[string]bool{}
	for _, c := range s.crews {
		for of := c.id(); of != ""; of = s.above(of) {
			if !seen[of] && s.above(of) == s.above(id) {
				seen[of] = true
				weights += s.weight(of)
			}
		}
	}
	return s.share(s.above(id)) * s.weight(id) / weights
}
