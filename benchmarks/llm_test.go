package main

import "testing"

func TestCallsAreCharged(t *testing.T) {
	const made = 3
	for _, test := range []struct {
		transport transport
		requests  int  // that the limiter knows of
		allOfIt   bool // nobody else uses the quota
	}{
		{transports()[0], 0, true},
		{transports()[1], made, true},
		{transports()[2], made, false},
	} {
		t.Run(test.transport.name, func(t *testing.T) {
			c := test.transport.dial()
			defer c.close()
			for range made {
				if !c.call() {
					t.Fatal("a call was not answered")
				}
			}
			got := c.limiter.Stats(bodyModel)
			if used := test.requests * (callInput + callOutput); got.RPM != test.requests || got.TPM != used {
				t.Errorf("%d requests and %d tokens, want %d and %d", got.RPM, got.TPM, test.requests, used)
			}
			if d := c.limiter.Decide(bodyModel, granted.MaxTPM*9/10); d.Allowed != test.allOfIt {
				t.Errorf("nine tenths of the quota: %v, want %v", d.Allowed, test.allOfIt)
			}
		})
	}
}

func TestAddsAtMost(t *testing.T) {
	for _, test := range []struct {
		a, b     float64
		pass     bool
		measured string
	}{
		{115, 100, true, "+15.0%"},
		{116, 100, false, "+16.0%"},
		{90, 100, true, "-10.0%"},
		{1200, 100, false, "12x"},
	} {
		if c := addsAtMost("here", row{value: test.a}, row{value: test.b}, 15); c.pass != test.pass || c.measured != test.measured {
			t.Errorf("%v against %v: %s, pass %v, want %s, %v", test.a, test.b, c.measured, c.pass, test.measured, test.pass)
		}
	}
}
