package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// contender is a proxy and its guests.
type contender struct {
	name   string
	kind   kind
	proxy  *running // nil: none
	guests guests
	rounds []round
}

// round is one contender's turn. Times are in microseconds.
type round struct {
	rate, cpu, load   float64 // requests a second, CPU a request of the proxy and of who asks
	first, half, most float64 // the first byte's p50, the whole answer's p50 and p99
}

type contenders []*contender

// contest starts proxies, and a number of clients for each. The clients of a contestant that has no proxy to start call
// the provider itself.
func contest(u *upstream, d dialogue, clients int, proxies []proxy) (all contenders, err error) {
	defer func() {
		if err != nil {
			all.stop()
		}
	}()
	for _, p := range proxies {
		c := &contender{name: p.name, kind: p.kind}
		all = append(all, c)
		to := direct(u.Addr().String())
		if p.start != nil {
			if c.proxy, err = p.run(u.Addr().String()); err != nil {
				return all, err
			}
			to = c.proxy.door
		}
		if c.guests, err = newGuests(clients, to, d); err != nil {
			return all, err
		}
	}
	return all, nil
}

func (all contenders) stop() {
	for _, c := range all {
		c.guests.leave()
		if c.proxy != nil {
			c.proxy.stop()
		}
	}
}

// turn is one round; it is kept if it counts.
func (c *contender) turn(d time.Duration, counts bool) error {
	before, err := c.cpu()
	if err != nil {
		return err
	}
	visits, s, err := c.guests.visit(d)
	if err != nil {
		return err
	}
	after, err := c.cpu()
	if err != nil || !counts {
		return err
	}
	n := float64(len(visits))
	c.rounds = append(c.rounds, round{
		rate:  n / s.elapsed.Seconds(),
		cpu:   micros(after-before) / n,
		load:  micros(s.cpu) / n,
		first: quantile(visits, 0.5, visit.firstByte),
		half:  quantile(visits, 0.5, visit.whole),
		most:  quantile(visits, 0.99, visit.whole),
	})
	return nil
}

// cpu is what the proxy has used until now.
func (c *contender) cpu() (time.Duration, error) {
	if c.proxy == nil {
		return 0, nil
	}
	f, err := c.proxy.tell(order{})
	return f.CPU, err
}

// profile has each take one more turn, of which there is a profile.
func (all contenders) profile(dir, scenario string, d time.Duration) error {
	if dir == "" {
		return nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	for _, c := range all {
		if c.proxy == nil {
			continue
		}
		path := filepath.Join(dir, fileName.Replace(scenario+" "+c.name))
		if _, err := c.proxy.tell(order{Profile: path + ".cpu"}); err != nil {
			return err
		}
		if err := c.turn(d, false); err != nil {
			return err
		}
		if _, err := c.proxy.tell(order{Profiled: path + ".allocs"}); err != nil {
			return err
		}
	}
	return nil
}

var fileName = strings.NewReplacer("/", "-", " ", "-", ",", "")

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// quantile is in microseconds.
func quantile(all []visit, q float64, of func(visit) time.Duration) float64 {
	times := make([]time.Duration, len(all))
	for i, v := range all {
		times[i] = of(v)
	}
	slices.Sort(times)
	return micros(times[min(int(q*float64(len(times))), len(times)-1)])
}

// against is the median, over the rounds, of a figure of two: what disturbs a round disturbs both.
func (all contenders) against(us, them string, figure func(us, them round) float64) float64 {
	a, b := all.named(us).rounds, all.named(them).rounds
	figures := make([]float64, len(a))
	for i := range a {
		figures[i] = figure(a[i], b[i])
	}
	return median(figures)
}

func (all contenders) named(name string) *contender {
	return all[slices.IndexFunc(all, func(c *contender) bool { return c.name == name })]
}

func (all contenders) report(name, title string) report {
	rep := report{name: name, title: title, columns: []string{
		"requests/s", "of " + nameReverse, "proxy's CPU, µs", "clients' and provider's", "first byte p50, µs", "over " + nameReverse, "whole p50, µs", "p99",
	}}
	for _, c := range all {
		figure := func(of func(round) float64) float64 { return medianOf(c.rounds, of) }
		rep.rows = append(rep.rows, row{name: c.name, kind: c.kind, value: 1e9 / figure(func(r round) float64 { return r.rate }), cells: []string{
			fmt.Sprintf("%.0f", figure(func(r round) float64 { return r.rate })),
			fmt.Sprintf("%.0f%%", 100*all.against(c.name, nameReverse, func(us, them round) float64 { return us.rate / them.rate })),
			fmt.Sprintf("%.1f", figure(func(r round) float64 { return r.cpu })),
			fmt.Sprintf("%.1f", figure(func(r round) float64 { return r.load })),
			fmt.Sprintf("%.0f", figure(func(r round) float64 { return r.first })),
			fmt.Sprintf("%+.0f", all.against(c.name, nameReverse, func(us, them round) float64 { return us.first - them.first })),
			fmt.Sprintf("%.0f", figure(func(r round) float64 { return r.half })),
			fmt.Sprintf("%.0f", figure(func(r round) float64 { return r.most })),
		}})
	}
	return rep
}
