package dialect

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"net/http"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// Bedrock is Amazon Bedrock.
const Bedrock llm.Provider = "bedrock"

// The APIs of Bedrock.
const (
	Converse API = "converse" // Bedrock's converse and converse-stream
	Invoke   API = "invoke"   // Bedrock's invoke and invoke-with-response-stream, in each model's own format
)

var _ = register(dialect{
	provider:  Bedrock,
	isHost:    ofBedrock,
	recognize: callOfBedrock,
	protocols: []protocol{
		{
			api: Converse, answers: bedrockTop, frames: true, requestID: amazonRequestID, refuse: refuseAmazon, refuseInFrame: exceptionFrame,
			fields:      []field{tierField, inferenceConfig},
			bounds:      []setting{inferenceTokens}, // it ignores the other names, which are of the models' own formats
			boundObject: "inferenceConfig", boundName: "maxTokens", overridable: true,
		},
		{
			api: Invoke, answers: bedrockTop, frames: true, requestID: amazonRequestID, refuse: refuseAmazon, refuseInFrame: exceptionFrame,
			fields: []field{
				maxTokensOf, maxCompletionTokensOf, answersOf, inferenceConfig,
				{name: "max_gen_len", kind: fieldNumber, setting: maxGenLen},
				{name: "num_generations", also: "numResults", kind: fieldNumber, setting: generations},
				{name: "textGenerationConfig", kind: fieldObject, parts: inferenceConfig.parts},
			},
			bounds: []setting{maxTokens, maxCompletionTokens, inferenceTokens, inferenceNewTokens, inferenceTokenCount, maxGenLen},
			counts: []setting{answerCount, generations}, measure: measureInvoked,
			usageHeaders: []headerNumber{
				{"X-Amzn-Bedrock-Input-Token-Count", inputTokens},
				{"X-Amzn-Bedrock-Output-Token-Count", outputTokens},
				{"X-Amzn-Bedrock-Cache-Read-Input-Token-Count", cacheReadTokens},
				{"X-Amzn-Bedrock-Cache-Write-Input-Token-Count", cacheWriteTokens},
			},
			packed: &node{members: members{"bytes": {role: rolePacked}}}, // the model's own JSON
		},
	},
	errorAPI:      Converse,
	flatErrors:    true,
	refusalHeader: amazonCodeHeader,
	refusalCode:   amazonCode,
	renamePath:    renameBedrock,
	faults: map[string]fault{
		"serviceunavailableexception": faultOverload, "modelnotreadyexception": faultOverload, "throttlingexception": faultLimit,
	},
	readError: func(c *errorBody, inner any, _ time.Time) {
		c.code = cmp.Or(c.code, bareCode(memberWord(inner, "__type")))
	},
	errorCause: func(c *errorBody) (llm.Cause, bool) { return llm.Overloaded, c.names("modelnotreadyexception") },
	usage:      usageRules{ends: outputTokens},
	names: nameRules{
		same: []nameRule{bareARN, claude},
		variant: []nameRule{
			unversioned, date("-v0"),
			after("us."), after("us-gov."), after("eu."), after("apac."), after("jp."), after("au."), after("ca."), after("global."),
		},
	},
	fields: []field{
		{name: "inputText", kind: fieldTexts},
		{name: "toolConfig", kind: fieldAll, storedIf: "systemTool"},
		{name: "additionalModelRequestFields", kind: fieldHiding, harmless: []string{`{}`}, overrides: true},
		{name: "promptVariables", kind: fieldStored},
	},
	promptKeys:   map[string]keyKind{"toolUseId": keyLabel, "json": keyFree, "bytes": keyPayload, "s3Location": keyReference},
	wholeTypes:   []string{"guard_content"},
	thinking:     map[string]bool{"reasoning_config": true, "additionalModelRequestFields": false},
	tierHeader:   "X-Amzn-Bedrock-Service-Tier",
	images:       &anthropicImages,
	overhead:     anthropicOverhead,
	secretive:    []string{"nova-2"},
	cachedIsFree: true,
	countsBound:  boundCounted,
})

// ofBedrock reports whether a host is one of Bedrock's, such as
// bedrock-runtime.us-east-1.amazonaws.com.
func ofBedrock(host string) bool {
	return strings.HasPrefix(host, "bedrock-") && (strings.HasSuffix(host, ".amazonaws.com") || strings.HasSuffix(host, ".amazonaws.com.cn"))
}

