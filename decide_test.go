package ratelimit

import (
	"testing"
)

func TestDecisionCodes(t *testing.T) {
	for got, want := range map[DecisionCode]string{
		DecisionAllowed: "ok", DecisionUnknownModel: "unknown_model", DecisionUnlimited: "unlimited", DecisionInvalidTokens: "invalid_tokens",
		DecisionRPDLimit: "rpd_exceeded", DecisionRPMLimit: "rpm_exceeded", DecisionTPMLimit: "tpm_exceeded",
	} {
		if string(got) != want {
			t.Errorf("the code %q; want %q", got, want)
		}
	}
}
