package project_test

import (
	"sync"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/project"
)

// Ids with a slash are as apart as any others, by every door, on every store, as long as no
// project above them has a limit of its own.
func TestPathsAreApart(t *testing.T) {
	for name, shared := range stores {
		t.Run(name, func(t *testing.T) {
			l := newLimiter(t, project.Config{Default: &project.Limit{RequestsPerHour: 2}, Store: shared(t)()})
			for _, id := range []string{"owner/repo1", "owner/repo2", "owner", "owner/repo1/branch"} {
				use(t, l, id, 2)
				if d := spend(t, l, project.Call{Project: id}); d.Allowed {
					t.Errorf("Spend admits a third request of %s, of 2 an hour", id)
				}
				if _, d, err := l.Take(t.Context(), project.Call{Project: id}); err != nil || d.Allowed {
					t.Errorf("Take admits a third request of %s, of 2 an hour: %v", id, err)
				}
			}
			setLimit(t, l, "owner", project.Limit{RequestsPerHour: 5}) // now it counts what is used below it
			use(t, l, "owner/repo1", 1)
			use(t, l, "owner/repo2/branch", 1)
			use(t, l, "owner", 1)
			if d := spend(t, l, project.Call{Project: "owner/repo1"}); d.Allowed || d.Owner != "owner" {
				t.Errorf("2 requests of owner and 3 of those inside since are 5 an hour, and a sixth: %t by %q", d.Allowed, d.Owner)
			}
			if err := l.UnsetLimit("owner"); err != nil {
				t.Fatal(err)
			}
			use(t, l, "owner/repo3", 2)
			if d := spend(t, l, project.Call{Project: "owner/repo3"}); d.Allowed {
				t.Error("a project that is below none any more does not have the default limit")
			}
		})
	}
}

// A template makes no project of the names before its *: those that have it are apart. It does
// make projects of those, with others below them.
func TestTemplatesOfPaths(t *testing.T) {
	l := newLimiter(t, project.Config{
		Default: &project.Limit{RequestsPerHour: 2}, Limits: map[string]project.Limit{"owner/*": {RequestsPerHour: 3}},
	})
	use(t, l, "owner", 2)
	use(t, l, "owner/a", 3)
	use(t, l, "owner/b/x", 2)
	use(t, l, "owner/b/y", 1)
	for _, id := range []string{"owner/a", "owner/b/x", "owner/b/z", "owner/b"} {
		if d := spend(t, l, project.Call{Project: id}); d.Allowed {
			t.Errorf("%s has more than 3 requests an hour", id)
		}
	}
}

// Users of a project count for it whether or not somebody has configured it, or else a client
// would have the default limit once for each name that it invents.
func TestUsersOfAProject(t *testing.T) {
	for _, base := range []string{"acme", "acme/search"} {
		l := newLimiter(t, project.Config{Default: &project.Limit{RequestsPerHour: 3}})
		user := func(name string) project.Call { return project.Call{Project: base + "/" + name, RunProject: base} }
		allowed := func(c project.Call, want bool) {
			t.Helper()
			if d := spend(t, l, c); d.Allowed != want {
				t.Errorf("a request of %s is admitted: %t", c.Project, d.Allowed)
			}
		}
		allowed(user("alice"), true)
		allowed(user("bob"), true)
		allowed(user("bob/bot"), true)
		allowed(user("carol"), false)
		allowed(project.Call{Project: base}, false)
		setLimit(t, l, base+"/alice", project.Limit{RequestsPerHour: 1})
		setLimit(t, l, base, project.Limit{RequestsPerHour: 10})
		allowed(user("carol"), true)
		allowed(user("alice"), true) // of a limit that counts from now on
		allowed(user("alice"), false)
		if err := l.UnsetLimit(base); err != nil {
			t.Fatal(err)
		}
		allowed(user("dave"), false)
		setLimit(t, l, base+"/alice", project.Limit{})
		allowed(user("alice"), false)
	}
}

// Whoever sets limits while calls are made, in the end every call is charged to the limits that
// there are.
func TestPathsWhileLimitsChange(t *testing.T) {
	for range testkit.Rounds(20, 200) {
		l := newLimiter(t, project.Config{Default: &project.Limit{RequestsPerHour: 1000}})
		var all sync.WaitGroup
		for _, id := range []string{"a/b/c", "a/b/d", "a/b"} {
			all.Go(func() {
				for range 20 {
					spend(t, l, project.Call{Project: id})
				}
			})
		}
		all.Go(func() { setLimit(t, l, "a", project.Limit{RequestsPerDay: 1000}) })
		all.Go(func() { setLimit(t, l, "a/b", project.Limit{RequestsPerDay: 1000}) })
		all.Wait()
		before := left(t, l, "a")["requests_per_day"]
		for _, id := range []string{"a/b/c", "a/b/d", "a/b"} {
			use(t, l, id, 1)
		}
		if after := left(t, l, "a")["requests_per_day"]; after != before-3 {
			t.Fatalf("of 3 requests below it, a has counted %d", before-after)
		}
	}
}

// A user counts for its project by the limits that the project has now, also after a project above both
// had a limit for a while.
func TestUsersFollowTheirProject(t *testing.T) {
	l := newLimiter(t, project.Config{Default: &project.Limit{RequestsPerHour: 100}})
	call := func(user string) bool {
		return spend(t, l, project.Call{Project: "org/acme/" + user, RunProject: "org/acme"}).Allowed
	}
	if !call("ann") || !call("ann/laptop") {
		t.Fatal("denied")
	}
	setLimit(t, l, "org", project.Limit{RequestsPerHour: 1000})
	if err := l.UnsetLimit("org"); err != nil {
		t.Fatal(err)
	}
	if err := l.SetDefault(project.Limit{RequestsPerHour: 2}); err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"ann", "ann/laptop", "bob"} {
		if call(user) {
			t.Errorf("a call of %s passes, although its project may make 2 calls an hour and has made them", user)
		}
	}
}

// A path of many names that a client invents is not compared with templates that have fewer names or more.
func TestInventedPathsAreFoundSoon(t *testing.T) {
	l := newLimiter(t, project.Config{Limits: map[string]project.Limit{"acme/*": {RequestsPerHour: 3}}})
	if n := testing.AllocsPerRun(10, func() { l.Limit("p/b/c/d/e/f/g/h") }); n > 20 {
		t.Errorf("%v allocations; want a few", n)
	}
}
