package project

import (
	"errors"
	"fmt"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/decision"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/store"
)

// Limit is what a project may use. Zero in any field is unlimited.
type Limit struct {
	RequestsPerMinute int `json:"requests_per_minute,omitempty"`
	RequestsPerHour   int `json:"requests_per_hour,omitempty"`
	RequestsPerDay    int `json:"requests_per_day,omitempty"`

	// Tokens are those of prompt and output together.
	TokensPerMinute int `json:"tokens_per_minute,omitempty"`
	TokensPerHour   int `json:"tokens_per_hour,omitempty"`
	TokensPerDay    int `json:"tokens_per_day,omitempty"`
	TokensPerMonth  int `json:"tokens_per_month,omitempty"` // the project's budget

	// Dollars are what calls cost, by [Call].Dollars; up to 9,007,199. Dollars, without a period,
	// is a total that never comes back.
	DollarsPerHour  price.Amount `json:"dollars_per_hour,omitempty"`
	DollarsPerDay   price.Amount `json:"dollars_per_day,omitempty"`
	DollarsPerWeek  price.Amount `json:"dollars_per_week,omitempty"`
	DollarsPerMonth price.Amount `json:"dollars_per_month,omitempty"`
	Dollars         price.Amount `json:"dollars,omitempty"`

	// What calls use beside tokens, by [Call].Units: images that are generated, seconds of audio that are read, characters
	// that are spoken, searches that the provider makes in the web and in stored files, and pages of documents. A call
	// reserves the most of them that it can use.
	ImagesPerDay          int `json:"images_per_day,omitempty"`
	ImagesPerMonth        int `json:"images_per_month,omitempty"`
	AudioSecondsPerDay    int `json:"audio_seconds_per_day,omitempty"`
	AudioSecondsPerMonth  int `json:"audio_seconds_per_month,omitempty"`
	CharactersPerDay      int `json:"characters_per_day,omitempty"`
	CharactersPerMonth    int `json:"characters_per_month,omitempty"`
	WebSearchesPerDay     int `json:"web_searches_per_day,omitempty"`
	WebSearchesPerMonth   int `json:"web_searches_per_month,omitempty"`
	FileSearchesPerDay    int `json:"file_searches_per_day,omitempty"`
	FileSearchesPerMonth  int `json:"file_searches_per_month,omitempty"`
	PagesPerDay           int `json:"pages_per_day,omitempty"`
	PagesPerMonth         int `json:"pages_per_month,omitempty"`
	VideoSecondsPerDay    int `json:"video_seconds_per_day,omitempty"`
	VideoSecondsPerMonth  int `json:"video_seconds_per_month,omitempty"`
	ContainersPerDay      int `json:"containers_per_day,omitempty"`
	ContainersPerMonth    int `json:"containers_per_month,omitempty"`
	TokenHoursPerDay      int `json:"token_hours_per_day,omitempty"`
	TokenHoursPerMonth    int `json:"token_hours_per_month,omitempty"`
	SearchUnitsPerDay     int `json:"search_units_per_day,omitempty"`
	SearchUnitsPerMonth   int `json:"search_units_per_month,omitempty"`
	TrainedTokensPerDay   int `json:"trained_tokens_per_day,omitempty"`
	TrainedTokensPerMonth int `json:"trained_tokens_per_month,omitempty"`
	ByteDaysPerDay        int `json:"byte_days_per_day,omitempty"`
	ByteDaysPerMonth      int `json:"byte_days_per_month,omitempty"`

	// Resets says when the hours, days, weeks and months of the limit begin. The zero Calendar
	// lets any hour, any 24 hours, any 7 days and any 30 days count.
	Resets limit.Calendar `json:"resets,omitzero"`

	// Reserve says whether calls reserve the most that they can use of the limits above, or what is
	// expected of them. By default, dollars reserve the most, and tokens what is expected.
	Reserve Reserve `json:"reserve,omitempty"`

	// OnOverrun says what becomes of a stream that uses more than it has reserved of those limits above that
	// reserve what is expected. By default, it goes on, and what it uses is a debt.
	OnOverrun OnOverrun `json:"on_overrun,omitempty"`

	// MaxConcurrent is how many calls of the project may be under way at a time:
	// reserved by [Limiter.Take] or [Limiter.Acquire], and neither committed nor
	// cancelled. [Limiter.Spend] reserves nothing, so its calls do not count. A call
	// holds its slot for ten minutes at most; one that may take longer needs
	// [Reservation.Keep]. In a store that several processes use, the slots of one that
	// dies are free 12 seconds later.
	MaxConcurrent int `json:"max_concurrent,omitempty"`

	// MaxTokensInFlight is how many tokens the calls of the project that are under way may have reserved together. Calls
	// hold them as they hold their slots.
	MaxTokensInFlight int `json:"max_tokens_in_flight,omitempty"`

	// Priority, from -1000 to 1000, counts when several projects want a model, or a limit of
	// the project that they are in. Projects of a higher priority have what they want first. Those of a lower one have
	// what is left, and their MinShare; their calls may wait for long, so give them a
	// MaxWait.
	Priority int `json:"priority,omitempty"`

	// Weight decides on the project's share of every quota of a model, in any minute and
	// every day, while projects of the same priority want the model: a project of weight 3
	// has three times the share of one of weight 1, however many calls each makes and
	// whatever their size. What a project does not want is lent to the others. Projects below
	// another share its limits in the same way: those of a minute, an hour and a day. Zero is 1.
	Weight int `json:"weight,omitempty"`

	// MinShare is the part of every quota of a model, and of such limits of each project above it, that the project has
	// at least. It is kept free while the project calls the model: for a period of the quota, a minute or a day, after
	// its last call. All MinShares together may be 100% at most. Zero is none.
	MinShare limit.Percent `json:"min_share,omitempty"`

	// MaxShare is the part of every quota of a model, and of such limits of each project above
	// it, that the project has at most, even if no other wants the rest. Zero is all of it.
	MaxShare limit.Percent `json:"max_share,omitempty"`

	// Dedicated keeps MinShare free at every model, even if the project does not call it.
	Dedicated bool `json:"dedicated,omitempty"`
}

