package dialect_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"dappco.re/go/core/go-ratelimit/llm"
)

// The values that a meter reads, as paths without the indexes of arrays.
var (
	naiveNumbers    = map[string]string{}            // path to name
	naiveTexts      = map[string]string{}            // path to what kind of text
	naiveWords      = map[string]string{}            // path to name
	naiveEntries    = map[string]map[string]string{} // path of an entry to the names of its numbers, by kind
	naiveFaults     = []string{"error", "response.error", "choices.error"}
	naivePathsKnown []string
)

func init() {
	for _, at := range []string{"usage", "response.usage", "x_groq.usage", "message.usage"} {
		for _, name := range []string{"prompt_tokens", "completion_tokens", "total_tokens", "input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"} {
			naiveNumbers[at+"."+name] = name
		}
		naiveNumbers[at+".prompt_cache_hit_tokens"] = "cached"
		naiveNumbers[at+".prompt_tokens_details.cached_tokens"] = "cached"
		naiveNumbers[at+".input_tokens_details.cached_tokens"] = "cached"
		naiveNumbers[at+".completion_tokens_details.reasoning_tokens"] = "reasoning"
		naiveNumbers[at+".output_tokens_details.reasoning_tokens"] = "reasoning"
		for _, of := range []string{".prompt_tokens_details", ".input_tokens_details"} {
			naiveNumbers[at+of+".cache_write_tokens"] = "written"
			naiveNumbers[at+of+".audio_tokens"] = "input audio"
			naiveNumbers[at+of+".image_tokens"] = "input image"
			naiveNumbers[at+of+".cached_tokens_details.audio_tokens"] = "cached audio"
		}
		for _, of := range []string{".completion_tokens_details", ".output_tokens_details"} {
			naiveNumbers[at+of+".thinking_tokens"] = "reasoning"
			naiveNumbers[at+of+".audio_tokens"] = "output audio"
			naiveNumbers[at+of+".image_tokens"] = "output image"
		}
		naiveNumbers[at+".cache_creation.ephemeral_1h_input_tokens"] = "hour"
		naiveNumbers[at+".cost"] = "cost"
		naiveNumbers[at+".cost_details.upstream_inference_cost"] = "upstream cost"
		naiveNumbers[at+".is_byok"] = "own key"
		naiveWords[at+".service_tier"], naiveWords[at+".speed"] = "usage tier", "speed"
	}
	naiveWords["service_tier"], naiveWords["response.service_tier"] = "tier", "tier"
	naiveNumbers["message.usage.output_tokens"] = "started"
	for _, at := range []string{"usageMetadata", "response.usageMetadata"} {
		for _, name := range []string{"promptTokenCount", "cachedContentTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "toolUsePromptTokenCount", "totalTokenCount"} {
			naiveNumbers[at+"."+name] = name
		}
		naiveWords[at+".serviceTier"], naiveWords[at+".trafficType"] = "tier", "tier"
		naiveEntries[at+".promptTokensDetails"] = map[string]string{"AUDIO": "input audio", "IMAGE": "input image"}
		naiveEntries[at+".cacheTokensDetails"] = map[string]string{"AUDIO": "cached audio"}
		naiveEntries[at+".candidatesTokensDetails"] = map[string]string{"AUDIO": "output audio", "IMAGE": "output image"}
		for _, of := range []string{".promptTokensDetails", ".cacheTokensDetails", ".candidatesTokensDetails"} {
			naiveNumbers[at+of+".tokenCount"] = "entry"
			naiveWords[at+of+".modality"] = "entry"
		}
	}
	naiveNumbers["prompt_eval_count"] = "prompt_eval_count"
	naiveNumbers["eval_count"] = "eval_count"

	text := func(kind string, paths ...string) {
		for _, p := range paths {
			naiveTexts[p] = kind
		}
	}
	text("text", "choices.text", "delta", "delta.text", "delta.partial_json", "delta.thinking", "response", "thinking", "output.name")
	text("args", "output.arguments", "output.input")
	contents := []string{"content", "content_block", "output.content", "output.summary"}
	functions := []string{}
	for _, at := range []string{"choices.delta", "choices.message", "message"} {
		contents = append(contents, at+".content")
		functions = append(functions, at+".tool_calls.function", at+".tool_calls.custom", at+".function_call")
		text("text", at+".refusal", at+".thinking")
		text("reasoning", at+".reasoning")
		text("reasoning_content", at+".reasoning_content")
	}
	for _, at := range []string{"candidates.content.parts", "response.candidates.content.parts"} {
		functions = append(functions, at+".functionCall", at+".executableCode")
		text("text", at+".text")
	}
	for _, at := range contents {
		text("text", at, at+".text", at+".refusal", at+".name", at+".thinking", at+".thinking.text")
		text("args", at+".input")
	}
	for _, at := range functions {
		text("text", at+".name", at+".code")
		text("args", at+".arguments", at+".args", at+".input")
	}
	for _, at := range []string{"choices.finish_reason", "candidates.finishReason", "response.candidates.finishReason"} {
		naiveWords[at] = "finish"
	}
	naiveWords["type"], naiveWords["code"] = "type", "code"
	for _, at := range naiveFaults {
		naiveWords[at+".type"], naiveWords[at+".code"] = "fault type", "fault code"
	}
	known := slices.Concat(slices.Collect(maps.Keys(naiveNumbers)), slices.Collect(maps.Keys(naiveTexts)), slices.Collect(maps.Keys(naiveWords)), slices.Collect(maps.Keys(naiveEntries)), naiveFaults)
	slices.Sort(known)
	naivePathsKnown = known
}

