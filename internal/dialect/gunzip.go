package dialect

import (
	"compress/gzip"
	"io"
)

// gunzip decompresses what is written to it, on a goroutine that starts with the first write and
// ends with stop.
type gunzip struct {
	input   *io.PipeWriter // nil before the first write
	ended   chan struct{}
	stopped bool
}

// write decompresses a piece. It ignores everything after an error in the data, and after stop.
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

// stop returns when everything that was written has been decompressed.
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
