package llm

import (
	"compress/gzip"
	"io"
	"iter"
)

// gunzip unpacks what is written to it, as far as it has come. It runs within write
// and stop, never beside them. After a write, stop must be called.
type gunzip struct {
	into  func([]byte)
	input []byte
	more  func(struct{}) bool // waits for input; false where no more comes
	ended bool
	step  func() (struct{}, bool)
	halt  func()
}

// write unpacks a piece. What comes after something that is not gzip is ignored.
func (g *gunzip) write(p []byte) {
	if g.step == nil {
		g.step, g.halt = iter.Pull(g.run)
	}
	g.input = p
	g.step()
	g.input = nil
}

// stop unpacks what is left.
func (g *gunzip) stop() {
	if g.halt != nil {
		g.halt()
	}
}

func (g *gunzip) run(more func(struct{}) bool) {
	g.more = more
	z, err := gzip.NewReader(g)
	if err != nil {
		return
	}
	buf := make([]byte, 4<<10)
	for err == nil {
		var n int
		n, err = z.Read(buf)
		g.into(buf[:n])
	}
}

// Read gives the input to the one that unpacks it.
func (g *gunzip) Read(p []byte) (int, error) {
	for len(g.input) == 0 {
		g.ended = g.ended || !g.more(struct{}{})
		if g.ended {
			return 0, io.EOF
		}
	}
	n := copy(p, g.input)
	g.input = g.input[n:]
	return n, nil
}
