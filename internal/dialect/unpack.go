package dialect

// unpacker decodes base64 in pieces split anywhere, and passes the JSON value in it on.
type unpacker struct {
	into  *values // reads the JSON value
	bits  uint32
	count int // the number of bits
}

// write decodes characters of base64, and ignores any others.
func (u *unpacker) write(b []byte) {
	var plain [96]byte
	n := 0
	for _, c := range b {
		v := sextets[c]
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