// DefaultLimit is the limit of projects if [New] or [Config] is given none.
var DefaultLimit = &Limit{RequestsPerMinute: 60, RequestsPerHour: 1_000, RequestsPerDay: 10_000}

const (
	maxAmount   = 1 << 53
	maxWeight   = 1 << 20
	maxPriority = 1000
)

// Validate returns what is wrong with the limit and what is allowed, or nil.
func (l Limit) Validate() error {
	if err := check(limitFields, &l, kind.Project); err != nil {
		return err
	}
	if err := l.Reserve.Validate(); err != nil {
		return fmt.Errorf("ratelimit: Reserve: %s", message.Plain(err))
	}
	if err := l.OnOverrun.Validate(); err != nil {
		return fmt.Errorf("ratelimit: OnOverrun: %s", message.Plain(err))
	}
	if err := l.Resets.Validate(); err != nil {
		return fmt.Errorf("ratelimit: Resets: %s", message.Plain(err))
	}
	if l.Priority < -maxPriority || l.Priority > maxPriority {
		return fmt.Errorf("ratelimit: Priority is %d: it must be from %d to %d", l.Priority, -maxPriority, maxPriority)
	}
	if l.Weight < 0 || l.Weight > maxWeight {
		return fmt.Errorf("ratelimit: Weight is %d: it must be from 0, which is 1, to %d", l.Weight, maxWeight)
	}
	return l.validateShares()
}