// naive is a meter that splits a body into events as the standard says, and decodes them with
// encoding/json.
type naive struct {
	said         map[string]int64
	tier         string
	pieces       int
	chars        int
	behind       bool
	fault        string
	texts, runes map[string]int // of the value that is read
	now          map[string]int64
	words        map[string]string
	failed       bool
	answers      bool // the value has a piece of an answer
	ends         bool // the value says that one ends
	ended        bool
	running      bool
	values       int
}

var naiveAnswers = []string{"choices", "candidates", "response.candidates"}

// naiveMeter meters a body whose values are complete.
func naiveMeter(body string) metered {
	n := naive{said: map[string]int64{}}
	events := naiveEvents(body)
	for _, e := range events {
		n.event(e)
	}
	if len(events) == 1 && n.values == 1 && strings.HasPrefix(strings.TrimLeft(strings.TrimPrefix(body, "\ufeff"), " \t\r\n"), "{") {
		n.running = false
	}
	return metered{n.usage(), n.fault}
}

// naiveEvents returns the data of the events of a stream, or else the whole body.
func naiveEvents(body string) []string {
	body = strings.TrimLeft(strings.TrimPrefix(body, "\ufeff"), " \t\r\n")
	if strings.HasPrefix(body, "{") || strings.HasPrefix(body, "[") {
		return []string{body}
	}
	var events, data []string
	for line := range strings.SplitSeq(strings.ReplaceAll(strings.ReplaceAll(body, "\r\n", "\n"), "\r", "\n"), "\n") {
		name, value, _ := strings.Cut(line, ":")
		switch {
		case line == "":
			events, data = append(events, strings.Join(data, "\n")), nil
		case name == "data":
			data = append(data, strings.TrimPrefix(value, " "))
		}
	}
	return append(events, strings.Join(data, "\n"))
}

func (n *naive) event(data string) {
	d := json.NewDecoder(strings.NewReader(data))
	d.UseNumber()
	for {
		var v any
		if d.Decode(&v) != nil {
			return
		}
		n.top(v)
	}
}

func (n *naive) top(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			n.top(e)
		}
	case map[string]any:
		n.texts, n.runes, n.now, n.words, n.failed = map[string]int{}, map[string]int{}, map[string]int64{}, map[string]string{}, false
		n.answers, n.ends = false, false
		n.values++
		n.walk("", v, false)
		n.commit()
	}
}

