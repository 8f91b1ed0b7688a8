package main

import (
	"fmt"
	"strings"
)

// behindBefore ends the name of a gateway that an earlier build of this program runs.
const behindBefore = ", before"

const ofBefore = 97 // percent of the requests a second that an earlier build answers

// withBefore returns proxies with the gateways of an earlier build of this program behind
// ours; none if the program is empty.
func withBefore(all []proxy, program string) []proxy {
	if program == "" {
		return all
	}
	for _, p := range all {
		if p.kind == ours {
			all = append(all, proxy{name: p.name + behindBefore, kind: peer, start: p.start, program: program})
		}
	}
	return all
}

// ownName returns by which name the program that runs the proxy knows it.
func (p proxy) ownName() string { return strings.TrimSuffix(p.name, behindBefore) }

// asFastAsBefore requires each of our gateways to answer nearly as many requests as that of
// the earlier build, if there is one.
func (all contenders) asFastAsBefore(where string) (checks []check) {
	for _, c := range all {
		now, earlier := strings.CutSuffix(c.name, behindBefore)
		if !earlier {
			continue
		}
		got := 100 * all.against(now, c.name, func(us, them round) float64 { return us.rate / them.rate })
		checks = append(checks, check{
			figure:   fmt.Sprintf("%s: %s, requests of %s", where, now, c.name),
			required: fmt.Sprintf("at least %d%%", ofBefore),
			measured: fmt.Sprintf("%.1f%%", got),
			pass:     got >= ofBefore,
		})
	}
	return checks
}
