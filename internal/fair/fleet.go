package fair

import (
	"math"
	"slices"
	"time"
)

// Report is what one node reports to others about a pool.
type Report struct {
	Members []MemberReport `json:"m,omitempty"` // that have called there lately
}

// MemberReport is what one node reports to others about a member.
type MemberReport struct {
	Name  string       `json:"n"`
	Terms Terms        `json:"t"`
	In    []InGroup    `json:"g,omitempty"` // the groups that the member is in, the innermost first
	Waits bool         `json:"w,omitempty"` // calls of the member wait there for its share
	Idle  int64        `json:"i,omitempty"` // for how many nanoseconds it has not asked there
	Parts []PartReport `json:"p"`           // one for each quota
}

// InGroup is a group in a report.
type InGroup struct {
	Name  string `json:"n"`
	Terms Terms  `json:"t"`
}

// PartReport is what a member has done with one quota on one node.
type PartReport struct {
	Used    int64 `json:"u,omitempty"`
	Calls   int64 `json:"c,omitempty"` // in the last period
	Rate    int64 `json:"r,omitempty"` // what it asks for in a period in which none of its calls waits
	Pressed bool  `json:"h,omitempty"` // it had to wait, or asked for more than its share
	Gathers int64 `json:"g,omitempty"` // for a waiting call that is larger than its share
	Waiting int64 `json:"q,omitempty"` // calls that wait for what others hold
	Taken   int64 `json:"k,omitempty"` // of the quota, since the node began; it begins again at the largest amount of a report
}

// nodeReport is the last report of a node on a member.
type nodeReport struct {
	at int64
	MemberReport
}

// source is whose report it is, and on whom: reports on users beyond mostSingle count for one member.
type source struct{ node, name string }

const (
	// ReportEvery is how often a node reports at least.
	ReportEvery = time.Second

	// lost is for how long the report of another node counts.
	lost = int64(3 * ReportEvery)

	// heardIn is after how long at most a report reaches other nodes.
	heardIn = int64(100 * time.Millisecond)

	// rough is by which part of a share the counts of a pool and of a store may differ, because a
	// pool counts in parts of a period: a tenth.
	rough = 10

	// mostMembers is how many members that call elsewhere are known at most, and how many reports count for one.
	mostMembers = 10_000

	// mostGroups is in how many groups a member may be.
	mostGroups = maxDepth - 1

	// mostReported is the largest amount that makes sense in a report.
	mostReported = 1 << 50
)

// Report returns what this node has to report to others: of all members that have called lately or hold something and,
// even if it is not to be the whole, of those whose calls have changed something since the last report.
func (p *Pool) Report(now int64, whole bool) (all Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move(now)
	for _, m := range p.members {
		if m.parked || !whole && !m.changed {
			continue
		}
		changed := m.changed
		m.changed = false
		p.pass(m, now)
		r := MemberReport{Name: m.name, Terms: m.own, Waits: m.wanting > 0, Idle: min(max(now-m.asked, 0), endless)}
		if !changed && !r.Waits && now-m.called >= p.shortest && !p.holds(m) {
			continue
		}
		for g := m.above; g.group != nil; g = g.above {
			if g.name != m.name {
				r.In = append(r.In, InGroup{g.name, g.group.Terms()})
			}
		}
		for i := range m.parts {
			t := &m.parts[i]
			a := &t.asks
			each := PartReport{t.used.sumAt(now), max(a.now.calls, a.before.calls), min(a.in(p.quotas[i].period, m.free), mostReported), a.pressed || a.hadToBe, 0, t.waiting, t.taken % mostReported}
			if p.gathering == m {
				each.Gathers = p.gathers(m, i)
			}
			r.Parts = append(r.Parts, each)
		}
		all.Members = append(all.Members, r)
	}
	return all
}

// Hear enters the report of another node. What makes no sense in it does not count.
func (p *Pool) Hear(from string, now int64, all Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	touched := map[*node]bool{}
	for _, r := range all.Members {
		known := p.members[r.Name]
		if len(r.Parts) != len(p.quotas) || !r.sane() || known == nil && len(p.members) >= mostMembers {
			continue
		}
		m := known
		if m == nil {
			m = p.member(&Who{Name: r.Name, Group: p.groupsOf(r.In)}, r.Terms, now)
		} else {
			p.unpark(m)
		}
		m.enterReport(source{from, r.Name}, now, r)
		touched[m] = true
	}
	for m := range touched {
		p.sum(m, now)
	}
}

// enterReport enters what another node has reported of a member.
func (m *node) enterReport(from source, now int64, r MemberReport) {
	if m.nodes == nil {
		m.nodes = map[source]nodeReport{}
	}
	before, known := m.nodes[from]
	if !known && len(m.nodes) >= mostMembers {
		return
	}
	r.Parts = slices.Clone(r.Parts) // move changes them
	for i, t := range r.Parts {
		q := &m.pool.quotas[i]
		if !known {
			q.others.spread(now, max(t.Used, 0))
			continue
		}
		by := min(max(t.Taken-before.Parts[i].Taken, -q.count), q.count) // a node that began anew has taken less than before
		m.serve(i, by)
		q.others.add(now, max(by, 0))
	}
	m.nodes[from] = nodeReport{now, r}
}

