package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// fleetLoad is hog with a quota that is large enough for one call to be half a point of what two
// windows hold. Of its three windows the first does not count: in it nobody knows who will come.
func fleetLoad() *load {
	l := loads()[0]
	l.quota, l.windows = 120, 3
	return &l
}

// measured has the shares and the calls to Redis of one fleet, over the minutes that count.
type measured struct {
	gateways int
	projects bool // calls name their projects; if not, nothing is divided
	service  *service
	calls    int // that were answered
	asked    int // commands that Redis got from the gateways
	messages int // of these, messages to the other gateways
}

// counts is the time that counts.
func counts(l *load) span { return span{window, l.length()} }

// drive lets the workers of a load call through all gateways of a fleet, in real time.
func (f *fleet) drive(ctx context.Context, l *load, projects bool) (*measured, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		start = time.Now()
		mu    sync.Mutex
		all   []*call
		done  sync.WaitGroup

		failed int
	)
	work := func(client int, g *gateway) {
		who, name := l.clients[client], ""
		if projects {
			name = who.name
		}
		for ctx.Err() == nil {
			c := &call{client: client, cost: who.cost, arrived: time.Since(start), admitted: never}
			err := f.call(ctx, g, name)
			mu.Lock()
			all = append(all, c)
			switch {
			case err == nil:
				c.admitted = time.Since(start) - l.answer
			case ctx.Err() == nil:
				failed++
				if failed >= mostFailed {
					cancel(err)
				}
			}
			mu.Unlock()
			sleep(ctx, who.pause)
		}
	}
	workers := 0
	for i, c := range l.clients {
		for range c.workers {
			g := f.gateways[workers%len(f.gateways)]
			done.Go(func() { work(i, g) })
			workers++
		}
	}
	m := &measured{gateways: len(f.gateways), projects: projects}
	err := f.count(ctx, l, m)
	cancel(errOver)
	done.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, errOver) {
		err = cause
	}
	m.service = newService(l, all)
	for _, r := range m.service.of {
		m.calls += r.in(counts(l))
	}
	return m, err
}

// mostFailed is how many calls may fail: on a busy machine a gateway does not always reach Redis in time.
const mostFailed = 20

// errOver ends the calls at the end of a load.
var errOver = errors.New("the load is over")

// count waits until the end of a load, and counts what Redis is asked meanwhile.
func (f *fleet) count(ctx context.Context, l *load, m *measured) error {
	sleep(ctx, counts(l).from)
	all, messages, err := f.asked()
	if err != nil {
		return err
	}
	sleep(ctx, counts(l).to-counts(l).from)
	m.asked, m.messages, err = f.asked()
	m.asked, m.messages = m.asked-all, m.messages-messages
	return err
}

// measureFleets measures one fleet for each of the sizes, all of them at once. Beside each fleet runs a
// second one of the same size whose calls name no project, so that no quota is divided there.
func measureFleets(ctx context.Context, sizes []int, l *load, progress io.Writer) ([]*measured, error) {
	dir, err := os.MkdirTemp("", "fair")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	fmt.Fprintln(progress, "building the gateway")
	program, err := buildGateway(ctx, dir)
	if err != nil {
		return nil, err
	}
	results, errs := make([]*measured, 2*len(sizes)), make([]error, 2*len(sizes))
	var done sync.WaitGroup
	for i := range results {
		fmt.Fprintf(progress, "starting %d gateways\n", sizes[i/2])
		f, err := newFleet(ctx, program, configOf(l), l.answer, sizes[i/2])
		if err != nil {
			return nil, err
		}
		defer f.close()
		done.Go(func() { results[i], errs[i] = f.drive(ctx, l, i%2 == 0) })
	}
	ended := make(chan struct{})
	go func() {
		done.Wait()
		close(ended)
	}()
	for start, tick := time.Now(), time.Tick(10*time.Second); ; {
		select {
		case <-tick:
			fmt.Fprintf(progress, "%4.0f of %.0f s\n", time.Since(start).Seconds(), l.length().Seconds())
		case <-ended:
			return results, errors.Join(errs...)
		}
	}
}

// fleetTable has a row for each fleet.
func fleetTable(l *load, all []*measured) table {
	t := table{
		title: "gateways on one Redis",
		about: []string{
			l.about,
			fmt.Sprintf("%d %s a minute; %d minutes in real time, of which the first does not count", l.quota, l.unit, l.windows),
		},
		columns: []string{"gateways", "off share"},
	}
	for _, c := range l.clients {
		t.columns = append(t.columns, c.name)
	}
	t.columns = append(t.columns, "used", "Redis calls", "messages", "one project", "messages")
	for i := 0; i < len(all); i += 2 {
		m, one := all[i], all[i+1]
		points, _ := m.service.worstShare(window)
		cells := []string{fmt.Sprint(m.gateways), fmt.Sprintf("%.1f", points)}
		for i := range l.clients {
			cells = append(cells, fmt.Sprintf("%.1f%%", 100*m.service.share(i, counts(l))))
		}
		possible := l.quota * (l.windows - 1)
		cells = append(cells, fmt.Sprintf("%.1f%%", 100*float64(m.calls)/float64(possible)),
			m.perCall(m.asked-m.messages), m.perCall(m.messages), one.perCall(one.asked-one.messages), one.perCall(one.messages))
		t.rows = append(t.rows, cells)
	}
	return t
}

func (m *measured) perCall(n int) string {
	return fmt.Sprintf("%.2f", float64(n)/float64(max(m.calls, 1)))
}

// parseSizes reads the sizes of fleets, such as 2,4,8.
func parseSizes(text string) (sizes []int, err error) {
	for each := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(each)
		if err != nil || n < 1 || n > 32 {
			return nil, fmt.Errorf("%q: it must be numbers of gateways from 1 to 32, such as 2,4,8", text)
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}

// showFleets measures fleets and prints the table. It returns the exit status.
func showFleets(ctx context.Context, gateways string, markdown bool, stdout, stderr io.Writer) int {
	sizes, err := parseSizes(gateways)
	if err != nil {
		fmt.Fprintf(stderr, "fair: -gateways: %v\n", err)
		return 2
	}
	l := fleetLoad()
	all, err := measureFleets(ctx, sizes, l, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "fair: %v\n", err)
		return 1
	}
	fleetTable(l, all).print(stdout, markdown)
	return 0
}
