package project_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
)

// A call that is not valid gets an error that says what is wrong and what is allowed, by every
// method, and nothing is charged.
func TestBadCalls(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			each := project.Limit{RequestsPerMinute: 9, TokensPerMinute: 9}
			l := newLimiter(t, kind(t, project.Config{Default: &each}))
			for says, c := range map[string]project.Call{
				"the project id is empty":                                                         {},
				"the project id has 129 bytes: it may have 128":                                   {Project: strings.Repeat("p", 129)},
				"only visible ASCII":                                                              {Project: "p\n"},
				"-1 requests: it must be from 0, which is one, to 9007199254740992":               {Project: "p", Requests: -1},
				"-9223372036854775808 requests":                                                   {Project: "p", Requests: math.MinInt},
				"9007199254740993 requests: it must be from 0, which is one, to 9007199254740992": {Project: "p", Requests: 1<<53 + 1},
				"9223372036854775807 requests":                                                    {Project: "p", Requests: math.MaxInt},
				"-1 tokens: it must be from 0 to 9007199254740992":                                {Project: "p", Estimated: -1},
				"-9223372036854775808 tokens":                                                     {Project: "p", Estimated: math.MinInt},
				"9223372036854775807 tokens: it must be from 0 to 9007199254740992":               {Project: "p", Estimated: math.MaxInt},
			} {
				errs := everyDoor(l, c)
				for door, err := range errs {
					if !errors.Is(err, project.ErrInvalid) || !strings.HasPrefix(err.Error(), "ratelimit: invalid call: ") || !strings.Contains(err.Error(), says) {
						t.Errorf("%s: %v; want %s", door, err, says)
					}
				}
				if len(errs) != 3 {
					t.Errorf("%s: of three doors %d have refused", says, len(errs))
				}
			}
			if left := left(t, l, "p"); left["requests_per_minute"] != 9 || left["tokens_per_minute"] != 9 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func TestTokensApartAndTogether(t *testing.T) {
	l := newLimiter(t, project.Config{})
	for _, c := range []project.Call{
		{Project: "p", Estimated: 1, Tokens: llm.Tokens{Input: 1}},
		{Project: "p", Tokens: llm.Tokens{Input: -1}},
		{Project: "p", Tokens: llm.Tokens{Output: 1 << 60}},
	} {
		if d, err := l.Spend(t.Context(), c); d.Allowed || !errors.Is(err, project.ErrInvalid) {
			t.Errorf("%+v: %+v, %v", c, d, err)
		}
	}
}

// The methods that take an id say what is wrong with it.
func TestBadIDs(t *testing.T) {
	l := limited(t, project.Limit{RequestsPerMinute: 9})
	for _, id := range []string{"", "a b", "caf\u00e9", "a\n", strings.Repeat("a", 1<<20)} {
		_, allow := l.Allow(t.Context(), id)
		_, peek := l.Peek(t.Context(), id)
		for _, err := range []error{allow, peek, l.Reset(t.Context(), id), l.SetLimit(id, project.Limit{}), project.CheckID(id)} {
			if !errors.Is(err, project.ErrInvalid) || len(err.Error()) > 300 {
				t.Errorf("%.20q: %.400v", id, err)
			}
		}
		if _, err := project.NewWithConfig(project.Config{Limits: map[string]project.Limit{id: {}}}); !errors.Is(err, project.ErrInvalid) {
			t.Errorf("%.20q in Config: %v", id, err)
		}
		if l.Limit(id) != (project.Limit{RequestsPerMinute: 9}) {
			t.Errorf("%.20q has the limit %+v", id, l.Limit(id))
		}
	}
	if len(l.Limits()) != 0 {
		t.Errorf("%v", l.Limits())
	}
}

var badLimits = map[string]project.Limit{
	"RequestsPerMinute is -1: it must be from 0, which is unlimited, to 9007199254740992": {RequestsPerMinute: -1},
	"RequestsPerHour is -9223372036854775808":                                             {RequestsPerHour: math.MinInt},
	"RequestsPerDay is 9007199254740993":                                                  {RequestsPerDay: 1<<53 + 1},
	"TokensPerMinute is 9223372036854775807":                                              {TokensPerMinute: math.MaxInt},
	"TokensPerHour is -5":                                                                 {RequestsPerMinute: 1, TokensPerHour: -5},
	"TokensPerMonth is -1":                                                                {TokensPerMonth: -1},
	"MaxConcurrent is -1: it must be from 0, which is unlimited, to 9007199254740992":     {MaxConcurrent: -1},
	"Priority is -1001: it must be from -1000 to 1000":                                    {Priority: -1001},
	"Priority is 1001":                                                                    {Priority: 1001},
	"TokensPerDay is -1":                                                                  {TokensPerDay: -1},
	"Weight is -1: it must be from 0, which is 1, to 1048576":                             {Weight: -1},
	"MinShare is -1%: it must be from 0% to 100%":                                         {MinShare: -1},
	"MinShare is 100.5%":                                                                  {MinShare: 100.5},
	"MinShare is NaN%":                                                                    {MinShare: limit.Percent(math.NaN())},
	"MaxShare is 101%: it must be from 0%, which is all, to 100%":                         {MaxShare: 101},
	"MinShare is 30%: it must not be more than the MaxShare of 20%":                       {MinShare: 30, MaxShare: 20},
	"Dedicated is set: it needs a MinShare":                                               {Dedicated: true},
	`Reserve: "all": it must be most or expected, or empty for the default`:               {Reserve: "all"},
	`OnOverrun: "end": it must be debt or cut, or empty for the default`:                  {OnOverrun: "end"},
	"Weight is 1048577":                                                                   {RequestsPerMinute: 1, Weight: 1<<20 + 1},
}

// A limit that is not valid is refused wherever it is given, and nothing changes.
func TestBadLimits(t *testing.T) {
	l := limited(t, project.Limit{RequestsPerMinute: 9})
	use(t, l, "p", 4)
	for says, bad := range badLimits {
		_, byDefault := project.NewWithConfig(project.Config{Default: &bad})
		_, own := project.NewWithConfig(project.Config{Limits: map[string]project.Limit{"p": bad}})
		several := l.SetLimits(map[string]project.Limit{"a": {RequestsPerMinute: 1}, "p": bad, "z": {RequestsPerMinute: 1}})
		for where, err := range map[string]error{
			"": bad.Validate(), "the default limit: ": byDefault,
			`the limit of project "p": `: errors.Join(own, l.SetLimit("p", bad), several),
		} {
			for line := range strings.Lines(fmt.Sprint(err)) {
				if !strings.HasPrefix(line, "ratelimit: "+where+says) {
					t.Errorf("%q; want %q", line, "ratelimit: "+where+says)
				}
			}
		}
		if len(l.Limits()) != 0 || l.Limit("p") != (project.Limit{RequestsPerMinute: 9}) || left(t, l, "p")["requests_per_minute"] != 5 {
			t.Fatalf("%s: %v, %v, %v", says, l.Limits(), l.Limit("p"), left(t, l, "p"))
		}
	}
}

// New cannot fail: a number that is out of range counts as the nearest that limits.
func TestNewWithABadLimit(t *testing.T) {
	const most = 1 << 53
	for bad, want := range map[project.Limit]project.Limit{
		{RequestsPerMinute: -1}:                              {RequestsPerMinute: 1},
		{RequestsPerHour: math.MinInt, RequestsPerMinute: 7}: {RequestsPerHour: 1, RequestsPerMinute: 7},
		{RequestsPerDay: most + 1}:                           {RequestsPerDay: most},
		{TokensPerMinute: math.MaxInt}:                       {TokensPerMinute: most},
		{TokensPerHour: -5}:                                  {TokensPerHour: 1},
		{TokensPerDay: -1}:                                   {TokensPerDay: 1},
		{TokensPerMonth: math.MaxInt}:                        {TokensPerMonth: most},
		{MaxConcurrent: -1}:                                  {MaxConcurrent: 1},
		{Priority: -1001}:                                    {Priority: -1000},
		{Priority: math.MaxInt}:                              {Priority: 1000},
		{Weight: -1}:                                         {},
		{Weight: 1<<20 + 1}:                                  {Weight: 1 << 20},
		{MinShare: 20, Dedicated: true}:                      {},
		{MaxShare: -1}:                                       {MaxShare: 1},
		{Dollars: 1, Reserve: "all"}:                         {Dollars: 1, Reserve: project.ReserveMost},
		{TokensPerDay: 1, OnOverrun: "end"}:                  {TokensPerDay: 1, OnOverrun: project.OverrunCut},
		{MaxShare: 101}:                                      {MaxShare: 100},
	} {
		before := bad
		l := project.New(&bad)
		if got := l.Limit("p"); got != want || bad != before {
			t.Errorf("%+v counts as %+v, and has become %+v; want %+v", before, got, bad, want)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	l := project.New(&project.Limit{RequestsPerMinute: -1})
	use(t, l, "p", 1)
	if allowed, err := l.Allow(t.Context(), "p"); allowed || !errors.Is(err, project.ErrExceeded) {
		t.Errorf("%t, %v", allowed, err)
	}
}

func TestBadConfigs(t *testing.T) {
	for says, cfg := range map[string]project.Config{
		"MaxWaiting is -1: it must be at least 0, which is 1000": {MaxWaiting: -1},
	} {
		if l, err := project.NewWithConfig(cfg); l != nil || err == nil || !strings.HasPrefix(err.Error(), "ratelimit: "+says) {
			t.Errorf("%v, %v; want %s", l, err, says)
		}
	}
}