// validateShares returns what is wrong with the project's shares, or nil.
func (l Limit) validateShares() error {
	switch {
	case l.MinShare.Validate() != nil:
		return fmt.Errorf("ratelimit: MinShare is %v: it must be from 0%% to 100%%", l.MinShare)
	case l.MaxShare.Validate() != nil:
		return fmt.Errorf("ratelimit: MaxShare is %v: it must be from 0%%, which is all, to 100%%", l.MaxShare)
	case l.MaxShare > 0 && l.MinShare > l.MaxShare:
		return fmt.Errorf("ratelimit: MinShare is %v: it must not be more than the MaxShare of %v", l.MinShare, l.MaxShare)
	case l.Dedicated && l.MinShare == 0:
		return errors.New("ratelimit: Dedicated is set: it needs a MinShare, which it keeps free")
	}
	return nil
}

// limitFields finds the limits in a Limit.
var limitFields = kind.NewFields[Limit](kind.Project)

// check returns what is wrong with one of the numbers that an owner's limits are set to, or nil.
func check[T any](fields *kind.Fields[T], limits *T, owner kind.Owner) error {
	for _, k := range kind.Of(owner) {
		n := fields.Get(limits, k)
		switch {
		case n >= 0 && n <= maxAmount:
		case k.Unit().IsMoney():
			return fmt.Errorf("ratelimit: %s is %v: it must be from $0, which is unlimited, to %v", fields.Name(k), price.Amount(n), price.Amount(maxAmount))
		default:
			return fmt.Errorf("ratelimit: %s is %d: it must be from 0, which is unlimited, to %d", fields.Name(k), n, int64(maxAmount))
		}
	}
	return nil
}

// limitOf has what limits n in each window of a calendar.
var limitOf = [...]func(c limit.Calendar, n int64) limit.Limit{
	kind.Minute: perMinute,
	kind.Hour:   limit.Calendar.PerHour,
	kind.Day:    limit.Calendar.PerDay,
	kind.Week:   limit.Calendar.PerWeek,
	kind.Month:  limit.Calendar.PerMonth,
	kind.Total:  total,

	kind.AtATime: func(_ limit.Calendar, n int64) limit.Limit { return engine.AtATime(n) },
}

func perMinute(_ limit.Calendar, n int64) limit.Limit {
	return limit.PerMinute(n).Using(limit.SlidingLog)
}

func total(_ limit.Calendar, n int64) limit.Limit { return limit.Total(n) }

// plan is a limit made ready. Plans are replaced, never changed.
type plan struct {
	limit    Limit
	windows  []Window       // of requests, then of tokens and of dollars
	requests store.Charge   // requests alone, prepared for any project
	limits   []engine.Limit // of the windows, by their places there, and then the one on calls at a time
	waiting  int            // how many calls may wait for one model
	caps     amounts        // the smallest of the limits
	divided  amounts        // the smallest of those that projects inside share

	mostTokens, mostDollars bool // whether the limits reserve the most of a call
	cut                     bool // whether the limits that do not cut streams
}

// amounts are limits on tokens and on dollars; 0 is no limit.
type amounts struct{ tokens, dollars int64 }

// lower lowers the limit on what a window counts to that of the window, if it is higher.
func (a *amounts) lower(w *Window) {
	switch w.Unit {
	case Tokens:
		lower(&a.tokens, w.Count)
	case Dollars:
		lower(&a.dollars, w.Count)
	}
}

// lower lowers a limit to n, if it is higher; 0 is no limit.
func lower(limit *int64, n int64) {
	if n > 0 && (*limit == 0 || n < *limit) {
		*limit = n
	}
}

func newPlan(l Limit, maxWaiting int) (*plan, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	p := &plan{limit: l, waiting: maxWaiting, mostTokens: l.Reserve == ReserveMost, mostDollars: l.Reserve != ReserveExpected, cut: l.OnOverrun == OverrunCut}
	for _, k := range kind.Of(kind.Project) {
		if n := limitFields.Get(&l, k); n > 0 && k != kind.ProjectConcurrent {
			p.add(k, limitOf[k.Window()](l.Resets, n), l.Resets != limit.Calendar{})
		}
	}
	p.nameMonths()
	if l.MaxConcurrent > 0 {
		p.limits = append(p.limits, engine.Limit{
			Name: Concurrent, ID: len(p.windows), Unit: engine.Slots, Limit: engine.AtATime(int64(l.MaxConcurrent)),
		})
	}
	return p, p.prepare()
}