func (n *naive) walk(path string, v any, element bool) {
	kind := naiveTexts[path]
	if s, ok := v.(string); kind == "args" && !ok {
		if count := naiveStrings(v); count > 0 {
			n.text("text", count)
		}
		return
	} else if kind != "" && s != "" {
		n.text(strings.Replace(kind, "args", "text", 1), utf8.RuneCountInString(s))
	}
	word := ""
	switch v := v.(type) {
	case map[string]any:
		n.failed = n.failed || slices.Contains(naiveFaults, path)
		n.answers = n.answers || slices.Contains(naiveAnswers, path)
		for _, k := range slices.Sorted(maps.Keys(v)) {
			n.walk(strings.TrimPrefix(path+"."+k, "."), v[k], false)
		}
		if kinds := naiveEntries[path]; kinds != nil {
			count, told := n.now["entry"]
			if name := kinds[strings.ToUpper(n.words["entry"])]; told && name != "" {
				n.now[name] = count
			}
			delete(n.now, "entry")
			delete(n.words, "entry")
		}
		return
	case []any:
		for _, e := range v {
			if !element {
				n.walk(path, e, true)
			}
		}
		return
	case string:
		word = v
	case bool:
		if naiveNumbers[path] == "own key" {
			n.now["own key"] = map[bool]int64{true: 1}[v]
		}
		return
	case json.Number:
		word = string(v)
		r, ok := new(big.Rat).SetString(word)
		if name := naiveNumbers[path]; ok && (name == "cost" || name == "upstream cost") {
			if up, ok := naiveBillionths(r); ok {
				n.now[name] = up
			}
			break
		} else if name == "own key" {
			break
		}
		if ok && r.IsInt() && r.Sign() >= 0 && r.Cmp(big.NewRat(1<<53, 1)) < 0 && naiveNumbers[path] != "" {
			n.now[naiveNumbers[path]] = r.Num().Int64()
		}
	default:
		return
	}
	n.failed = n.failed || slices.Contains(naiveFaults, path) && word != ""
	n.ends = n.ends || naiveWords[path] == "finish" && word != ""
	word = word[:min(64, len(word))]
	switch name := naiveWords[path]; {
	case name == "":
	case name != "tier" && name != "usage tier" && name != "speed":
		n.words[name] = word
	case word != "":
		tier := cmp.Or(naiveTiers[word], "standard")
		dearer := slices.Index(naiveTierOrder, tier) > slices.Index(naiveTierOrder, n.words["tier"])
		if name == "tier" || dearer && (name == "speed" || tier != "standard") {
			n.words["tier"] = tier
		}
	}
}

// naiveBillionths returns a number in billionths, rounded up, if it is neither negative nor too large.
func naiveBillionths(r *big.Rat) (int64, bool) {
	r = new(big.Rat).Mul(r, big.NewRat(1e9, 1))
	up := new(big.Int).Add(r.Num(), new(big.Int).Sub(r.Denom(), big.NewInt(1)))
	up.Div(up, r.Denom())
	return up.Int64(), r.Sign() >= 0 && up.Cmp(big.NewInt(1<<53)) < 0
}

// naiveTiers are the tiers that have prices of their own, under all of their names.
var naiveTiers = map[string]string{
	"batch": "batch", "flex": "flex", "priority": "priority", "FLEX": "flex", "ON_DEMAND_FLEX": "flex", "ON_DEMAND_PRIORITY": "priority", "fast": "fast",
}

// naiveTierOrder is the order in which Anthropic's tier and its speed win over each other in one value.
var naiveTierOrder = []string{"", "standard", "batch", "flex", "priority", "fast"}

func (n *naive) text(kind string, runes int) {
	n.texts[kind]++
	n.runes[kind] += runes
}

// naiveStrings returns how many characters all strings in v have.
func naiveStrings(v any) int {
	count := 0
	switch v := v.(type) {
	case string:
		count = utf8.RuneCountInString(v)
	case []any:
		for _, e := range v {
			count += naiveStrings(e)
		}
	case map[string]any:
		for k, e := range v {
			count += utf8.RuneCountInString(k) + naiveStrings(e)
		}
	}
	return count
}

