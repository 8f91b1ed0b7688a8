package ratelimit

import "time"

// minute is what was used of a model in the last 60 seconds and the margin of its
// quota, in a ring, oldest first. It knows the sum of all, so a decision looks at
// nothing but the uses that have just left. Times never go back. Its methods take as
// since the latest time of which a use does not count any more.
//
// It is package limit's sliding log for several units at once: every request
// uses all of them at the same time.
type minute struct {
	ring        []use // a power of two long; use i stands at i modulo its length
	first, next int64
	left        int64 // uses up to that time have left
	sum         counts
}

// use is what was used at a time, in Unix nanoseconds.
type use struct {
	at int64
	n  counts
}

// counts is how much of each unit that is counted by the minute.
type counts [ofSlots]int64

const (
	firstUses = 8
	mostUses  = 4096 // beyond which neighbours merge: they leave late then, by 1/1024 of a minute at most, and never early
	mostSum   = 1 << 62
)

func (m *minute) use(i int64) *use { return &m.ring[i&int64(len(m.ring)-1)] }

// slide takes out the uses that have left.
func (m *minute) slide(since int64) {
	m.left = max(m.left, since)
	for m.first < m.next {
		u := m.use(m.first)
		if u.at > since {
			return
		}
		for i := range m.sum {
			m.sum[i] -= u.n[i]
		}
		m.first++
	}
}

// add enters a use at now, which is not before any other.
func (m *minute) add(now int64, n counts) {
	if m.next == m.first || m.use(m.next-1).at != now {
		m.makeRoom()
		*m.use(m.next) = use{at: now}
		m.next++
	}
	m.correct(m.next-1, &n)
}

// correct adds to a use, or takes off it if n is negative.
func (m *minute) correct(i int64, n *counts) {
	u := m.use(i)
	for k := range n {
		more := min(max(n[k], -u.n[k]), mostSum-m.sum[k])
		u.n[k] += more
		m.sum[k] += more
	}
}

// settle corrects what was used at a time by so much, unless it has left.
func (m *minute) settle(at, since int64, n *counts) {
	if at <= max(since, m.left) { // a margin that has grown brings none back
		return
	}
	low, high := m.first, m.next
	for back := int64(1); m.next-back >= m.first; back *= 2 { // it is likely to be one of the last
		if m.use(m.next-back).at < at {
			low = m.next - back + 1
			break
		}
		high = m.next - back
	}
	for low < high {
		if middle := low + (high-low)/2; m.use(middle).at < at {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low < m.next {
		m.correct(low, n)
	}
}

// retry returns when so much of a unit has left.
func (m *minute) retry(u unit, much, since int64) time.Duration {
	i := m.first
	for much -= m.use(i).n[u]; much > 0; much -= m.use(i).n[u] {
		i++
	}
	return time.Duration(m.use(i).at - since)
}

// usedBy returns how much of a unit was used up to a time, of the uses that count.
func (m *minute) usedBy(at int64, u unit) (n int64) {
	for i := m.first; i < m.next && m.use(i).at <= at; i++ {
		n += m.use(i).n[u]
	}
	return n
}

func (m *minute) makeRoom() {
	if m.next-m.first < int64(len(m.ring)) {
		return
	}
	if len(m.ring) == mostUses {
		m.merge()
		return
	}
	ring := make([]use, max(2*len(m.ring), firstUses))
	for i := m.first; i < m.next; i++ {
		ring[i&int64(len(ring)-1)] = *m.use(i)
	}
	m.ring = ring
}

// merge makes one of those uses that fall into one cell of a grid, as of the
// latest of them. The ring is half full then, or three quarters with MaxMargin.
func (m *minute) merge() {
	const cell = int64(time.Minute) / (mostUses/2 - 1)
	into, end := m.first, int64(0)
	for i := m.first; i < m.next; i++ {
		u := *m.use(i)
		if i > m.first && u.at < end {
			last := m.use(into - 1)
			last.at = u.at
			for k := range u.n {
				last.n[k] += u.n[k]
			}
			continue
		}
		*m.use(into) = u
		into++
		end = u.at - u.at%cell + cell
	}
	m.next = into
}
