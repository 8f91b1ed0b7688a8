package llm

import "bytes"

// Some providers report parts of their counts in lists. Each entry names a kind of tokens and says
// how many there are: {"modality": "AUDIO", "tokenCount": 40}, or {"ttl": "1h", "inputTokens": 40}.
// Its members come in any order, so the entry counts when it ends.

// entryNumbers are the numbers that entries of a kind report, by the node of the entry. Entries of
// other kinds do not matter.
var entryNumbers = [nodes][]struct {
	kind   string
	number node
}{
	nodePromptEntry:    {{"AUDIO", inputAudio}, {"IMAGE", inputImage}},
	nodeCachedEntry:    {{"AUDIO", cachedAudio}},
	nodeCandidateEntry: {{"AUDIO", outputAudio}, {"IMAGE", outputImage}},
	nodeBedrockEntry:   {{"1h", cacheWriteHour}},
}

func (v *values) beginEntry() {
	v.entryKind.n = 0
	v.current.clear(entryTokens)
}

// endEntry records the number of an entry that has ended.
func (v *values) endEntry(entry node) {
	if !v.current.has(entryTokens) {
		return
	}
	v.current.clear(entryTokens)
	for _, e := range entryNumbers[entry] {
		if bytes.EqualFold(v.entryKind.bytes(), []byte(e.kind)) {
			v.current.set(e.number, v.current.n[entryTokens])
		}
	}
}
