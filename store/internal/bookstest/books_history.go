package bookstest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/internal/books"
)

// bookHistories compares books with a model of them: a list of entries and the times at which they
// were booked.
func bookHistories(t *testing.T, newBooks Open) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newClock()
		open := newBooks(t, c.now, 1000)
		s := open()
		var m bookModel
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			switch rapid.IntRange(0, 9).Draw(rt, "step") {
			case 0:
				c.add(time.Duration(rapid.Int64Range(0, int64(60*time.Hour)).Draw(rt, "time")))
			case 1:
				s = open()
			case 2:
				r := books.Retention{
					Hours: time.Duration(rapid.IntRange(0, 72).Draw(rt, "hours")) * time.Hour,
					Days:  time.Duration(rapid.IntRange(72, 300).Draw(rt, "days")) * time.Hour,
				}
				if err := s.TrimBooks(t.Context(), r); err != nil {
					rt.Fatal(err)
				}
				m.trim(c.now(), r)
			case 3, 4:
				m.compare(rt, t, s, drawQuery(rt, c.now()))
			default:
				e := drawEntry(rt)
				if err := s.SettleBooked(t.Context(), takeOne(t, s), []int64{rapid.Int64Range(0, 2).Draw(rt, "actual")}, &e); err != nil {
					rt.Fatal(err)
				}
				m = append(m, books.Line{At: c.now() / 1e9, Entry: e})
			}
		}
		m.compare(rt, t, s, books.Query{By: []books.Dimension{books.ByProject, books.ByModel, books.ByKey, books.ByHour}})
	})
}

func drawEntry(rt *rapid.T) (e books.Entry) {
	e.Project = rapid.SampledFrom([]string{"acme", "acme/a", "acme/a/x", "acme/b", "acmeb", "other/a"}).Draw(rt, "project")
	e.Model = rapid.SampledFrom([]string{"m1", "m2"}).Draw(rt, "model")
	e.Owner.Key = rapid.SampledFrom([]string{"", "k"}).Draw(rt, "key")
	for u := range e.Amounts {
		e.Amounts[u] = rapid.Int64Range(0, 1<<40).Draw(rt, "amount")
	}
	return e
}

func drawQuery(rt *rapid.T, now int64) (q books.Query) {
	q.Project = rapid.SampledFrom([]string{"", "acme", "acme/a", "acme/a/x", "none"}).Draw(rt, "of")
	q.Key = rapid.SampledFrom([]string{"", "k", "none"}).Draw(rt, "key of")
	for _, d := range rapid.Permutation(books.Dimensions).Draw(rt, "by") {
		if rapid.Bool().Draw(rt, "grouped") && !(d == books.ByDay && slices.Contains(q.By, books.ByHour)) && !(d == books.ByHour && slices.Contains(q.By, books.ByDay)) {
			q.By = append(q.By, d)
		}
	}
	if slices.Contains(q.By, books.ByProject) {
		q.Depth = rapid.IntRange(0, 3).Draw(rt, "depth")
	}
	if rapid.Bool().Draw(rt, "since") {
		q.Since = now/1e9 - rapid.Int64Range(0, 100*books.Hour).Draw(rt, "ago")
	}
	if rapid.Bool().Draw(rt, "until") {
		q.Until = max(q.Since, now/1e9-100*books.Hour) + rapid.Int64Range(1, 100*books.Hour).Draw(rt, "later")
	}
	return q
}

// bookModel is all entries. At is the second of the entry, or the beginning of its day if Day is set.
type bookModel []books.Line

func (m *bookModel) trim(now int64, r books.Retention) {
	begin := func(ago time.Duration) int64 { // of the day that was so long ago
		return time.Unix(0, now).Add(-ago).UTC().Truncate(24 * time.Hour).Unix()
	}
	*m = slices.DeleteFunc(*m, func(l books.Line) bool { return l.At < begin(r.Days) })
	for i := range *m {
		if l := &(*m)[i]; l.At < begin(r.Hours) {
			l.At, l.Day = time.Unix(l.At, 0).UTC().Truncate(24*time.Hour).Unix(), true
		}
	}
}

// compare fails unless a store says of a query what the model says.
func (m bookModel) compare(rt *rapid.T, t *testing.T, s Store, q books.Query) {
	got, err := s.ReadBooks(t.Context(), q)
	if err != nil {
		rt.Fatal(err)
	}
	var total books.Amounts
	rows := map[string]books.Amounts{}
	for _, l := range m {
		began := time.Unix(l.At, 0).UTC().Truncate(time.Hour)
		since := time.Unix(q.Since, 0).UTC().Truncate(time.Hour)
		if began.Before(since) || q.Until != 0 && began.Unix() >= q.Until || q.Project != "" && !strings.HasPrefix(l.Project+"/", q.Project+"/") || q.Key != "" && q.Key != l.Key {
			continue
		}
		var name []string
		for _, d := range q.By {
			levels := strings.Split(l.Project, "/")
			name = append(name, map[books.Dimension]string{
				books.ByProject: strings.Join(levels[:min(len(levels), cmp.Or(q.Depth, len(levels)))], "/"),
				books.ByModel:   l.Model,
				books.ByKey:     l.Key,
				books.ByHour:    fmt.Sprint(began.Unix()),
				books.ByDay:     fmt.Sprint(began.Truncate(24 * time.Hour).Unix()),
			}[d])
		}
		row := rows[strings.Join(name, " ")]
		for u, n := range l.Amounts {
			row[u] += n
			total[u] += n
		}
		rows[strings.Join(name, " ")] = row
	}
	if got.Total != total || len(got.Rows) != len(rows) {
		rt.Fatalf("%+v: %v in %d rows; want %v in %d", q, got.Total, len(got.Rows), total, len(rows))
	}
	for _, row := range got.Rows {
		var name []string
		for _, d := range q.By {
			name = append(name, map[books.Dimension]string{
				books.ByProject: row.Project, books.ByModel: row.Model, books.ByKey: row.Owner.Key,
				books.ByHour: fmt.Sprint(row.At), books.ByDay: fmt.Sprint(row.At),
			}[d])
		}
		if want := rows[strings.Join(name, " ")]; row.Amounts != want {
			rt.Fatalf("%+v: %q has %v; want %v", q, name, row.Amounts, want)
		}
	}
}
