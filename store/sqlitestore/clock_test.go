package sqlitestore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// machine is a machine whose clocks a test moves.
type machine struct {
	wall, elapsed int64
	boot          string
}

func newMachine() *machine { return &machine{wall: noon, elapsed: int64(time.Hour), boot: "first"} }

// passes lets time pass.
func (m *machine) passes(d time.Duration) {
	m.wall += int64(d)
	m.elapsed += int64(d)
}

// set sets the wall clock.
func (m *machine) set(d time.Duration) { m.wall += int64(d) }

// restart boots the machine anew.
func (m *machine) restart(off time.Duration) {
	m.wall += int64(off)
	m.elapsed, m.boot = 0, m.boot+"'"
}

// openOn opens a file on a machine.
func openOn(t testing.TB, m *machine, path string) *Store {
	s := openAt(t, path)
	s.clock = func() int64 { return m.wall }
	s.uptime = func() (string, int64, bool) { return m.boot, m.elapsed, true }
	return s
}

// admitted takes one after another until it is denied, and returns how many passed.
func admitted(t testing.TB, s *Store, limits ...limit.Limit) (n int) {
	t.Helper()
	for {
		r, _, err := s.Take(t.Context(), charge("key", 1, limits...))
		if err != nil {
			t.Fatal(err)
		}
		if r == nil {
			return n
		}
		n++
	}
}

// However the wall clock is set, a sliding minute holds no more than its limit, on every handle of the
// file, and no less than that once a minute has passed.
func TestWallClockIsSet(t *testing.T) {
	const h = time.Hour
	for name, steps := range map[string][]time.Duration{
		"forward":                  {90 * time.Second},
		"an hour forward":          {h},
		"back":                     {-90 * time.Second},
		"an hour back":             {-h},
		"years forward":            {3 * 8760 * h},
		"forward, and back":        {h, -h},
		"back, and forward":        {-h, h},
		"forward again and again":  {90 * time.Second, 90 * time.Second, 90 * time.Second},
		"by less than is followed": {900 * time.Millisecond},
	} {
		for _, l := range []limit.Limit{
			limit.PerMinute(30).Using(limit.SlidingLog), limit.PerMinute(30).Using(limit.TokenBucket),
			limit.PerMinute(30).Using(limit.FixedWindow).Anchored(),
		} {
			t.Run(fmt.Sprint(name, "/", l), func(t *testing.T) {
				m, path := newMachine(), filepath.Join(t.TempDir(), "limits.db")
				handles := []*Store{openOn(t, m, path), openOn(t, m, path)}
				if n := admitted(t, handles[0], l); n != 30 {
					t.Fatalf("%d passed; want 30", n)
				}
				for _, step := range steps {
					m.set(step)
					for i, s := range append(handles, openOn(t, m, path)) {
						if n := admitted(t, s, l); n > 0 {
							t.Fatalf("%d more passed on handle %d after a step of %v", n, i, step)
						}
					}
				}
				m.passes(time.Minute)
				if n := admitted(t, handles[1], l) + admitted(t, handles[0], l); n != 30 {
					t.Errorf("%d passed a minute later; want 30", n)
				}
			})
		}
	}
}

// A day's limit passes once a day, however the wall clock is set, and follows it in the end.
func TestWallClockIsSetAndDays(t *testing.T) {
	l := limit.PerDay(30).ResetAt(0, time.UTC)
	m := newMachine()
	s := openOn(t, m, filepath.Join(t.TempDir(), "limits.db"))
	for i, step := range []struct {
		passes, set time.Duration
		want        int
	}{
		{want: 30},
		{set: 13 * time.Hour},                       // the next day, by mistake
		{set: -13 * time.Hour},                      // corrected
		{passes: 12 * time.Hour, want: 30},          // midnight
		{set: -2 * time.Hour},                       // back over midnight
		{passes: 2 * time.Hour},                     // midnight a second time
		{passes: 24 * time.Hour, want: 30},          // the next day
		{set: 48 * time.Hour},                       // two days forward, for good
		{passes: 23 * time.Hour},                    // the same day, by the new time
		{passes: time.Hour + time.Second, want: 30}, // and its midnight
	} {
		m.passes(step.passes)
		m.set(step.set)
		if n := admitted(t, s, l); n != step.want {
			t.Fatalf("step %d: %d passed; want %d", i, n, step.want)
		}
	}
	if _, now, err := s.Read(t.Context(), "key"); err != nil || abs(now-m.wall) >= maxDrift {
		t.Errorf("the file's time is %d, %v; the wall clock shows %d", now, err, m.wall)
	}
}

