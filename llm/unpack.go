package llm

// unpacker has a value read that is packed into a string as base64, in pieces split
// anywhere.
type unpacker struct {
	into  *values
	bits  uint32
	count int // of bits
}

// write reads characters of base64. What is none is passed over.
func (u *unpacker) write(b []byte) {
	var plain [96]byte
	n := 0
	for _, c := range b {
		v := sextet(c)
		if v < 0 {
			continue
		}
		u.bits, u.count = u.bits<<6|uint32(v), u.count+6
		if u.count < 8 {
			continue
		}
		u.count -= 8
		plain[n] = byte(u.bits >> u.count)
		if n++; n == len(plain) {
			u.into.read(plain[:])
			n = 0
		}
	}
	u.into.read(plain[:n])
}

// end ends the string.
func (u *unpacker) end() {
	u.into.reset()
	u.bits, u.count = 0, 0
}

// sextet returns the six bits that a character of base64 stands for, or -1.
func sextet(c byte) int {
	switch {
	case c >= 'A' && c <= 'Z':
		return int(c - 'A')
	case c >= 'a' && c <= 'z':
		return int(c-'a') + 26
	case c >= '0' && c <= '9':
		return int(c-'0') + 52
	case c == '+':
		return 62
	case c == '/':
		return 63
	}
	return -1
}
