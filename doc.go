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
// A call reserves what it is thought to cost before it is made, in one step over
// all of the model's quotas, and is corrected afterwards in the windows that it
// was taken from. So however many calls are in flight, no minute and no day ever
// holds more than its quota, unless a call costs more than was reserved for it;
// that is a debt, which delays what comes next. A caller that dies leaves its
// estimate charged until the window has passed.
//
// A minute is any 60 seconds: what was used counts for exactly as long, or longer by
// [ModelQuota.Margin], with which the quota holds where calls arrive, too. A day is
// the 24 hours from its first request on, or a calendar day (see
// [ModelQuota.DayResetsAt]). In memory, time is the wall clock's when the limiter
// was made, and what the monotonic clock says has passed since: setting the wall
// clock later changes nothing, and neither does a machine that sleeps.
//
// # Quotas
//
// [Config] has the quotas of models. The zero Config has Gemini's; one that says
// NoDefaults has none. A model without a quota is counted, and never denied.
//
// # Doors
//
// [RateLimiter.TryAcquire] answers at once; [RateLimiter.Acquire] waits, first
// come, first served. [RateLimiter.Decide] and [RateLimiter.CanSend] only look,
// [RateLimiter.RecordUsage] only charges: between the two, others may have taken
// what was there, so with calls in parallel they overshoot. They are for callers
// who make one call at a time, or who only want to know.
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
// A call is one question to Redis, and its end another. Time is the server's. A
// quota that is set at one machine holds for all at once. While Redis does not
// answer, calls get [DecisionStoreLost], unless [Config.OnStoreLoss] says
// otherwise. [NewWithStore] takes any other store, or one that is set up in
// another way. Those who wait are served in order on each machine; between
// machines, whoever asks first when there is room.
package ratelimit