func (n *naive) commit() {
	says := false
	if tier, ok := n.words["tier"]; ok {
		n.tier = tier
	}
	for name, v := range n.now {
		n.said[name] = v
		says = says || slices.Contains([]string{"completion_tokens", "total_tokens", "output_tokens", "candidatesTokenCount", "thoughtsTokenCount", "totalTokenCount", "eval_count"}, name)
	}
	if n.words["type"] != "response.audio.delta" {
		pieces := n.texts["text"] + max(n.texts["reasoning"], n.texts["reasoning_content"])
		n.pieces += pieces
		n.chars += n.runes["text"] + max(n.runes["reasoning"], n.runes["reasoning_content"])
		n.behind = n.behind || pieces > 0
	}
	n.behind = n.behind && !says
	n.ended = n.ended || n.ends
	if says {
		n.running = n.answers && !n.ended
	}
	fault := ""
	for _, w := range []string{n.words["fault code"], n.words["fault type"]} {
		if fault == "" {
			fault = w
		}
	}
	if n.words["type"] == "error" {
		if fault == "" {
			fault = n.words["code"]
		}
		n.failed = true
	}
	if fault == "" {
		fault = "error"
	}
	if n.failed && n.fault == "" {
		n.fault = fault
	}
}

func (n *naive) usage() llm.Usage {
	s := n.said
	has := func(names ...string) bool {
		for _, name := range names {
			if _, ok := s[name]; !ok {
				return false
			}
		}
		return true
	}
	in := int64(-1)
	switch {
	case has("prompt_tokens"):
		in = s["prompt_tokens"]
	case has("input_tokens"):
		in = s["input_tokens"] + s["cache_creation_input_tokens"] + s["cache_read_input_tokens"]
	case has("promptTokenCount"):
		in = s["promptTokenCount"] + s["toolUsePromptTokenCount"]
	case has("prompt_eval_count"):
		in = s["prompt_eval_count"]
	}
	out, exact := int64(0), true
	rest := max(0, s["total_tokens"]-s["prompt_tokens"])
	geminiRest := s["totalTokenCount"] - s["promptTokenCount"] - s["toolUsePromptTokenCount"]
	geminiTotal := has("totalTokenCount", "promptTokenCount")
	switch {
	case has("completion_tokens", "total_tokens", "prompt_tokens"):
		out = max(s["completion_tokens"], rest)
	case has("completion_tokens"):
		out = s["completion_tokens"]
	case has("output_tokens"):
		out = s["output_tokens"]
	case has("candidatesTokenCount"):
		out = s["candidatesTokenCount"] + s["thoughtsTokenCount"]
		if geminiTotal && geminiRest == s["candidatesTokenCount"] {
			out = s["candidatesTokenCount"]
		}
	case geminiTotal:
		out = max(0, geminiRest, s["thoughtsTokenCount"])
	case has("thoughtsTokenCount"):
		out = s["thoughtsTokenCount"]
	case has("eval_count"):
		out = s["eval_count"]
	case has("total_tokens", "prompt_tokens"):
		out = rest
	default:
		exact = false
	}
	exact = exact && !n.behind && !n.running && (out > 0 || n.pieces == 0)
	if !exact {
		out = max(out, s["started"], int64(n.pieces), int64(n.chars+5)/6)
	}
	all := max(in, 0)
	cached := min(all, max(s["cached"], s["cache_read_input_tokens"], s["cachedContentTokenCount"]))
	write := min(all-cached, max(s["cache_creation_input_tokens"], s["written"]))
	audio := min(all, s["input audio"])
	reasoning := min(out, max(s["reasoning"], s["thoughtsTokenCount"]))
	spoken := min(out-reasoning, s["output audio"])
	cost := s["cost"]
	if s["own key"] == 1 && has("cost") {
		cost += s["upstream cost"]
	}
	return llm.Usage{
		Input: int(in), Cached: int(cached), CacheWrite: int(write), CacheWriteHour: int(min(write, s["hour"])),
		InputAudio: int(audio), InputImage: int(min(all-audio, s["input image"])),
		CachedAudio: int(min(audio, cached, max(s["cached audio"], audio+cached-all))),
		Output:      int(out), Reasoning: int(reasoning), OutputAudio: int(spoken), OutputImage: int(min(out-reasoning-spoken, s["output image"])),
		Tier: n.tier, Cost: cost, CostTold: has("cost"), Exact: exact,
	}
}

// dice draws from bytes, which a fuzzer may choose.
type dice struct{ b []byte }

