package config

import (
	"cmp"
	"net/url"
	"os"
	"regexp"
	"strings"

	"dappco.re/go/core/go-ratelimit/llm"
)

// AWS is whose credentials sign calls of Bedrock: those of a profile or of the default
// chain of AWS's SDK, and of the role that is assumed with them, if any.
type AWS struct{ Profile, RoleARN string }

// Signed reports whether the gateway signs calls with its own credentials of AWS.
func (d *Deployment) Signed() bool { return d.Region != "" && d.Key == (Secret{}) }

var (
	regionName = regexp.MustCompile(`^[a-z]{2,8}(-[a-z0-9]{1,16}){1,4}$`)
	roleARN    = regexp.MustCompile(`^arn:aws[a-z-]*:iam::[0-9]{12}:role/[!-~]{1,512}$`)
)

const wantRegion = "the name of a region of AWS, such as us-east-1"

// region reads the name of a region, which becomes part of a host.
func region(to *string) func(place) {
	return func(p place) {
		name, ok := p.text(wantRegion)
		switch {
		case ok && !regionName.MatchString(name):
			p.fault("%s: it must be %s", shown(name), wantRegion)
		case ok:
			*to = name
		}
	}
}

// account reads whose credentials sign.
func account(to **AWS) func(place) {
	return func(p place) {
		a := AWS{}
		p.fields(
			field{"profile", text(&a.Profile, "the name of a profile in the files of AWS")},
			field{"role_arn", func(p place) {
				const want = "the ARN of a role, such as arn:aws:iam::123456789012:role/gateway"
				arn, ok := p.text(want)
				if ok && !roleARN.MatchString(arn) {
					p.fault("%s: it must be %s", shown(arn), want)
				}
				a.RoleARN = arn
			}},
		)
		*to = &a
	}
}

// completeAWS adds to a deployment of Bedrock what its other fields or the environment
// tell, and finds what is missing. Other kinds have nothing to do with AWS.
func (d *Deployment) completeAWS(kind llm.Provider, at place) {
	switch {
	case kind != llm.Bedrock && (d.Region != "" || d.AWS != nil):
		at.fault("it has region or aws, which are for kind bedrock: kind must be bedrock, or they left out")
		return
	case kind != llm.Bedrock:
		return
	case d.AWS != nil && d.Key != (Secret{}):
		at.fault("it has both key and aws: calls are sent with a key or signed, so it must be one of them")
		return
	}
	if d.Region == "" && (d.BaseURL == "" || d.AWS != nil) {
		d.Region = cmp.Or(regionOf(d.BaseURL), os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	}
	switch {
	case !regionName.MatchString(d.Region) && (d.BaseURL == "" || d.AWS != nil):
		at.fault("it has no region: region must be %s", wantRegion)
	case d.BaseURL == "":
		d.BaseURL = "https://bedrock-runtime." + d.Region + ".amazonaws.com"
		if strings.HasPrefix(d.Region, "cn-") {
			d.BaseURL += ".cn"
		}
	}
}

// regionOf returns the region that an address of Bedrock names, such as
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