// most reports whether the limits on a unit reserve the most of a call.
func (p *plan) most(unit engine.Unit) bool {
	return unit == engine.AllTokens && p.mostTokens || unit == engine.TokensInFlight && (p.mostTokens || p.cut) || unit == engine.Dollars && p.mostDollars
}

// add adds a window.
func (p *plan) add(k kind.Kind, of limit.Limit, calendar bool) {
	unit := k.Unit()
	w := decision.NewWindow(k, of, calendar)
	w.Most = p.most(unit)
	w.Cut = p.cut && !w.Most && (unit == engine.AllTokens || unit == engine.Dollars)
	p.limits = append(p.limits, engine.Limit{Name: k.Name(), ID: len(p.windows), Unit: unit, Limit: of, Budget: of.Period() >= time.Hour})
	p.windows = append(p.windows, w)
	p.caps.lower(&w)
	if w.Period <= engine.LongestDivided && !unit.InFlight() {
		p.divided.lower(&w)
	}
}

// nameMonths marks the windows that are months of the calendar, so that they are called by their
// names.
func (p *plan) nameMonths() {
	r := p.limit.Resets
	if r == (limit.Calendar{}) || r.Month > 1 || r.At != "" && r.At != "00:00" {
		return
	}
	zone, err := time.LoadLocation(r.Zone)
	if err != nil {
		return
	}
	for i := range p.windows {
		decision.NameMonths(&p.windows[i], zone)
	}
}

// prepare has the limits refer to their windows, and makes those on requests ready for Spend.
func (p *plan) prepare() (err error) {
	for i := range p.windows {
		p.limits[i].Window = &p.windows[i]
	}
	var requests []limit.Limit
	for i := range p.limits {
		if p.limits[i].Unit == engine.Requests {
			requests = append(requests, p.limits[i].Limit)
		}
	}
	p.requests, err = store.Prepare("", requests)
	return err
}

// rules returns the plan as the rules of a scope.
func (p *plan) rules() *engine.Rules {
	r := &engine.Rules{
		Limits: p.limits, Setup: p, LeastTokens: 1, Rank: p.limit.Priority, Weight: p.limit.Weight, MaxWaiting: p.waiting,
		MinShare: p.limit.MinShare.Part(), MaxShare: p.limit.MaxShare.Part(),
	}
	r.Most[engine.AllTokens], r.Most[engine.Dollars] = p.mostTokens || p.cut, p.mostDollars || p.cut
	r.Most[engine.TokensInFlight] = p.mostTokens || p.cut // no extension takes more of them
	r.Cut[engine.AllTokens], r.Cut[engine.Dollars] = p.cut && !p.mostTokens, p.cut && !p.mostDollars
	return r
}

// planIn returns the plan that rules were made from, or nil if they are no rules of a plan.
func planIn(r *engine.Rules) *plan {
	if r == nil {
		return nil
	}
	p, _ := r.Setup.(*plan)
	return p
}

// nearest returns the limit as a default limit, with numbers that are out of range replaced by
// the nearest ones that limit.
func (l Limit) nearest() Limit {
	for _, k := range kind.Of(kind.Project) {
		if n := limitFields.Get(&l, k); n != 0 {
			limitFields.Set(&l, k, min(max(n, 1), maxAmount))
		}
	}
	if l.Resets.Validate() != nil {
		l.Resets = limit.Calendar{}
	}
	if l.Reserve.Validate() != nil {
		l.Reserve = ReserveMost
	}
	if l.OnOverrun.Validate() != nil {
		l.OnOverrun = OverrunCut
	}
	l.Priority = min(max(l.Priority, -maxPriority), maxPriority)
	l.Weight = min(max(l.Weight, 0), maxWeight)
	if l.MaxShare < 0 {
		l.MaxShare = 1
	} else if l.MaxShare.Validate() != nil {
		l.MaxShare = 100
	}
	l.MinShare, l.Dedicated = 0, false // it is a default limit
	return l
}
