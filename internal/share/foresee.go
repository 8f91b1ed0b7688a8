package share

// foresee computes how much more of a quota comes back than the members are expected to want of
// their shares, at the time within the next period at which that is least. It is at most zero: that
// much of what is free now must stay free. used is what is used of the quota, by its own count.
func (p *Pool) foresee(i int, now int64, used float64) {
	q := &p.quotas[i]
	q.lending, q.spare = outdated{at: now}, 0
	var back, stays, wanted curve
	q.comesBack(now, used, &back, &stays)
	for _, m := range p.order {
		p.addWanted(m, i, now, q.count-used, &back, &stays, &wanted)
	}
	for k := range wanted {
		q.spare = min(q.spare, back[k]-wanted[k])
	}
}

// comesBack fills in how much of what is used of the quota comes back by each time, and which part of
// what is used on other nodes stays used.
func (q *quota) comesBack(now int64, used float64, back, stays *curve) {
	var here, elsewhere curve
	q.used.ahead(now, &here)
	q.elsewhere(now, &elsewhere)
	known := here[0] + elsewhere[0]
	for k := range back {
		if back[k] = min(known-here[k]-elsewhere[k], used); q.isReset(now, k) {
			back[k] = used
		}
		stays[k] = elsewhere[k] / max(elsewhere[0], 1)
	}
}

// isReset reports whether a fixed window has ended by the time of a point of a curve.
func (q *quota) isReset(now int64, k int) bool {
	return q.resetAt > 0 && now+q.after(k) >= q.resetAt
}

// after returns how long after its beginning a point of a curve is.
func (q *quota) after(k int) int64 { return int64(k) * q.period / parts }

// addWanted adds how much of its share a member is expected to ask for from now until each time, of a
// quota of which so much is free now.
func (p *Pool) addWanted(m *member, i int, now int64, free float64, back, stays, wanted *curve) {
	q, t := &p.quotas[i], &m.parts[i]
	atOnce, rate := p.asks(m, i, now)
	kept := 0.0 // whatever the member does
	if m.terms.Min > 0 && (m.dedicated || p.active(m, i, now)) {
		kept = min(m.terms.Min*q.count, t.share)
	}
	if atOnce == 0 && rate == 0 && kept == 0 {
		return
	}
	var here curve
	t.used.ahead(now, &here)
	elsewhere := t.usedAt(now) - here[0]
	share, half := min(t.share, t.demand), float64(t.size)/2
	for k := range wanted {
		if 2*half > free+back[k] {
			continue // the member's call does not pass yet
		}
		used := here[k] + elsewhere*stays[k]
		left := share - used - t.carry
		if q.isReset(now, k) {
			left = share
		}
		if left < half && used+t.carry > 0 {
			left = 0 // none of its calls fits
		}
		wanted[k] += max(min(left, atOnce+rate*float64(q.after(k))), kept-used, 0)
	}
}