// sane reports whether the numbers of a report, and the groups in it, are possible.
func (r *MemberReport) sane() bool {
	const most = mostReported
	for _, t := range r.Parts {
		if max(t.Used, -t.Used, t.Calls, t.Rate, t.Gathers, t.Waiting, t.Taken) > most || min(t.Calls, t.Rate, t.Gathers, t.Waiting) < 0 || t.Used == math.MinInt64 {
			return false
		}
	}
	for i, g := range r.In {
		same := func(other InGroup) bool { return other.Name == g.Name }
		if !g.Terms.sane() || g.Name == r.Name || slices.ContainsFunc(r.In[:min(i, mostGroups)], same) { // nothing is in itself
			return false
		}
	}
	return r.Idle >= 0 && len(r.In) <= mostGroups && r.Terms.sane()
}

func (t *Terms) sane() bool {
	return t.Weight >= 0 && t.Weight <= 1<<30 && t.Min >= 0 && t.Min <= Whole && t.Max >= 0 && t.Max <= Whole
}

// groupsOf returns the innermost of the groups in a report, with the others above it.
func (p *Pool) groupsOf(list []InGroup) (inner *Group) {
	for _, in := range slices.Backward(list) {
		g := p.heard[in.Name]
		if g == nil || g.Above != inner {
			g = &Group{Name: in.Name, Above: inner}
			if p.heard == nil || len(p.heard) >= mostMembers {
				p.heard = map[string]*Group{}
			}
			p.heard[in.Name] = g
		}
		g.Set(in.Terms)
		inner = g
	}
	return inner
}

// sum adds up what other nodes have reported of a member. Of a node that does not report on it any
// more, only what was used in fixed windows counts, until these end.
func (p *Pool) sum(m *node, now int64) {
	m.waitsTo, m.nodesEnd = 0, math.MaxInt64
	remote := make([]int64, len(m.parts))
	for i := range m.parts {
		m.parts[i].elsewhere, m.parts[i].unheard = PartReport{}, 0
	}
	for node, r := range m.nodes {
		gone, kept := now >= r.at+lost, int64(0)
		for i, t := range r.Parts {
			q, e := &p.quotas[i], &m.parts[i].elsewhere
			if !gone || q.resetAt > 0 {
				remote[i] += t.Used
				kept += t.Used
			}
			if gone {
				continue
			}
			e.Calls, e.Rate, e.Pressed, e.Gathers = e.Calls+t.Calls, min(e.Rate+t.Rate, endless), e.Pressed || t.Pressed, max(e.Gathers, t.Gathers)
			if e.Waiting += t.Waiting; t.Waiting > 0 {
				q.waitsTo = max(q.waitsTo, r.at+lost)
			}
		}
		if gone {
			if kept == 0 {
				delete(m.nodes, node)
			}
			continue
		}
		m.nodesEnd = min(m.nodesEnd, r.at+lost)
		m.last = max(m.last, r.at-r.Idle)
		if r.Waits {
			m.waitsTo = max(m.waitsTo, r.at+lost)
		}
	}
	for i := range remote {
		m.setRemote(i, remote[i])
	}
	for g := m.above; g != nil; g = g.above {
		g.last, g.waitsTo = max(g.last, m.last), max(g.waitsTo, m.waitsTo)
	}
	p.disturb()
}

// setRemote sets what a member has used on other nodes, which those above it have used too.
func (m *node) setRemote(i int, n int64) {
	by := n - m.parts[i].remote
	for x := m; x != nil; x = x.above {
		x.parts[i].remote += by
	}
}

// Confirm corrects what a member has used on other nodes by what a store that all nodes share has
// counted for it within the last period of each quota, with the amounts that it has just taken; -1 is
// what was not counted. It returns which share denies the call after all, because the member has used
// more on other nodes than this node knew of when the amounts were taken. A share that has only become
// smaller since then denies nothing.
func (p *Pool) Confirm(w *Who, now int64, amounts []Amount, counted []int64) Denial {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.find(w)
	if m == nil {
		return Denial{}
	}
	for i := range amounts {
		t := &m.parts[i]
		reported := t.remote - t.unheard
		if more := counted[i] - t.used.sumAt(now) - reported; more > t.share>>p.quotas[i].scale/rough {
			m.setRemote(i, reported+more)
			t.unheard = more
			m.nodesEnd = min(m.nodesEnd, now+heardIn) // then the others will have reported it
		}
	}
	for i := range amounts {
		n := amounts[i].N + amounts[i].Extra
		if n < 0 || p.quotas[i].held || m.parts[i].remote <= amounts[i].remote {
			continue
		}
		for x := m; x.above != nil; x = x.above {
			t := &x.parts[i]
			if before := t.usedAt(now) - n; before > 0 && !t.fits(&p.quotas[i], before, n) {
				return p.denial(m, x, i, now, amounts[i].N)
			}
		}
	}
	return Denial{}
}