// callOfBedrock reads one of Bedrock's paths, such as /model/amazon.nova-pro-v1%3A0/converse.
// Everything between /model/ and the last segment is the name of the model: a name that is an ARN
// has slashes, escaped or not.
func callOfBedrock(p requestPath, _ bool) (e Endpoint, ok bool) {
	e = Endpoint{Provider: Bedrock}
	switch p.word {
	case "converse", "converse-stream":
		e.API = Converse
	case "invoke", "invoke-with-response-stream":
		e.API = Invoke
	default:
		return e, false
	}
	from := afterFolder(p.folder, "/model/")
	e.Model = strings.Trim(unescapeSegment(p.url, p.folder[from:]), "/")
	e.Stream = strings.HasSuffix(p.word, "-stream")
	return e, from > 0 && e.Model != ""
}

// unversioned removes the version of one of Bedrock's models, such as :0 or :0:24k. It leaves ARNs
// alone, which have colons of their own.
func unversioned(name string) string {
	if strings.HasPrefix(name, "arn:") {
		return name
	}
	return upTo(":")(name)
}

// bareARN returns the name of the foundation model or the inference profile in an ARN. Every other
// name stays as it is: other resources have quotas of their own, or do not show their model.
func bareARN(name string) string {
	if !strings.HasPrefix(name, "arn:") {
		return name
	}
	for _, kind := range []string{":foundation-model/", ":inference-profile/"} {
		if _, bare, ok := strings.Cut(name, kind); ok && bare != "" {
			return bare
		}
	}
	return name
}

// Bedrock's Converse reports usage in a format of its own. Its Invoke hands on what the model
// writes in its own format, and adds usage in headers and in the last event of a stream.
// Tokens that were read from a cache or written to it are not part of the input.
var (
	bedrockTop = extend(commonTop, members{
		"usage": bedrockUsage, "amazon-bedrock-invocationMetrics": bedrockUsage,
		"output": bedrockPart, "metadata": bedrockPart,
		"contentBlockDelta": bedrockPart, "contentBlockStart": bedrockPart, // in Nova's streams
		"delta": bedrockDelta, "start": bedrockContent, "serviceTier": bedrockTier,
		"outputText": textNode, "generation": textNode, "completion": textNode, // Titan's, Llama's, and old models' of Anthropic
	})
	bedrockPart = &node{members: members{
		"content": bedrockContent, "start": bedrockContent,
		"delta": bedrockDelta, "usage": bedrockUsage, "serviceTier": bedrockTier,
	}}
	bedrockUsage = extend(commonUsage, members{
		"inputTokens": count(inputTokens), "inputTokenCount": count(inputTokens),
		"outputTokens": count(outputTokens), "outputTokenCount": count(outputTokens),
		"cacheReadInputTokens": count(cacheReadTokens), "cacheReadInputTokenCount": count(cacheReadTokens),
		"cacheWriteInputTokens": count(cacheWriteTokens), "cacheWriteInputTokenCount": count(cacheWriteTokens),
		"cacheDetails": {
			members: members{"ttl": kindNode, "inputTokens": countNode},
			entries: []entryNumber{{"1h", cacheWriteHour}},
		},
	})
	bedrockTier    = &node{members: members{"type": tierNode}}
	bedrockDelta   = &node{members: members{"text": textNode, "partial_json": textNode, "thinking": textNode, "reasoningContent": bedrockThought, "toolUse": functionNode}}
	bedrockContent = extend(contentNode, members{"reasoningContent": bedrockThought, "toolUse": functionNode})
	bedrockThought = &node{members: members{"text": textNode}}
)

func init() { // these have values like themselves in them
	bedrockPart.members["message"] = bedrockPart
	bedrockThought.members["reasoningText"] = bedrockThought
}

// The numbers in requests to Bedrock, in its own format or in that of one of its models, and the object that has them.
var (
	inferenceTokens     = newBound()
	inferenceNewTokens  = newBound()
	inferenceTokenCount = newBound()
	maxGenLen           = newBound()
	generations         = newCount()

	inferenceConfig = field{name: "inferenceConfig", kind: fieldObject, parts: []part{
		{"maxTokens", inferenceTokens}, {"max_new_tokens", inferenceNewTokens}, {"maxTokenCount", inferenceTokenCount},
	}}
)

