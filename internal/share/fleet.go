package share

import (
	"math"
	"slices"
	"time"
)

// Report is what one node tells others of a pool.
type Report struct {
	Members []MemberReport `json:"m,omitempty"` // that have called there lately
	Used    [][]float64    `json:"u,omitempty"` // of each quota, in each part of the last period, the oldest first
}

// MemberReport is what one node tells others of a member.
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
	Used    float64 `json:"u,omitempty"`
	Asked   int64   `json:"a,omitempty"` // in the last period
	Calls   int64   `json:"c,omitempty"`
	Rate    float64 `json:"r,omitempty"` // in a nanosecond in which none of its calls waits
	Pressed bool    `json:"h,omitempty"` // it had to wait, or asked for more than its share
	Gathers float64 `json:"g,omitempty"` // for a waiting call that is larger than its share
}

// nodeReport is the last report of a node on a member.
type nodeReport struct {
	at  int64
	seq int64 // the number of the report that it was in
	MemberReport
}

const (
	// ReportEvery is how often a node reports at least.
	ReportEvery = time.Second

	// lost is for how long the report of another node counts.
	lost = int64(3 * ReportEvery)

	// heardIn is after how long at most a node hears what others have used.
	heardIn = 100 * time.Millisecond

	// rough is the part of a share by which the counts of a pool and of a store may differ, because a
	// pool counts in parts of a period.
	rough = 0.1

	// mostMembers is how many members that call elsewhere are known at most.
	mostMembers = 10_000
)

