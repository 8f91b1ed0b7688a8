// Package litellm converts the config.yaml of LiteLLM's proxy into the gateway's file, and says
// what it could not convert.
package litellm

import (
	"errors"
	"fmt"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/strictyaml"
)

// A Result is the gateway's file, and remarks about all that is in LiteLLM's file and not, or not
// quite so, in the gateway's.
type Result struct {
	YAML    string
	Remarks []strictyaml.Fault // in the order of the lines
}

// Convert reads a config.yaml; name is that of the file, for remarks and errors. The error joins
// everything that cannot be read.
func Convert(name string, text []byte) (Result, error) {
	d := strictyaml.Parse(name, string(text), 4<<20, 200_000)
	f := &file{}
	f.read(d.Root())
	if faults := d.Faults(); len(faults) > 0 {
		var all []error
		for _, fault := range faults {
			all = append(all, errors.New(fault.String()))
		}
		return Result{}, errors.Join(all...)
	}
	if len(f.models) == 0 {
		return Result{}, fmt.Errorf("%s: model_list has no model that can be converted: is it a config.yaml of LiteLLM?", name)
	}
	yaml := f.write(f.providers())
	return Result{yaml, d.Warnings()}, nil
}

// file is the part of LiteLLM's configuration file that the conversion reads.
type file struct {
	models   []model
	keys     bool   // clients need a key
	token    string // the environment variable of the master key
	state    string // a URL of Redis, or empty
	stateEnv string // the environment variable that has the URL of Redis
	timeout  string // of a provider, in seconds
	retries  string
}

func (f *file) read(root strictyaml.Value) {
	root.Entries(func(name string, key, value strictyaml.Value) {
		switch name {
		case "model_list":
			value.Items(f.readModel)
		case "general_settings":
			value.Entries(f.readGeneral)
		case "router_settings":
			value.Entries(f.readRouter)
		case "litellm_settings":
			value.Entries(f.readLiteLLM)
		case "environment_variables":
			value.Warn("not converted: set these variables in the gateway's environment")
		default:
			value.Warn("not converted: the gateway has nothing like it")
		}
	})
}

func (f *file) readGeneral(name string, key, value strictyaml.Value) {
	switch name {
	case "master_key":
		f.keys, f.token = true, variable(value, "RATELIMIT_ADMIN_TOKEN")
		value.Warn("it becomes the token of the admin API; virtual keys are in LiteLLM's database: make new ones with ratelimit key create")
	case "database_url", "store_model_in_db":
		value.Warn("not converted: the gateway needs no database; keys and budgets that are in LiteLLM's must be made anew")
	case "max_parallel_requests", "global_max_parallel_requests":
		value.Warn("not converted: set max_concurrent of a project, or of defaults")
	default:
		value.Warn("not converted: the gateway has nothing like it")
	}
}

func (f *file) readRouter(name string, key, value strictyaml.Value) {
	text, _ := value.Scalar()
	switch name {
	case "redis_host":
		if strings.HasPrefix(text, environment) {
			f.stateEnv = "REDIS_URL"
			value.Warn("put the whole URL into the environment variable REDIS_URL, such as redis://:PASSWORD@HOST:6379/0")
			return
		}
		f.state = "redis://" + text + ":6379/0"
		value.Warn("it becomes state, with port 6379 and without a password: change it if yours differ")
	case "redis_url":
		f.stateEnv = variable(value, "REDIS_URL")
	case "redis_port", "redis_password":
		value.Warn("not converted: put the whole URL into an environment variable, and write state: {env: NAME}")
	case "timeout":
		f.timeout = seconds(value)
	case "num_retries":
		f.retries = text
	case "routing_strategy":
		value.Warn("not converted: a call goes to the deployment that has most left of its quota")
	case "model_group_alias":
		value.Warn("not converted: write the names into aliases of the models")
	case "fallbacks", "context_window_fallbacks", "content_policy_fallbacks", "default_fallbacks":
		value.Warn("not converted: the gateway does not send a call to another model")
	default:
		value.Warn("not converted: the gateway has nothing like it")
	}
}

func (f *file) readLiteLLM(name string, key, value strictyaml.Value) {
	switch name {
	case "request_timeout":
		f.timeout = seconds(value)
	case "num_retries":
		f.retries, _ = value.Scalar()
	case "fallbacks", "context_window_fallbacks", "content_policy_fallbacks", "default_fallbacks":
		value.Warn("not converted: the gateway does not send a call to another model")
	case "max_budget", "budget_duration":
		value.Warn("not converted: put all projects below one, such as all/search, and give that dollars_per_month")
	case "cache", "cache_params":
		value.Warn("not converted: the gateway does not keep answers")
	case "callbacks", "success_callback", "failure_callback":
		value.Warn("not converted: the gateway has metrics, a log, usage and webhooks")
	default:
		value.Warn("not converted: the gateway has nothing like it")
	}
}
