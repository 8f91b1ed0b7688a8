package config

import (
	"cmp"
	"net/url"
	"os"
	"regexp"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/strictyaml"
	"dappco.re/go/core/go-ratelimit/llm"
)

// AWS says whose credentials sign calls of Bedrock: those of a profile, or of the default chain
// of AWS's SDK, and of the role that the gateway assumes with them, if there is one.
type AWS struct {
	Profile string `json:"profile,omitempty"`
	RoleARN string `json:"role_arn,omitempty"`
}

// Signed reports whether the gateway signs calls with its own credentials of AWS.
func (d *Deployment) Signed() bool { return d.Region != "" && d.Key == (Secret{}) }

var (
	regionName = regexp.MustCompile(`^[a-z]{2,8}(-[a-z0-9]{1,16}){1,4}$`)
	roleARN    = regexp.MustCompile(`^arn:aws[a-z-]*:iam::[0-9]{12}:role/[!-~]{1,512}$`)
)

const wantRegion = "the name of a region of AWS, such as us-east-1"

// region reads the name of a region, which becomes part of a host.
func region(to *string) func(yamlValue) { return matching(to, wantRegion, regionName) }

// matching reads a text that matches an expression.
func matching(to *string, want string, e *regexp.Regexp) func(yamlValue) {
	return strictyaml.Parsed(to, want, func(text string) (string, bool) { return text, e.MatchString(text) })
}

// account reads whose credentials sign calls.
func account(to **AWS) func(yamlValue) {
	return func(p yamlValue) {
		a := AWS{}
		p.Fields(
			field("profile", strictyaml.Any(&a.Profile, "the name of a profile in the files of AWS")),
			field("role_arn", matching(&a.RoleARN, "the ARN of a role, such as arn:aws:iam::123456789012:role/gateway", roleARN)),
		)
		*to = &a
	}
}

// completeAWS adds the region and the address of a deployment of Bedrock, from its other fields
// or the environment, and finds what is missing. Other kinds must have no fields of AWS.
func (d *Deployment) completeAWS(kind llm.Provider, at yamlValue) {
	switch {
	case kind != dialect.Bedrock && (d.Region != "" || d.AWS != nil):
		at.Fault("region and aws are only for kind bedrock: kind must be bedrock, or they must be left out")
		return
	case kind != dialect.Bedrock:
		return
	case d.AWS != nil && d.Key != (Secret{}):
		at.Fault("it has both key and aws: calls are sent with a key or signed, so only one of them must be set")
		return
	}
	if d.Region == "" && (d.BaseURL == "" || d.AWS != nil) {
		d.Region = cmp.Or(regionOf(d.BaseURL), os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	}
	switch {
	case !regionName.MatchString(d.Region) && (d.BaseURL == "" || d.AWS != nil):
		at.Fault("it has no region: region must be %s", wantRegion)
	case d.BaseURL == "":
		d.BaseURL = "https://bedrock-runtime." + d.Region + ".amazonaws.com"
		if strings.HasPrefix(d.Region, "cn-") {
			d.BaseURL += ".cn"
		}
	}
}

// regionOf returns the region in an address of Bedrock, such as
// https://bedrock-runtime.us-east-1.amazonaws.com, or "".
func regionOf(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	labels := strings.Split(u.Hostname(), ".")
	if len(labels) < 4 || !strings.HasPrefix(labels[0], "bedrock-runtime") || labels[2] != "amazonaws" {
		return ""
	}
	return labels[1]
}
