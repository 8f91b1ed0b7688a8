package config_test

import (
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
)

// A provider of kind bedrock gets its address and its signer from a region, an address, or the
// environment.
func TestBedrock(t *testing.T) {
	const inEnvironment = "eu-west-1"
	t.Setenv("AWS_DEFAULT_REGION", "")
	t.Setenv("BEDROCK_KEY", "a key of Bedrock")
	for _, c := range []struct {
		fields  string
		base    string
		region  string // empty: calls are not signed
		wrong   string // the text of the fault
		without bool   // the environment names no region
	}{
		{"region: us-east-1", "https://bedrock-runtime.us-east-1.amazonaws.com", "us-east-1", "", false},
		{"region: cn-north-1", "https://bedrock-runtime.cn-north-1.amazonaws.com.cn", "cn-north-1", "", false},
		{"region: us-gov-west-1, base_url: https://vpce.example.com", "https://vpce.example.com", "us-gov-west-1", "", false},
		{"timeout: 1m", "https://bedrock-runtime.eu-west-1.amazonaws.com", inEnvironment, "", false},
		{"aws: {profile: a}, base_url: https://bedrock-runtime-fips.us-east-1.amazonaws.com", "https://bedrock-runtime-fips.us-east-1.amazonaws.com", "us-east-1", "", false},
		{"aws: {role_arn: arn:aws:iam::123456789012:role/a/b}, base_url: https://vpce.example.com", "https://vpce.example.com", inEnvironment, "", false},
		{"base_url: https://bedrock-runtime.us-east-1.amazonaws.com", "https://bedrock-runtime.us-east-1.amazonaws.com", "", "", false},
		{"region: us-east-1, key: {env: BEDROCK_KEY}", "https://bedrock-runtime.us-east-1.amazonaws.com", "", "", false},

		{"timeout: 1m", "", "", "it has no region", true},
		{"aws: {}, base_url: https://vpce.example.com", "", "", "it has no region", true},
		{"region: evil.example.com/", "", "", "it must be the name of a region", false},
		{"region: us-east-1, aws: {role_arn: admin}", "", "", "it must be the ARN of a role", false},
		{"region: us-east-1, aws: {secret: x}", "", "", "it must be one of profile, role_arn", false},
		{"aws: {}, key: {env: BEDROCK_KEY}, region: us-east-1", "", "", "both key and aws", false},
		{"kind: openai, base_url: https://a.example.com, region: us-east-1", "", "", "are only for kind bedrock", false},
	} {
		t.Setenv("AWS_REGION", inEnvironment)
		if c.without {
			t.Setenv("AWS_REGION", "")
		}
		fields := c.fields
		if !strings.HasPrefix(fields, "kind:") {
			fields = "kind: bedrock, " + fields
		}
		cfg, err := config.Parse("test.yaml", []byte("providers:\n  amazon: {"+fields+"}\n"))
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %v; want %q", c.fields, err, c.wrong)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.fields, err)
			continue
		}
		d := cfg.Providers["amazon"].Deployments[""]
		if d.BaseURL != c.base || d.Signed() != (c.region != "") || d.Signed() && d.Region != c.region {
			t.Errorf("%s: %+v, signed %v", c.fields, d, d.Signed())
		}
	}
}

// With keys required, a provider whose calls the gateway signs needs no key.
func TestSigningIsAKey(t *testing.T) {
	for fields, fine := range map[string]bool{
		"region: us-east-1": true,
		"base_url: https://bedrock-runtime.us-east-1.amazonaws.com":                        false,
		"deployments: {a: {region: us-east-1}, b: {region: us-west-2, aws: {profile: b}}}": true,
	} {
		cfg, err := config.Parse("test.yaml", []byte("keys: required\nproviders:\n  bedrock: {kind: bedrock, "+fields+"}\n"))
		if (err == nil) != fine {
			t.Errorf("%s: %v", fields, err)
		}
		if fine && cfg.Providers["bedrock"] == nil {
			t.Errorf("%s: it is not served", fields)
		}
	}
}
