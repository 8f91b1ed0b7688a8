package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"sync"
	"time"
)

// scene is projects that share a model through gateways on one Redis, in real time.
type scene struct {
	name     string
	limits   string // of the model, as a configuration has them
	projects string // of the configuration
	minute   int    // the quota of a minute: calls, or tokens where crew.amount counts tokens
	crews    []crew
	of       string // the project whose part is compared
	due      int    // percent
}

// crew is workers that make calls of one project: each waits for the answer, and calls again.
type crew struct {
	project string
	workers int
	users   int           // that the workers work for in turn; 0: none
	from    time.Duration // when the workers begin
	answer  time.Duration // how long an answer takes
	stream  bool          // it comes piece by piece
	retry   time.Duration // after which a worker that was turned away calls again
	first   bool          // all workers call the first gateway; otherwise they are spread over all
	asks    int           // the max_tokens of a call; 0: it has none
	tokens  int           // that an answer has
	amount  int           // what a call counts as; 0 is 1
}

// sceneMinutes is how long a scene lasts. The first two minutes do not count: in the first nobody knows who will come, and
// in the second what was lent then comes back.
const sceneMinutes = 4

// scenes are those of long answers, crowds, callers that do not wait, slots, and large and wrongly estimated calls.
func scenes() []scene {
	const second = time.Second
	crowd := func(name string, n int) crew { return crew{project: name, workers: n, users: n, answer: second} }
	honest := crew{project: "honest", workers: 20, answer: second, first: true}
	hog := crew{project: "hog", workers: 100, answer: second}
	late := crowd("crowd", 100)
	late.from = 30 * second
	retries := crew{project: "retries", workers: 20, answer: second, retry: second, first: true}
	slots := func(answer time.Duration) []crew {
		return []crew{{project: "few", workers: 20, answer: answer, first: true}, {project: "many", workers: 60, answer: answer}}
	}
	weights := "\n  few: {weight: 3}\n  many: {}"
	longs := func(few int, answer time.Duration, stream bool) []crew {
		return []crew{{project: "few", workers: few, answer: answer, stream: stream, first: true}, {project: "many", workers: 300, answer: answer, stream: stream}}
	}
	return []scene{
		{"answers of 10 s", "max_rpm: 120", weights, 120, longs(23, 10*second, false), "few", 75},
		{"answers of 20 s", "max_rpm: 120", weights, 120, longs(45, 20*second, false), "few", 75},
		{"streams of 75 s", "max_rpm: 120", weights, 120, longs(170, 75*second, true), "few", 75},
		{"a crowd of 150", "max_rpm: 120", "\n  honest: {}\n  crowd: {}", 120, []crew{honest, crowd("crowd", 150)}, "honest", 50},
		{"three teams of 40", "max_rpm: 120", "\n  honest: {weight: 3}\n  t1: {}\n  t2: {}\n  t3: {}", 120,
			[]crew{honest, crowd("t1", 40), crowd("t2", 40), crowd("t3", 40)}, "honest", 50},
		{"a late crowd", "max_rpm: 120", "\n  honest: {}\n  crowd: {}", 120, []crew{honest, late}, "honest", 50},
		{"a caller that does not wait", "max_rpm: 120", "\n  retries: {max_wait: 0s}\n  hog: {}", 120, []crew{hog, retries}, "retries", 50},
		{"the same, weight 9", "max_rpm: 120", "\n  retries: {max_wait: 0s, weight: 9}\n  hog: {}", 120, []crew{hog, retries}, "retries", 90},
		{"a minimum beside a priority", "max_rpm: 120", "\n  high: {priority: 10}\n  late: {min_share: 30%}", 120,
			[]crew{{project: "high", workers: 100, answer: second}, {project: "late", workers: 30, answer: second, from: 30 * second, first: true}}, "late", 30},
		{"12 slots, answers of 10 s", "max_concurrent: 12", weights, 72, slots(10 * second), "few", 75},
		{"12 slots, answers of 1 s", "max_concurrent: 12", weights, 720, slots(second), "few", 75},
		{"12 slots and tokens", "max_concurrent: 12, max_tpm: 72_000", weights, 72_000,
			[]crew{{project: "few", workers: 20, answer: 5 * second, first: true, asks: 700, tokens: 700, amount: 708}, {project: "many", workers: 60, answer: 5 * second, asks: 700, tokens: 700, amount: 708}}, "few", 75},
		{"calls of a third", "max_tpm: 120_000", "\n  large: {}\n  small: {weight: 5}", 120_000,
			[]crew{{project: "large", workers: 4, answer: second, asks: 40_000, tokens: 39_992, amount: 40_000, first: true}, {project: "small", workers: 100, answer: second, asks: 992, tokens: 992, amount: 1000}}, "large", 17},
		{"answers that are longer than expected", "max_tpm: 120_000", "\n  liar: {}\n  honest: {}", 120_000,
			[]crew{{project: "liar", workers: 100, answer: 2 * second, tokens: 992, amount: 1000}, {project: "honest", workers: 100, answer: 2 * second, asks: 992, tokens: 992, amount: 1000}}, "honest", 50},
	}
}

