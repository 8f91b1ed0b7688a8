package main

import (
	"bytes"
	"fmt"
	"time"
)

const (
	ofReverse       = 100 // percent of its requests a second, with the counters in memory
	ofReverseSQLite = 75
	ofMemory        = 85  // percent of the requests a second of the counters in memory, with SQLite
	ofMemoryAlone   = 60  // the same with one connection
	maxFirstByte    = 100 // microseconds more than through ReverseProxy
)

// proxying measures calls through proxies, by so many clients at a time, and requires something of
// them.
func proxying(name, about string, d dialogue, clients int, require func(where string, all contenders) []check) scenario {
	return scenario{name, about, func(b *bench) (result, error) {
		had := b.freeCores()
		u, err := newUpstream()
		if err != nil {
			return result{}, err
		}
		defer u.Close()
		all, err := contest(u, d, clients, append([]proxy{{name: nameDirect, kind: floor}}, withBefore(proxies(), b.before)...))
		if err != nil {
			return result{}, err
		}
		defer all.stop()
		slice := max(5*b.slice, 5*time.Millisecond)
		for round := range b.rounds + 1 { // the first is to warm up
			for _, c := range all {
				b.step(fmt.Sprintf("%s, round %d of %d", c.name, round, b.rounds))
				if err := c.turn(slice, round > 0); err != nil {
					return result{}, fmt.Errorf("%s: %w", c.name, err)
				}
			}
		}
		if err := all.profile(b.profiles, name, 10*slice); err != nil {
			return result{}, err
		}
		title := fmt.Sprintf("%s; median of %d interleaved rounds of %v", about, b.rounds, slice)
		return result{reports: []report{all.report(name, title)}, checks: append(require(name, all), all.asFastAsBefore(name)...), notes: noise(name, had, cores)}, nil
	}}
}

// wholeCall is a call of about a kilobyte each way.
func wholeCall() dialogue {
	return dialogue{bytes.Replace(chatBody(1<<10, 2), streamed, []byte(`"stream":false`), 1), callAnswer}
}

// streamedCall is one whose answer comes in chunks. It asks for its usage, so that those who want
// to know that have nothing to put in, nor to leave out.
func streamedCall() dialogue {
	return dialogue{bytes.Replace(chatBody(1<<10, 2), streamed, []byte(`"stream":true,"stream_options":{"include_usage":true}`), 1), bytes.Join(gatewayEvents, nil)}
}

// asFast requires ours to answer as many requests as the bare proxy, or a part of them.
func asFast(where string, all contenders) []check {
	return []check{all.asFast(where, nameGateway, ofReverse), all.asFast(where, nameGatewaySQLite, ofReverseSQLite)}
}

func (all contenders) asFast(where, name string, least float64) check {
	got := 100 * all.against(name, nameReverse, func(us, them round) float64 { return us.rate / them.rate })
	return check{
		figure:   fmt.Sprintf("%s: %s, requests of %s", where, name, nameReverse),
		required: fmt.Sprintf("at least %.0f%%", least),
		measured: fmt.Sprintf("%.0f%%", got),
		pass:     got >= least,
	}
}

// asFastAndNearMemory requires both of asFast, and of the gateway with SQLite a part of the requests that it answers with
// the counters in memory.
func asFastAndNearMemory(where string, all contenders) []check {
	return append(asFast(where, all), all.nearMemory(where, ofMemory))
}

// nearMemoryAlone requires that part with one connection.
func nearMemoryAlone(where string, all contenders) []check {
	return []check{all.nearMemory(where, ofMemoryAlone)}
}

func (all contenders) nearMemory(where string, least float64) check {
	got := 100 * all.against(nameGatewaySQLite, nameGateway, func(us, them round) float64 { return us.rate / them.rate })
	return check{
		figure:   fmt.Sprintf("%s: %s, requests of %s", where, nameGatewaySQLite, nameGateway),
		required: fmt.Sprintf("at least %.0f%%", least),
		measured: fmt.Sprintf("%.0f%%", got),
		pass:     got >= least,
	}
}

// asSoon requires the first byte of a stream to come nearly as soon as through the bare proxy.
func asSoon(where string, all contenders) []check {
	got := all.against(nameGateway, nameReverse, func(us, them round) float64 { return us.first - them.first })
	return []check{{
		figure:   fmt.Sprintf("%s: %s, first byte, p50, over %s", where, nameGateway, nameReverse),
		required: fmt.Sprintf("less than %d µs", maxFirstByte),
		measured: fmt.Sprintf("%.0f", got),
		pass:     got < maxFirstByte,
	}}
}

// asFastAndSoon requires both.
func asFastAndSoon(where string, all contenders) []check {
	return append(asFast(where, all), asSoon(where, all)...)
}
