package dialect

import "maps"

// A node says what a value of an answer means to the meter, and which of its members matter. An array has the node of
// its elements. A value without a node does not matter, nor does anything in it.
type node struct {
	role    role
	number  number        // of a roleNumber
	written numberForm    // of a roleNumber
	members members       // nil: an object does not matter
	entries []entryNumber // not nil: an object is an entry of a list, see endEntry
	counted bool          // each entry counts as 1, and has no number of its own
	answers bool          // an object is an answer, or a piece of one
	each    number        // each object or string adds 1 to the number; noNumber: none does
	sums    bool          // of a roleNumber, or of entries: the numbers of one value are added up
}

// members are the members of an object that matter, by their names.
type members map[string]*node

// A role is what a value that is neither an object nor an array means.
type role uint8

const (
	roleNone role = iota
	roleNumber

	// Text that the model has generated.
	roleText
	roleName             // of a tool that the model calls
	roleReasoning        // some servers send the same reasoning text under
	roleReasoningContent // both of these names
	roleArgs             // arguments of a tool: a string, or all strings inside any other value

	rolePacked // a string that holds a JSON value in base64

	// Words.
	roleFault // an error, which may also be an object
	roleFaultType
	roleFaultCode
	roleType
	roleCode
	roleFinish    // the reason why an answer has ended
	roleTier      // the service tier
	roleUsageTier // a service tier whose usual value says nothing
	roleSpeed     // a speed, which has prices like a service tier
	roleEntryKind
	roleID     // of the response
	roleStatus // of the response
)

const (
	textRoles = 1<<roleText | 1<<roleName | 1<<roleReasoning | 1<<roleReasoningContent | 1<<roleArgs
	wordRoles = 1<<roleFault | 1<<roleFaultType | 1<<roleFaultCode | 1<<roleType | 1<<roleCode | 1<<roleFinish | 1<<roleTier |
		1<<roleUsageTier | 1<<roleSpeed | 1<<roleEntryKind | 1<<roleID | 1<<roleStatus
)

// is reports whether the node has a role.
func (n *node) is(r role) bool { return n != nil && n.role == r }

func (n *node) isText() bool { return n != nil && textRoles>>n.role&1 != 0 }

func (n *node) isWord() bool { return n != nil && wordRoles>>n.role&1 != 0 }

// Nodes of values that have no members.
var (
	textNode   = &node{role: roleText}
	nameNode   = &node{role: roleName}
	argsNode   = &node{role: roleArgs}
	tierNode   = &node{role: roleTier}
	finishNode = &node{role: roleFinish}
	typeNode   = &node{role: roleType}
	idNode     = &node{role: roleID}
	statusNode = &node{role: roleStatus}
	kindNode   = &node{role: roleEntryKind}
	countNode  = count(entryTokens)
)

var faultNode = &node{role: roleFault, members: members{"type": {role: roleFaultType}, "code": {role: roleFaultCode}}}

// count returns the node of a whole number.
func count(n number) *node { return &node{role: roleNumber, number: n} }

// What the answers of all APIs have in common, because a proxy may answer in the words of another provider than it was
// asked in: the dialects add the names that they read. Names that only one provider uses are read in its own answers
// alone: another server may echo there what the client has sent.
var (
	commonTop     = &node{members: members{}}                 // a whole answer, or an event
	commonUsage   = &node{members: members{}}                 // its usage
	commonMessage = &node{members: members{}}                 // a message in it, or a piece of one
	commonWrapped = &node{role: roleText, members: members{}} // its member response: OpenAI's response, a proxy's wrapper, or Ollama's text
)

// commonNames are the names that a dialect adds to the answers of all APIs.
type commonNames struct{ top, usage, message, wrapped members }

// add adds the names of a dialect.
func (c *commonNames) add() {
	maps.Copy(commonTop.members, c.top)
	maps.Copy(commonUsage.members, c.usage)
	maps.Copy(commonMessage.members, c.message)
	maps.Copy(commonWrapped.members, c.wrapped)
}

// extensions are the nodes that have the members of another one, and more.
var extensions []extension

type extension struct{ node, base *node }

// extend returns a node of an object with the members of base and with more. A name that both have gets its node from more.
func extend(base *node, more members) *node {
	n := &node{members: maps.Clone(more)}
	extensions = append(extensions, extension{n, base})
	return n
}

// completeNodes adds the members of their bases to all extensions. A base that is an extension itself comes first.
func completeNodes() {
	for _, e := range extensions {
		all := maps.Clone(e.base.members)
		maps.Copy(all, e.node.members)
		e.node.members = all
	}
}

// An eventKind is what the type of an event says of it.
type eventKind uint8

const (
	eventUntyped eventKind = iota
	eventOther
	eventBlock // a block of an answer begins
	eventEnd   // nothing that matters follows
	eventError
	eventSilent // what looks like text is sound
)

// eventKinds are the types of events that matter.
var eventKinds = map[string]eventKind{"error": eventError}

// eventKindOf returns what the type of an event says of it.
func eventKindOf(name []byte) eventKind {
	if len(name) == 0 {
		return eventUntyped
	}
	return max(eventKinds[string(name)], eventOther)
}