// config returns the configuration of the gateways of a scene.
func (s *scene) config() string { return fmt.Sprintf(fleetConfig, model, s.limits, s.projects) }

// played is what the projects of a scene have used in its last two minutes.
type played struct {
	mu     sync.Mutex
	used   map[string]int // by project
	failed int            // calls that failed otherwise than by being turned away
	last   error          // why the last of them failed
}

// play lets the crews of a scene call through the gateways of a fleet.
func (s *scene) play(ctx context.Context, f *fleet) (*played, error) {
	ctx, cancel := context.WithTimeout(ctx, sceneMinutes*time.Minute)
	defer cancel()
	p := &played{used: map[string]int{}}
	start, half := time.Now(), sceneMinutes*time.Minute/2
	var done sync.WaitGroup
	for _, c := range s.crews {
		for worker := range c.workers {
			g := f.gateways[0]
			if !c.first {
				g = f.gateways[worker%len(f.gateways)]
			}
			done.Go(func() {
				sleep(ctx, c.from)
				for ctx.Err() == nil {
					switch err := c.call(ctx, f, g, worker); {
					case ctx.Err() != nil:
					case err == nil:
						if time.Since(start)-c.answer >= half {
							p.count(c.project, max(c.amount, 1))
						}
					case c.retry > 0:
						sleep(ctx, c.retry)
					default:
						p.fail(err)
						sleep(ctx, time.Second)
					}
				}
			})
		}
	}
	done.Wait()
	if p.failed >= mostFailed {
		return nil, fmt.Errorf("%s: %d calls have failed; the last: %w", s.name, p.failed, p.last)
	}
	return p, nil
}

// call makes a call of a worker of the crew.
func (c *crew) call(ctx context.Context, f *fleet, g *gateway, worker int) error {
	fields, mock, user := "", fmt.Sprintf("output=%d delay=%s", max(c.tokens, 1), c.answer), ""
	if c.asks > 0 {
		fields = fmt.Sprintf(`"max_tokens": %d, `, c.asks)
	}
	if c.stream { // one piece a second
		fields += `"stream": true, `
		mock = fmt.Sprintf("output=%d delay=1s", int(c.answer.Seconds()))
	}
	if c.users > 0 {
		user = fmt.Sprintf("u%d", worker%c.users)
	}
	return f.post(ctx, g, fields, map[string]string{"X-Project-ID": c.project, "X-User-ID": user, "X-Mock": mock})
}

func (p *played) count(project string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used[project] += n
}

func (p *played) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed++
	p.last = err
}

// showScenes plays the scenes whose names match a pattern, all at once, and prints the table. It returns the exit status.
func showScenes(ctx context.Context, pattern string, markdown bool, stdout, stderr io.Writer) int {
	run, err := regexp.Compile(pattern)
	if err != nil {
		fmt.Fprintf(stderr, "fair: -run: %v\n", err)
		return 2
	}
	chosen := slices.DeleteFunc(scenes(), func(s scene) bool { return !run.MatchString(s.name) })
	got, err := playScenes(ctx, chosen)
	if err != nil {
		fmt.Fprintf(stderr, "fair: %v\n", err)
		return 1
	}
	t := table{title: "two gateways on one Redis", about: []string{fmt.Sprintf("%d minutes in real time, of which the first two do not count", sceneMinutes)},
		columns: []string{"", "project", "due", "got", "used"}}
	for i, s := range chosen {
		sum := 0
		for _, n := range got[i].used {
			sum += n
		}
		t.rows = append(t.rows, []string{s.name, s.of, fmt.Sprintf("%d%%", s.due), fmt.Sprintf("%.1f%%", 100*float64(got[i].used[s.of])/float64(max(sum, 1))),
			fmt.Sprintf("%.1f%%", 100*float64(sum)/float64(s.minute*sceneMinutes/2))})
	}
	t.print(stdout, markdown)
	return 0
}

// playScenes plays scenes, each on two gateways of its own, all at once.
func playScenes(ctx context.Context, list []scene) ([]*played, error) {
	dir, err := os.MkdirTemp("", "fair")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	program, err := buildGateway(ctx, dir)
	if err != nil {
		return nil, err
	}
	got, errs := make([]*played, len(list)), make([]error, len(list))
	var done sync.WaitGroup
	for i, s := range list {
		f, err := newFleet(ctx, program, s.config(), 0, 2)
		if err != nil {
			return nil, err
		}
		defer f.close()
		done.Go(func() { got[i], errs[i] = s.play(ctx, f) })
	}
	done.Wait()
	return got, errors.Join(errs...)
}
