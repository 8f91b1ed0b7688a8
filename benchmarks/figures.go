package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// figure is one SVG file: a panel for each of its reports, side by side on one scale.
type figure struct {
	file   string
	unit   string
	mark   float64 // a line at this value; 0: none
	cut    float64 // bars end here, whatever their value; 0: nowhere
	panels []panel
}

// panel names a report and what stands above its bars.
type panel struct {
	report, title string
}

func figures() []figure {
	return []figure{
		{"hot.svg", "ns a decision, one goroutine", 0, 0, []panel{
			{"hot/admitted", "One limiter, admitted"},
			{"hot/denied", "One limiter, denied"},
		}},
		{"hot-parallel.svg", "ns a decision, 2 goroutines on 2 cores", 0, 0, []panel{
			{"hot/admitted/parallel", "One limiter, admitted, in parallel"},
			{"hot/denied/parallel", "One limiter, denied, in parallel"},
		}},
		{"keyed.svg", "ns a decision, 2 goroutines on 2 cores", 0, 0, []panel{
			{"keyed/1M/uniform", "1M string keys, uniform"},
			{"keyed/1M/zipf", "1M string keys, zipf"},
		}},
		{"memory.svg", "bytes of heap a key, without the key itself", 0, 0, []panel{
			{"memory", "1M string keys of 16 bytes"},
		}},
		{"growth-projects.svg", "bytes of heap a project, without its name", 0, 0, []panel{
			{"heap/projects", "So many projects with three windows"},
		}},
		{"growth-requests.svg", "bytes of heap", 0, 0, []panel{
			{"heap/requests", "A project with so many requests in its windows"},
		}},
		{"wait.svg", "% of the limit", 100, 150, []panel{
			{"wait/1k", "Wait, 1,000 a second"},
			{"wait/10k", "10,000 a second"},
			{"wait/100k", "100,000 a second"},
			{"wait/1M", "1,000,000 a second"},
		}},
	}
}

// writePlots draws the figures whose reports are all there, and says which.
func writePlots(dir string, all []report, w io.Writer) error {
	fmt.Fprintln(w)
	for _, f := range figures() {
		reports := f.reports(all)
		if len(reports) < len(f.panels) {
			continue
		}
		path := filepath.Join(dir, f.file)
		if err := os.WriteFile(path, f.svg(reports), 0o644); err != nil {
			return fmt.Errorf("plot: %w", err)
		}
		fmt.Fprintf(w, "wrote %s\n", path)
	}
	if svg := growthSVG(all); svg != nil {
		path := filepath.Join(dir, "growth.svg")
		fmt.Fprintf(w, "wrote %s\n", path)
		return os.WriteFile(path, svg, 0o644)
	}
	return nil
}

func (f figure) reports(all []report) []report {
	var found []report
	for _, p := range f.panels {
		for _, r := range all {
			if r.name == p.report {
				found = append(found, r)
			}
		}
	}
	return found
}
