package rate

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// A model is a token bucket in its plainest form, in exact fractions.
type model struct {
	limit, burst, tokens *big.Rat
	last                 time.Duration
}

func newModel(limit Limit, burst int) *model {
	full := new(big.Rat).SetInt64(int64(burst))
	perNanosecond := new(big.Rat).SetFloat64(max(0, float64(limit)))
	perNanosecond.Quo(perNanosecond, big.NewRat(1e9, 1))
	return &model{limit: perNanosecond, burst: full, tokens: full}
}

func (m *model) tokensAt(t time.Duration) *big.Rat {
	elapsed := new(big.Rat).SetInt64(int64(max(0, t-m.last)))
	elapsed.Mul(elapsed, m.limit)
	elapsed.Add(elapsed, m.tokens)
	if elapsed.Cmp(m.burst) > 0 {
		return m.burst
	}
	return elapsed
}

// hold returns the last time instead of one that is earlier by a millisecond or less, unless nothing has been taken
// yet.
func (m *model) hold(t time.Duration) time.Duration {
	if t < m.last && t >= m.last-givenTime.maxBack && m.tokens.Cmp(m.burst) < 0 {
		return m.last
	}
	return t
}

func (m *model) take(t time.Duration, n int) {
	m.tokens = new(big.Rat).Sub(m.tokensAt(t), new(big.Rat).SetInt64(int64(n)))
	m.last = t
}

// follow takes a limiter through a history and compares it with the model: it must admit what the model has, and deny
// what is missing by a nanosecond.
func follow(t *testing.T, limit Limit, burst int, history func() (time.Duration, int, bool)) {
	lim, m := NewLimiter(limit, burst), newModel(limit, burst)
	passed := 0.0
	for i := 0; ; i++ {
		now, n, more := history()
		if !more {
			return
		}
		// Each new bucket may cost a unit, and a limit that is no exact number of units is rounded to a float64.
		passed += math.Abs((now - m.last).Seconds())
		slack := float64(i+2)/float64(lim.bucket.Load().unit) + math.Abs(float64(limit))*passed/(1<<51)
		rounding := new(big.Rat).SetFloat64(slack)
		tokens := m.tokensAt(now)
		spare := new(big.Rat).Sub(tokens, new(big.Rat).SetInt64(int64(n)))
		ok := lim.AllowN(at(now), n)
		exact, _ := spare.Float64()
		if !ok && n <= burst && new(big.Rat).Sub(spare, rounding).Sign() >= 0 {
			t.Fatalf("limit %v, burst %d: event %d of %d at %v was denied, with %v tokens to spare", limit, burst, i, n, now, exact)
		}
		if ok && (n > burst || spare.Add(spare, m.limit).Add(spare, rounding).Sign() < 0) {
			t.Fatalf("limit %v, burst %d: event %d of %d at %v was admitted, with %v tokens missing", limit, burst, i, n, now, -exact)
		}
		if ok {
			m.take(m.hold(now), n)
		}
		want, _ := m.tokensAt(now).Float64()
		if got := lim.TokensAt(at(now)); math.Abs(got-want) > slack+float64(burst)*1e-15 {
			t.Fatalf("limit %v, burst %d: after event %d there are %v tokens, want %v", limit, burst, i, got, want)
		}
	}
}

func TestAllowNLikeModel(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range testkit.Rounds(100, 500) {
		limit := Limit(math.Exp(r.Float64()*46 - 23)) // 1e-10 to 1e10
		burst := int(math.Exp(r.Float64() * 27))      // up to 5e11
		grain := time.Duration(math.Exp(r.Float64() * 25))
		now, left := time.Duration(0), 60
		follow(t, limit, burst, func() (time.Duration, int, bool) {
			now += time.Duration(r.ExpFloat64() * float64(grain))
			if r.IntN(20) == 0 {
				now -= 2*ms + time.Duration(r.ExpFloat64()*float64(grain))
			}
			left--
			return now, 1 + r.IntN(burst+1), left > 0
		})
	}
}

func FuzzAllowN(f *testing.F) {
	f.Add(10.0, 1, []byte("\x01\x20\x01\x20\x01\x21"))
	f.Add(0.7692307692307693, 3, []byte("\x02\x10\x01\x28\x03\x30\x01\x81"))
	f.Add(1e12, 1000, []byte("\xff\x01\xff\x02\xff\x90"))
	f.Add(1e-10, 1<<40, []byte("\x80\x3c\x80\x3d"))
	f.Fuzz(func(t *testing.T, limit float64, burst int, history []byte) {
		if !(limit >= 1e-12 && limit < 1e27) || burst < 1 || burst > 1<<40 {
			return // TestAllowN has those
		}
		history = history[:min(len(history), 200)] // exact fractions grow long
		now := time.Duration(0)
		follow(t, Limit(limit), burst, func() (time.Duration, int, bool) {
			if len(history) < 2 {
				return 0, 0, false
			}
			n, move := int(history[0]), history[1]
			history = history[2:]
			if n > 127 {
				n = burst - (n - 128)
			}
			leap := time.Duration(1) << (move & 63 % 58)
			if move > 127 {
				leap = -2*ms - leap
			}
			// Beyond 292 years there are no differences of times.
			if now+leap < 1<<61 && now+leap > -1<<61 {
				now += leap
			}
			return now, max(1, n), true
		})
	})
}