// n draws a number from 0 to n-1. It is 0 when no bytes are left.
func (d *dice) n(n int) int {
	v := 0
	for range 2 {
		if len(d.b) > 0 {
			v, d.b = v<<8|int(d.b[0]), d.b[1:]
		}
	}
	return v % n
}

func pick[T any](d *dice, of ...T) T { return of[d.n(len(of))] }

// scalar draws a value without members.
func (d *dice) scalar() any {
	return pick[any](d, nil, true, "", "text", "gen erated \"text\" \\ \n é 世界 😀 <b>", "response.audio.delta", "error", "AUDIO", "image", "batch", "ON_DEMAND_FLEX", "FLEX", strings.Repeat("long é", d.n(30)),
		json.Number("0"), json.Number("7"), json.Number("150"), json.Number("25"), json.Number("9007199254740991"), json.Number("9007199254740993"),
		json.Number("-3"), json.Number("5.0"), json.Number("1E2"), json.Number("0.5"), json.Number("0.00000123456789"), json.Number("1.5e-7"), json.Number("9007199.254740992"), json.Number("1e400"), json.Number("12345678901234567890"))
}

// value draws any value.
func (d *dice) value(depth int) any {
	switch k := d.n(6); {
	case k == 0 && depth > 0:
		v := map[string]any{}
		for range d.n(4) {
			v[pick(d, "usage", "text", "g", "content", "prompt_tokens", "x")] = d.value(depth - 1)
		}
		return v
	case k == 1 && depth > 0:
		v := []any{}
		for range d.n(4) {
			v = append(v, d.value(depth-1))
		}
		return v
	}
	return d.scalar()
}

// object draws an event with values under the names that the meter knows, and under others.
func (d *dice) object() map[string]any {
	top := map[string]any{}
	for range d.n(8) {
		path := strings.Split(pick(d, naivePathsKnown...), ".")
		at := top
		for _, name := range path[:len(path)-1] {
			next, ok := at[name].(map[string]any)
			if list, isList := at[name].([]any); isList && len(list) > 0 {
				next, ok = list[len(list)-1].(map[string]any)
			}
			if !ok {
				next = map[string]any{}
				at[name] = pick[any](d, next, next, []any{next}, []any{d.value(1), next})
			}
			at = next
		}
		at[path[len(path)-1]] = d.value(2)
	}
	for range d.n(3) {
		top[pick(d, "id", "logprobs", "created", "g\"x\\")] = d.value(3)
	}
	return top
}

// json draws the text of a value.
func (d *dice) json(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	if d.n(3) == 0 {
		var wide bytes.Buffer
		if err := json.Indent(&wide, b, "", " "); err != nil {
			panic(err)
		}
		b = wide.Bytes()
	}
	text := string(b)
	for range d.n(3) { // g is in no literal
		text = strings.Replace(text, "g", `\u0067`, 1)
	}
	return text
}

// stream draws the body of a response.
func (d *dice) stream() string {
	var b strings.Builder
	if d.n(4) == 0 { // values
		array := d.n(2) == 0
		for i := range d.n(5) {
			b.WriteString(map[bool]string{true: ",", false: "\n"}[array && i > 0] + d.json(d.object()))
		}
		if array {
			return "[" + b.String() + "]"
		}
		return b.String()
	}
	end := pick(d, "\n", "\r\n", "\r")
	b.WriteString(pick(d, "", "\ufeff", ":"+end, end))
	for range d.n(6) {
		data := d.json(d.object())
		switch d.n(8) {
		case 0:
			data = data[:d.n(len(data))]
		case 1:
			data = pick(d, "[DONE]", "{", "}", "<html>", "", data+" what?", data+data, "["+data+"]", "null", `"`+"{")
		}
		b.WriteString(pick(d, "", "", ": comment"+end, "id: 1"+end, "data"+end, "datum: {}"+end, "event:x"+end))
		for line := range strings.SplitSeq(data, "\n") {
			b.WriteString(pick(d, "data:", "data: ") + line + end)
		}
		b.WriteString(pick(d, "", "", "retry: 3"+end, ":{}"+end) + end)
	}
	return b.String()
}
