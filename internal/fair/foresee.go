package fair

// foresee computes how much more comes back of what a group has of a quota than those in it are expected to want of
// their shares, at the time within the next period at which that is least. It is at most zero: that much of what is
// free now must stay free. used is what the group has used.
func (p *Pool) foresee(g *node, i int, now, used int64) {
	t := &g.parts[i]
	t.lending, t.spare = outdated{at: now}, 0
	var back, stays, wanted curve
	p.comesBack(g, i, now, used, &back, &stays)
	whole := p.whole(g, i)
	margin := whole / marginPart / int64(max(len(g.below)-1, 1))
	for _, x := range g.below {
		p.addWanted(x, i, now, whole-used, margin, &back, &stays, &wanted)
	}
	for k := range wanted {
		t.spare = min(t.spare, back[k]-wanted[k])
	}
}

// marginPart is the part of what a group has that is kept free for calls of those below their shares that come closer
// together than on average: a fiftieth, so that 98% are used.
const marginPart = 50

// comesBack fills in how much of what a group has used comes back by each time, and which part of what is used on other
// nodes stays used, in thousandths. Of all members, that is the same part.
func (p *Pool) comesBack(g *node, i int, now, used int64, back, stays *curve) {
	q := &p.quotas[i]
	var here, elsewhere curve
	g.parts[i].used.ahead(now, &here)
	q.others.ahead(now, &elsewhere)
	for k := range stays {
		stays[k] = 1000 // if nothing is known of when it was used
		if elsewhere[0] > 0 {
			stays[k] = mulDiv(elsewhere[k], 1000, elsewhere[0])
		}
	}
	for k := range back {
		back[k] = min(here[0]-here[k]+mulDiv(max(g.parts[i].remote, 0), 1000-stays[k], 1000), used)
		if q.isReset(now, k) {
			back[k] = used
		}
	}
}

// isReset reports whether a fixed window has ended by the time of a point of a curve.
func (q *quota) isReset(now int64, k int) bool {
	return q.resetAt > 0 && now+q.after(k) >= q.resetAt
}

// after returns how long after its beginning a point of a curve is.
func (q *quota) after(k int) int64 { return int64(k) * q.period / parts }

// addWanted adds how much of its share a node of the tree is expected to ask for from now until each time, of a
// quota of which free is left now. Two calls of the node may come at any time: margin is what may be kept free for them.
func (p *Pool) addWanted(x *node, i int, now, free, margin int64, back, stays, wanted *curve) {
	q, t := &p.quotas[i], &x.parts[i]
	atOnce, inPeriod := p.asks(x, i, now)
	if inPeriod > 0 && atOnce == 0 && t.size <= margin {
		atOnce = min(2*t.size, margin)
	}
	kept := int64(0) // whatever the node does
	if t.floor > 0 {
		kept = min(t.floor, t.share) >> q.scale
	}
	if atOnce == 0 && inPeriod == 0 && kept == 0 {
		return
	}
	var here curve
	t.used.ahead(now, &here)
	share := min(t.share, t.want)
	for k := range wanted {
		if t.size > free+back[k] {
			continue // the next call does not pass yet
		}
		used := here[k] + t.remote*stays[k]/1000
		counts := used + t.carry
		if q.isReset(now, k) {
			counts = 0
		}
		left := int64(0)
		if t.fits(q, counts, t.size) {
			left = (share - q.fine(max(counts, 0)) + 1<<q.scale - 1) >> q.scale // rounded up
		}
		wanted[k] += max(min(left, atOnce+inPeriod*int64(k)/parts), kept-used, 0)
	}
}
