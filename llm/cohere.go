package llm

// Where Cohere's responses tell usage. They tell it twice: as tokens, which is what the
// model has read and written, and as what is billed, without what Cohere itself writes
// around a prompt. Limits count the former, where it is told: it is the larger one.

// cohereMember returns the node of the member of n, which is one of Cohere's, with the
// name.
func (n node) cohereMember(name []byte) node {
	switch n {
	case nodeCohere:
		return cohereTop(name)
	case nodeCoherePart:
		switch string(name) {
		case "message":
			return nodeDelta
		case "usage", "meta":
			return nodeCohereUsage
		case "error":
			return nodeFault
		}
	case nodeCohereUsage:
		switch string(name) {
		case "tokens":
			return nodeUsage
		case "billed_units":
			return nodeCohereBilled
		case "cached_tokens":
			return cachedTokens
		}
	case nodeCohereBilled:
		switch string(name) {
		case "input_tokens":
			return billedInput
		case "output_tokens":
			return billedOutput
		}
	}
	return nodeNone
}

// cohereTop returns the node of a member of a whole response or an event. The first
// version of the API has its text at the top, and repeats it in the response with which
// a stream ends.
func cohereTop(name []byte) node {
	switch string(name) {
	case "usage", "meta":
		return nodeCohereUsage
	case "delta", "response":
		return nodeCoherePart
	case "message":
		return nodeDelta
	case "text":
		return nodeText
	}
	return topMember(name)
}
