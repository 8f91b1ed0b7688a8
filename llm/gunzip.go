package llm

import (
	"compress/gzip"
	"io"
)

// gunzip unpacks what is written to it, on a goroutine of its own, which ends with
// stop.
type gunzip struct {
	input *io.PipeWriter
	ended chan struct{}
}

func newGunzip(into func([]byte)) *gunzip {
	output, input := io.Pipe()
	g := &gunzip{input, make(chan struct{})}
	go g.run(output, into)
	return g
}

// write unpacks a piece. What comes after something that is not gzip is ignored.
func (g *gunzip) write(p []byte) { g.input.Write(p) }

// stop returns when all that was written is unpacked.
func (g *gunzip) stop() {
	g.input.Close()
	<-g.ended
}

func (g *gunzip) run(packed *io.PipeReader, into func([]byte)) {
	defer close(g.ended)
	defer packed.Close()
	z, err := gzip.NewReader(packed)
	buf := make([]byte, 4<<10)
	for err == nil {
		var n int
		n, err = z.Read(buf)
		into(buf[:n])
	}
}
