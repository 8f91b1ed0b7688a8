package main

import (
	"bytes"
	"fmt"
)

const (
	openStreams = 5_000
	maxHeap     = 40 << 10 // bytes an open stream
)

// heldCall is a stream that stops after its first chunk until the provider may go on.
func heldCall() dialogue {
	d := streamedCall()
	d.text = bytes.Replace(d.text, streamed, []byte(`"stream":true,"user":"hold"`), 1)
	return d
}

// manyStreams measures the memory of proxies while many streams are open: each has sent its first
// chunk and waits for the next.
func manyStreams(b *bench) (result, error) {
	u, err := newUpstream()
	if err != nil {
		return result{}, err
	}
	defer u.Close()
	n := b.sized(openStreams)
	rep := report{name: "gateway/streams", title: fmt.Sprintf("memory of a proxy for each of %d open streams, after a collection", n),
		columns: []string{"heap, bytes", "stacks", "together"}}
	var checks []check
	for _, p := range proxies() {
		b.step(p.name)
		each, err := p.memory(u, n)
		if err != nil {
			return result{}, fmt.Errorf("%s: %w", p.name, err)
		}
		rep.rows = append(rep.rows, row{name: p.name, kind: p.kind, value: each.heap, cells: []string{
			fmt.Sprintf("%.0f", each.heap), fmt.Sprintf("%.0f", each.stacks), fmt.Sprintf("%.0f", each.heap+each.stacks),
		}})
		if p.kind == ours {
			checks = append(checks, check{
				figure:   "gateway/streams: " + p.name + ", heap of an open stream",
				required: fmt.Sprintf("less than %d KB", maxHeap>>10),
				measured: fmt.Sprintf("%.1f KB", each.heap/(1<<10)),
				pass:     each.heap < maxHeap,
			})
		}
	}
	return result{reports: []report{rep}, checks: checks}, nil
}

// memoryEach is in bytes.
type memoryEach struct{ heap, stacks float64 }

// memory opens so many streams, and sees all of them through to their ends.
func (p proxy) memory(u *upstream, streams int) (memoryEach, error) {
	proxy, err := p.run(u.Addr().String())
	if err != nil {
		return memoryEach{}, err
	}
	defer proxy.stop()
	if err := warm(proxy.door); err != nil {
		return memoryEach{}, err
	}
	before, err := proxy.tell(order{Collect: true})
	if err != nil {
		return memoryEach{}, err
	}
	all, err := newGuests(streams, proxy.door, heldCall())
	if err != nil {
		return memoryEach{}, err
	}
	defer all.leave()
	if err := all.begin(); err != nil {
		return memoryEach{}, err
	}
	open, err := proxy.tell(order{Collect: true})
	if err != nil {
		return memoryEach{}, err
	}
	u.release()
	each := func(before, open uint64) float64 { return (float64(open) - float64(before)) / float64(streams) }
	return memoryEach{each(before.Heap, open.Heap), each(before.Stacks, open.Stacks)}, all.end()
}

// warm has a proxy make whatever it makes once.
func warm(to door) error {
	one, err := newGuests(1, to, streamedCall())
	if err != nil {
		return err
	}
	defer one.leave()
	_, _, err = one.visit(0)
	return err
}