// Report returns what this node has to tell others.
func (p *Pool) Report(now int64) (all Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move(now)
	for i := range p.quotas {
		all.Used = append(all.Used, p.quotas[i].used.list(now))
	}
	for _, m := range p.order {
		p.pass(m, now)
		r := MemberReport{Name: m.name, Terms: m.terms, Waits: m.waiting > 0 && !m.own, Idle: min(now-m.asked, 1<<60)}
		if !r.Waits && r.Idle >= p.shortest {
			continue
		}
		for g := m.in; g != nil; g = g.above {
			r.In = append(r.In, InGroup{g.Name, g.Terms()})
		}
		for i := range m.parts {
			t := &m.parts[i]
			a := &t.asks
			each := PartReport{t.used.sumAt(now), max(a.now.sum, a.before.sum), max(a.now.calls, a.before.calls), a.rate(m.free), a.pressed || a.hadToBe, 0}
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
func (p *Pool) Hear(node string, now int64, all Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reports++
	for i, list := range all.Used {
		if i < len(p.quotas) {
			p.quotas[i].hear(node, now, list)
		}
	}
	for _, r := range all.Members {
		if len(r.Parts) != len(p.quotas) || !r.sane() || p.members[r.Name] == nil && len(p.members) >= mostMembers {
			continue
		}
		who, terms := &Who{Name: r.Name}, r.Terms
		if m := p.members[r.Name]; m != nil {
			if terms = m.terms; m.in != nil {
				who.Group = m.in.Group
			}
		} else {
			who.Group = p.groupsOf(r.In)
		}
		m := p.member(who, terms, now)
		if m.nodes == nil {
			m.nodes = map[string]nodeReport{}
		}
		before, known := m.nodes[node]
		if !known && len(m.nodes) >= maxNodes {
			continue
		}
		r.Parts = slices.Clone(r.Parts) // move changes them
		if before.seq == p.reports {    // users beyond mostSingle count for one member
			r.add(&before.MemberReport)
		}
		m.nodes[node] = nodeReport{now, p.reports, r}
		p.sum(m, now)
	}
}

// add adds what the same node tells of another user that counts for the same member.
func (r *MemberReport) add(other *MemberReport) {
	r.Waits, r.Idle = r.Waits || other.Waits, min(r.Idle, other.Idle)
	for i := range r.Parts {
		t, o := &r.Parts[i], &other.Parts[i]
		*t = PartReport{t.Used + o.Used, t.Asked + o.Asked, t.Calls + o.Calls, t.Rate + o.Rate, t.Pressed || o.Pressed, max(t.Gathers, o.Gathers)}
	}
}

// sane reports whether the numbers of a report are possible.
func (r *MemberReport) sane() bool {
	const most = 1 << 60
	for _, t := range r.Parts {
		if !(math.Abs(t.Used) < most && t.Rate >= 0 && t.Rate < most && t.Gathers >= 0 && t.Gathers < most) || min(t.Asked, t.Calls) < 0 || max(t.Asked, t.Calls) > most {
			return false
		}
	}
	for _, g := range r.In {
		if !g.Terms.sane() {
			return false
		}
	}
	return r.Idle >= 0 && len(r.In) <= mostGroups && r.Terms.sane()
}

// mostGroups is in how many groups a member may be.
const mostGroups = 16

func (t *Terms) sane() bool {
	return t.Weight >= 0 && t.Weight <= 1<<30 && t.Min >= 0 && t.Min <= 1 && t.Max >= 0 && t.Max <= 1
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
func (p *Pool) sum(m *member, now int64) {
	m.nodesWait, m.nodesEnd = 0, math.MaxInt64
	for i := range m.parts {
		m.parts[i].elsewhere, m.parts[i].remote, m.parts[i].unheardUntil = PartReport{}, 0, 0
	}
	for node, r := range m.nodes {
		if now >= r.at+lost {
			kept := 0.0
			for i, t := range r.Parts {
				if p.quotas[i].resetAt > 0 {
					m.parts[i].remote += t.Used
					kept += t.Used
				}
			}
			if kept == 0 {
				delete(m.nodes, node)
			}
			continue
		}
		m.nodesEnd = min(m.nodesEnd, r.at+lost)
		m.last = max(m.last, r.at-r.Idle)
		if r.Waits {
			m.nodesWait = max(m.nodesWait, r.at+lost)
		}
		for i, t := range r.Parts {
			e := &m.parts[i].elsewhere
			e.Asked, e.Calls, e.Rate, e.Pressed = e.Asked+t.Asked, e.Calls+t.Calls, e.Rate+t.Rate, e.Pressed || t.Pressed
			e.Gathers = max(e.Gathers, t.Gathers)
			m.parts[i].remote += t.Used
		}
	}
	p.recounts++
	p.disturb()
}

// Confirm corrects what a member has used on other nodes by what a store that all nodes share has
// counted for it within the last period of each quota, with the amounts that it has just taken; -1 is
// what was not counted. It returns which share denies the call after all, because the member has used
// more than this node knew of.
func (p *Pool) Confirm(w *Who, now int64, amounts []Amount, counted []int64) Denial {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.find(w)
	if m == nil {
		return Denial{}
	}
	for i := range amounts {
		t := &m.parts[i]
		if more := float64(counted[i]) - t.used.sumAt(now) - t.remote; more > t.share*rough {
			t.unheard, t.unheardUntil = more, now+int64(heardIn)
			p.recounts++
		}
	}
	for i := range amounts {
		t := &m.parts[i]
		n := amounts[i].charged()
		if before := t.usedAt(now) - float64(n); n >= 0 && before > 0 && before+float64(n)/2 > t.share {
			return p.denial(m, i, now, amounts[i].N)
		}
	}
	return Denial{}
}

// nodeUse is what another node has used of a quota in each part of the period before a time, the
// oldest first.
type nodeUse struct {
	at   int64
	used []float64
}

// maxNodes is of how many other nodes it is known what they use.
const maxNodes = 1000

// hear enters what another node has used of a quota.
func (q *quota) hear(node string, now int64, list []float64) {
	for name, use := range q.nodes {
		if now >= use.at+lost {
			delete(q.nodes, name)
		}
	}
	valid := len(list) <= parts && !slices.ContainsFunc(list, func(n float64) bool { return !(math.Abs(n) < 1<<60) })
	if !valid || len(q.nodes) >= maxNodes {
		return
	}
	if q.nodes == nil {
		q.nodes = map[string]nodeUse{}
	}
	q.nodes[node] = nodeUse{now, list}
}

// elsewhere fills in what counts as used on other nodes from now on, if nothing else is used.
func (q *quota) elsewhere(now int64, to *curve) {
	for _, use := range q.nodes {
		old := int((now-use.at)/max(q.period/parts, 1)) + len(use.used) - parts // how many of its parts do not count
		sum := 0.0
		for _, n := range use.used[min(max(old, 0), len(use.used)):] {
			sum += n
		}
		for k := range to {
			to[k] += sum
			if at := old + k; at >= 0 && at < len(use.used) {
				sum -= use.used[at]
			}
		}
	}
}
