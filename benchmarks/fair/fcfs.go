package main

// fcfs is first come, first served: the call that has waited longest passes, or none.
type fcfs struct{ waiting []*call }

func newFCFS(*load) rule { return &fcfs{} }

func (f *fcfs) join(c *call) { f.waiting = append(f.waiting, c) }

func (f *fcfs) next(u *usage) *call {
	if len(f.waiting) == 0 || !u.fits(f.waiting[0]) {
		return nil
	}
	c := f.waiting[0]
	f.waiting = f.waiting[1:]
	return c
}