// measureInvoked returns how many images a model of Bedrock makes for a request, or how many searches a ranking is billed
// as. Requests to other models are paid for by tokens alone.
func measureInvoked(b measuredBody) (m measured) {
	is := func(name string) bool { return strings.Contains(b.model, name) } // the model may be an ARN
	switch {
	case is("cohere.rerank"), is("amazon.rerank"):
		return measureRanking(b)
	case is("stability."):
		m.units[llm.Images] = 1
	case is("amazon.titan-image"), is("amazon.nova-canvas"):
		m.units[llm.Images] = imagesAskedFor(b.text)
	}
	return m
}

// imagesAskedFor returns how many images a request to one of Amazon's own models asks for, or -1 if it can be read in two
// ways.
func imagesAskedFor(text []byte) int64 {
	var body struct {
		ImageGenerationConfig struct {
			NumberOfImages int64 `json:"numberOfImages"`
		} `json:"imageGenerationConfig"`
	}
	if objectOf(text) == nil || json.Unmarshal(text, &body) != nil || body.ImageGenerationConfig.NumberOfImages > mostCounted {
		return -1
	}
	return max(body.ImageGenerationConfig.NumberOfImages, 1)
}

// amazonCodeHeader has the code of an error.
const amazonCodeHeader = "X-Amzn-Errortype"

// amazonCodes are Amazon's words for errors.
var amazonCodes = statusWords{
	http.StatusBadRequest:          "ValidationException",
	http.StatusUnauthorized:        "UnrecognizedClientException",
	http.StatusPaymentRequired:     "ServiceQuotaExceededException",
	http.StatusForbidden:           "AccessDeniedException",
	http.StatusNotFound:            "ResourceNotFoundException",
	http.StatusTooManyRequests:     "ThrottlingException",
	http.StatusServiceUnavailable:  "ServiceUnavailableException",
	http.StatusInternalServerError: "InternalServerException",
}

// amazonCode returns the code of a refusal. After a ThrottlingException, Amazon's SDKs try again by themselves.
func amazonCode(r Refusal) string {
	if r.Status == http.StatusTooManyRequests && !r.Retry {
		return "ServiceQuotaExceededException"
	}
	return amazonCodes.of(r.Status)
}

// refuseAmazon returns the body of a refusal in Amazon's form.
func refuseAmazon(_ Endpoint, r Refusal, fault object) object {
	fault["__type"] = amazonCode(r)
	return fault
}

// renameBedrock replaces the name of the model, which is a folder.
func renameBedrock(path, from, to string) string {
	return strings.Replace(path, "/model/"+from+"/", "/model/"+to+"/", 1)
}

// exceptionFrame returns a refusal as a message of AWS's event streams.
func exceptionFrame(r Refusal) []byte {
	kind := "modelStreamErrorException"
	switch r.Status {
	case http.StatusTooManyRequests:
		kind = "throttlingException"
	case http.StatusServiceUnavailable:
		kind = "serviceUnavailableException"
	}
	var headers []byte
	for _, h := range [][2]string{{":content-type", "application/json"}, {":exception-type", kind}, {":message-type", "exception"}} {
		headers = append(append(append(headers, byte(len(h[0]))), h[0]...), headerString)
		headers = append(binary.BigEndian.AppendUint16(headers, uint16(len(h[1]))), h[1]...)
	}
	payload := encoded(object{"message": r.Message})
	f := binary.BigEndian.AppendUint32(nil, uint32(prelude+len(headers)+len(payload)+frameEnd))
	f = binary.BigEndian.AppendUint32(f, uint32(len(headers)))
	f = binary.BigEndian.AppendUint32(f, crc32.ChecksumIEEE(f))
	f = append(append(f, headers...), payload...)
	return binary.BigEndian.AppendUint32(f, crc32.ChecksumIEEE(f))
}

// bareCode returns the code of an Amazon error without the text around it, as in
// com.amazon.coral.service#ThrottlingException:http://internal.amazon.com/.
func bareCode(code string) string {
	code = code[strings.LastIndexByte(code, '#')+1:]
	code, _, _ = strings.Cut(code, ":")
	return code
}

const amazonRequestID = "X-Amzn-Requestid"
