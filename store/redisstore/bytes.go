package redisstore

import (
	"encoding/binary"
	"errors"
	"math"
)

// Requests to the script and its answers are encoded as Redis's struct library does it: see the formats
// in lua/.

// writer appends values to bytes.
type writer []byte

func (w *writer) byte(v byte) { *w = append(*w, v) }

// float appends a whole number up to 2^53.
func (w *writer) float(v int64) {
	*w = binary.LittleEndian.AppendUint64(*w, math.Float64bits(float64(v)))
}

// number appends a number as two values, because Lua's numbers are exact up to 2^53 only.
func (w *writer) number(v int64) {
	hi, lo := v/billion, v%billion
	if lo < 0 {
		hi, lo = hi-1, lo+billion
	}
	w.float(hi)
	w.uint32(uint32(lo))
}

func (w *writer) uint32(v uint32) { *w = binary.LittleEndian.AppendUint32(*w, v) }

const billion = 1_000_000_000

func (w *writer) bytes(b []byte) {
	w.uint32(uint32(len(b)))
	*w = append(*w, b...)
}

var errCorrupt = errors.New("ratelimit: redis has answered, or holds, what go-ratelimit has not written")

// reader reads values from bytes, from front to back. After its first error it returns zeros.
type reader struct {
	rest []byte
	err  error
}

var zeros [8]byte

func (r *reader) take(n int) []byte {
	if n > len(r.rest) {
		r.err, r.rest = errCorrupt, nil
		return zeros[:min(n, len(zeros))]
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) byte() byte { return r.take(1)[0] }

// float reads a whole number up to 2^53.
func (r *reader) float() int64 {
	v := math.Float64frombits(binary.LittleEndian.Uint64(r.take(8)))
	if !(v >= -1<<53 && v <= 1<<53) {
		r.err, v = errCorrupt, 0
	}
	return int64(v)
}

func (r *reader) uint32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }

func (r *reader) number() int64 {
	hi := r.float()
	return hi*billion + int64(r.uint32())
}

func (r *reader) bytes() []byte { return r.take(int(r.uint32())) }
