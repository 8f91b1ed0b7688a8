package litellm

import (
	"math/big"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/strictyaml"
)

// model is an entry of model_list.
type model struct {
	account
	alias      string // the name that clients use
	name       string // the provider's name of it
	rpm, tpm   int
	concurrent int
	input      string // dollars for a million tokens; empty: none is given
	output     string
}

// account is where calls of a model go.
type account struct {
	kind   string // of the gateway's provider
	base   string // the base URL; empty: the provider's own
	key    string // the environment variable of the key; empty: none
	region string
}

// kinds are the gateway's kinds of providers by LiteLLM's prefixes.
var kinds = map[string]string{
	"openai": "openai", "text-completion-openai": "openai", "azure": "azure", "anthropic": "anthropic",
	"gemini": "gemini", "vertex_ai": "vertex", "groq": "groq", "mistral": "mistral", "openrouter": "openrouter",
	"ollama": "ollama", "ollama_chat": "ollama", "cohere": "cohere", "cohere_chat": "cohere", "bedrock": "bedrock",
}

// bases are the URLs of providers that need no api_base.
var bases = map[string]string{
	"openai": "https://api.openai.com", "anthropic": "https://api.anthropic.com",
	"gemini": "https://generativelanguage.googleapis.com", "ollama": "http://127.0.0.1:11434",
	"groq": "https://api.groq.com", "mistral": "https://api.mistral.ai",
	"openrouter": "https://openrouter.ai/api", "cohere": "https://api.cohere.com",
}

// keyless are the kinds that need no key.
var keyless = map[string]bool{"ollama": true, "bedrock": true}

func (f *file) readModel(entry strictyaml.Value) {
	m := model{}
	entry.Entries(func(name string, key, value strictyaml.Value) {
		switch name {
		case "model_name":
			m.alias, _ = value.Scalar()
		case "litellm_params":
			m.readParameters(value)
		case "model_info":
			value.Entries(m.readInfo)
		default:
			value.Warn("not converted: the gateway has nothing like it")
		}
	})
	switch {
	case m.name == "":
		entry.Warn("not converted: litellm_params.model is missing")
	case m.kind == "compatible" && m.base == "":
		entry.Warn("not converted: the gateway does not know where this provider is; give it a base_url in providers")
	case m.kind == "vertex" && m.base == "", m.kind == "azure" && m.base == "":
		entry.Warn("not converted: api_base is missing, which the gateway needs as base_url")
	case m.kind == "bedrock" && m.region == "":
		entry.Warn("not converted: aws_region_name is missing")
	default:
		f.models = append(f.models, m)
	}
}

func (m *model) readParameters(parameters strictyaml.Value) {
	text, _ := parameters.At("model").Scalar()
	m.kind, m.name = split(text)
	parameters.Entries(func(name string, key, value strictyaml.Value) {
		switch name {
		case "model":
		case "api_key":
			m.key = variable(value, strings.ToUpper(m.kind)+"_API_KEY")
		case "api_base":
			m.setBase(value)
		case "aws_region_name":
			m.region, _ = value.Scalar()
		case "rpm":
			strictyaml.Count(&m.rpm, 0, 1<<40)(value)
		case "tpm":
			strictyaml.Count(&m.tpm, 0, 1<<40)(value)
		case "max_parallel_requests":
			strictyaml.Count(&m.concurrent, 0, 1<<20)(value)
		case "input_cost_per_token", "output_cost_per_token":
			m.readInfo(name, key, value)
		case "api_version":
			value.Warn("not converted: clients send api-version themselves, as Azure's SDK does")
		default:
			value.Warn("not converted: clients send it in their requests, or the gateway has nothing like it")
		}
	})
	if m.key == "" && !keyless[m.kind] && m.name != "" {
		m.key = strings.ToUpper(m.kind) + "_API_KEY" // the variable that LiteLLM reads by itself
	}
	if m.base == "" {
		m.base = bases[m.kind]
	}
	if m.kind == "bedrock" {
		m.base = ""
	}
}

func (m *model) readInfo(name string, key, value strictyaml.Value) {
	switch name {
	case "input_cost_per_token":
		m.input = perMillion(value)
	case "output_cost_per_token":
		m.output = perMillion(value)
	case "id", "mode", "base_model", "description": // they change nothing here
	default:
		value.Warn("not converted: the gateway has nothing like it")
	}
}

// setBase sets the base URL, without the version that SDKs put into their paths.
func (m *model) setBase(value strictyaml.Value) {
	text, _ := value.Scalar()
	if strings.HasPrefix(text, "os.environ/") {
		value.Warn("not converted: write the URL itself, since base_url cannot be in the environment")
		return
	}
	m.base = strings.TrimSuffix(strings.TrimSuffix(text, "/"), "/v1")
	if m.kind == "openai" && m.base != bases["openai"] {
		m.kind = "compatible"
	}
}

// split returns the kind of a model's provider, and the provider's name of the model.
func split(text string) (kind, name string) {
	prefix, rest, ok := strings.Cut(text, "/")
	switch {
	case ok && kinds[prefix] != "":
		return kinds[prefix], strings.TrimPrefix(rest, "converse/")
	case ok:
		return "compatible", rest
	case strings.HasPrefix(text, "claude"):
		return "anthropic", text
	case strings.HasPrefix(text, "gemini"):
		return "gemini", text
	}
	return "openai", text
}

// environment begins a value that is in an environment variable.
const environment = "os.environ/"

// variable returns the environment variable that a secret is in. A secret that stands in the
// file itself is not copied.
func variable(value strictyaml.Value, otherwise string) string {
	text, _ := value.Scalar()
	if name, ok := strings.CutPrefix(text, environment); ok {
		return name
	}
	value.Warn("a secret: it was not copied; put it into the environment variable %s", otherwise)
	return otherwise
}

// seconds returns a duration that LiteLLM has in seconds.
func seconds(value strictyaml.Value) string {
	n := 0
	strictyaml.Count(&n, 1, 3600)(value)
	return (big.NewInt(int64(n))).String() + "s"
}

// perMillion returns the price of a million tokens, given that of one.
func perMillion(value strictyaml.Value) string {
	text, _ := value.Scalar()
	price, ok := new(big.Rat).SetString(text)
	if !ok || price.Sign() < 0 {
		value.Fault("%q is no price: want dollars for a token, such as 0.0000025", text)
		return ""
	}
	price.Mul(price, big.NewRat(1_000_000, 1))
	whole := price.FloatString(6)
	return strings.TrimRight(strings.TrimRight(whole, "0"), ".")
}