// Between two boots of the machine the wall clock counts. A clock that went back meanwhile frees nothing.
func TestMachineIsRestarted(t *testing.T) {
	l := limit.PerMinute(30).Using(limit.SlidingLog)
	for off, want := range map[time.Duration]int{time.Minute: 30, 30 * time.Second: 0, -time.Hour: 0} {
		m, path := newMachine(), filepath.Join(t.TempDir(), "limits.db")
		s := openOn(t, m, path)
		if n := admitted(t, s, l); n != 30 {
			t.Fatalf("%d passed; want 30", n)
		}
		s.Close()
		m.restart(off)
		s = openOn(t, m, path)
		decisions, err := s.Peek(t.Context(), charge("key", 1, l)) // which does not write
		if err != nil || store.Allowed(decisions) != (want > 0) {
			t.Errorf("off for %v: %+v, %v", off, decisions, err)
		}
		if n := admitted(t, s, l); n != want {
			t.Errorf("off for %v: %d passed; want %d", off, n, want)
		}
		m.set(time.Hour)
		if n := admitted(t, s, l); n != 0 {
			t.Errorf("off for %v: %d passed after a step; want 0", off, n)
		}
	}
}

// A process that shows no clock of elapsed time reads the wall clock.
func TestOnlyWallClock(t *testing.T) {
	m := newMachine()
	s := openOn(t, m, filepath.Join(t.TempDir(), "limits.db"))
	s.uptime = func() (string, int64, bool) { return "", 0, false }
	if _, now, err := s.Read(t.Context(), "key"); err != nil || now != noon {
		t.Errorf("%d, %v; want %d", now, err, noon)
	}
}

// A machine that runs nothing for a moment between the readings of two clocks has not been set.
func TestInterruptedReading(t *testing.T) {
	m := newMachine()
	s := openOn(t, m, filepath.Join(t.TempDir(), "limits.db"))
	take(t, s, charge("key", 1, perDay(10)))
	before := query(t, s, "SELECT began_at FROM clock")
	interrupted := false
	s.clock = func() int64 {
		if !interrupted {
			m.passes(3 * time.Second)
		}
		interrupted = true
		return m.wall
	}
	take(t, s, charge("key", 1, perDay(10)))
	if got := query(t, s, "SELECT began_at FROM clock"); got != before || !interrupted {
		t.Errorf("the anchor moved from %s to %s", before, got)
	}
}

// A step that cannot be finished changes nothing, and the next transaction makes it.
func TestStepFails(t *testing.T) {
	m, path := newMachine(), filepath.Join(t.TempDir(), "limits.db")
	s := openOn(t, m, path)
	l := limit.PerMinute(30).Using(limit.SlidingLog)
	admitted(t, s, l)
	update(t, s, "CREATE TRIGGER refuse BEFORE UPDATE ON ledger BEGIN SELECT RAISE(ABORT, 'refused'); END",
		"CREATE TRIGGER refuse2 BEFORE INSERT ON ledger BEGIN SELECT RAISE(ABORT, 'refused'); END")
	m.set(time.Hour)
	if _, _, err := s.Take(t.Context(), charge("key", 1, l)); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Fatal(err)
	}
	m.set(-time.Hour)
	update(t, s, "DROP TRIGGER refuse", "DROP TRIGGER refuse2")
	m.set(time.Hour)
	if n := admitted(t, s, l); n != 0 {
		t.Errorf("%d passed", n)
	}
}

// admitStepped takes until it is denied, with a wall clock that is wrong by input, and prints a line for each
// take that is admitted.
func admitStepped(s *Store, input string) error {
	wrong, err := time.ParseDuration(strings.TrimSpace(input))
	if err != nil {
		return err
	}
	s.clock = func() int64 { return time.Now().Add(wrong).UnixNano() }
	if err := admit(s, ""); err != nil {
		return err
	}
	_, err = os.Stdout.WriteString("denied\n")
	return err
}

// Processes, some of which are killed, see the wall clock being set between them, by an hour and back.
// All of them together admit the limit once.
func TestWallClockIsSetBetweenProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.db")
	var all int64
	for i, wrong := range []string{"0s", "25h", "-25h", "100h", "0s", "1m30s"} {
		p := start(t, "stepped", path)
		p.begin(wrong)
		if i == 0 {
			all += p.count(quota / 2)
			p.Process.Kill()
			all += p.count(quota)
			p.Wait()
			continue
		}
		all += p.count(quota+1) - 1 // the last line says that it was denied
		if err := p.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if all > quota || all < quota-goroutines {
		t.Errorf("%d were admitted; want %d, and up to %d fewer", all, quota, goroutines)
	}
}
