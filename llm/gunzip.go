package llm

import (
	"compress/gzip"
	"io"
)

// gunzip unpacks what is written to it, on a goroutine that begins with the first
// write, and ends with stop.
type gunzip struct {
	input   *io.PipeWriter // nil before the first write
	ended   chan struct{}
	stopped bool
}

// write unpacks a piece. What comes after something that is not gzip is ignored, and
// so is what comes after stop.
func (g *gunzip) write(p []byte, into func([]byte)) {
	if g.stopped {
		return
	}
	if g.input == nil {
		var output *io.PipeReader
		output, g.input = io.Pipe()
		g.ended = make(chan struct{})
		go g.run(output, into)
	}
	g.input.Write(p)
}

// stop returns when all that was written is unpacked.
func (g *gunzip) stop() {
	g.stopped = true
	if g.input != nil {
		g.input.Close()
		<-g.ended
	}
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
