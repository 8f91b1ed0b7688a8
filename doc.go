// Package ratelimit keeps callers of LLM APIs inside their quotas: requests and
// tokens, a minute and a day, for each model.
//
//	rl, err := ratelimit.NewWithConfig(ratelimit.Config{
//		Quotas: map[string]ratelimit.ModelQuota{"gpt-4o": {MaxRPM: 500, MaxTPM: 30_000}},
//	})
//	…
//	res, err := rl.Acquire(ctx, "gpt-4o", 1200) // waits its turn; fails if it never can
//	if err != nil {
//		return err
//	}
//	defer res.Cancel() // for a call that was never sent; nothing after Commit
//	usage, err := call(…)
//	if err != nil {
//		res.Commit(-1, -1) // it may have been counted: what was reserved stands
//		return err
//	}
//	res.Commit(usage.Prompt, usage.Output)
//
// A call reserves its estimate before it is made, in one step over all limits of the
// model's quota. Commit corrects the reservation afterwards, in the windows that it was
// taken from. So however many calls are in flight, no minute and no day ever holds more
// than its quota. The one exception is a call that costs more than its estimate: the
// excess is a debt, which delays the calls after it. If a caller dies, its estimate
// stays charged until the window has passed.
//
// A minute is any 60 seconds. [ModelQuota.Margin] makes it longer, so that the quota
// also holds as the provider counts, which does so when calls arrive. A day is the 24
// hours from its first request on, or a calendar day (see [ModelQuota.DayResetsAt]).
// In memory, the limiter reads the wall clock once, when it is made, and the monotonic
// clock after that: setting the wall clock later changes nothing, and neither does a
// machine that sleeps.
//
// # Quotas
//
// [Config] has the quotas of models. The zero Config has Gemini's; one that says
// NoDefaults has none. A model without a quota is counted, and never denied.
//
// # Reserving, waiting and looking
//
// [RateLimiter.TryAcquire] answers at once; [RateLimiter.Acquire] waits, first
// come, first served. [RateLimiter.Decide] and [RateLimiter.CanSend] only look,
// [RateLimiter.RecordUsage] only charges: between the two, other calls may take
// what was left, so parallel calls overshoot. They are for callers who make one call
// at a time, or who only want to know.
//
// [RateLimiter.TryAcquireCall] and [RateLimiter.AcquireCall] take a [Call], which can
// also name a project. [RateLimiter.NewProjects] gives projects limits of their own.
//
// # Where it counts
//
// What was used is kept in memory, and in a YAML file when [RateLimiter.Persist]
// is called; or in a SQLite file, which any number of processes share exactly
// (see [NewWithSQLite]). Calls on such a file wait for up to five seconds where
// others keep it locked.
//
// With [BackendRedis] it is kept in Redis, which any number of machines share
// exactly:
//
//	rl, err := ratelimit.NewWithConfig(ratelimit.Config{
//		Backend:  ratelimit.BackendRedis,
//		FilePath: "redis://redis.example.com:6379/0",
//		Quotas:   …,
//	})
//	…
//	defer rl.Close()
//
// A call asks Redis once when it is reserved, and once when it is committed or
// cancelled. Time is the server's. A quota that is set at one machine holds for all at
// once. While Redis does not
// answer, calls get [DecisionStoreLost], unless [Config.OnStoreLoss] says
// otherwise. [NewWithStore] takes any other store, or one that is set up in
// another way. Waiting calls are served in order on each machine; between machines
// there is no order.
package ratelimit
