package guest

import (
	"errors"
	"io"

	"berth.dev/berth/lab/internal/guest/wire"
)

// input sends a session's input, never more than the guest allows. Errors show
// on the receiving side of the session.
type input struct {
	out    *wire.Writer
	window chan struct{} // holds one for each frame under way
	ended  chan struct{}
}

func newInput(w io.Writer) *input {
	return &input{
		out:    wire.NewWriter(w),
		window: make(chan struct{}, wire.InputWindow),
		ended:  make(chan struct{}),
	}
}

// end stops the sending; whoever reads the source notices at its next frame.
func (i *input) end() { close(i.ended) }

// taken makes room for one more frame.
func (i *input) taken() {
	select {
	case <-i.window:
	default: // the guest is wrong; more room than there is cannot be had
	}
}

// copy sends all of r and then its end; a nil r is at its end.
func (i *input) copy(r io.Reader) {
	if r != nil {
		buffer := make([]byte, wire.Chunk)
		if _, err := io.CopyBuffer(struct{ io.Writer }{i}, struct{ io.Reader }{r}, buffer); err != nil {
			return
		}
	}
	_ = i.out.Write(wire.Stdin, nil)
}

var errEnded = errors.New("the session has ended")

// Write sends one frame when there is room for it.
func (i *input) Write(p []byte) (int, error) {
	select {
	case i.window <- struct{}{}:
		return len(p), i.out.Write(wire.Stdin, p)
	case <-i.ended:
		return 0, errEnded
	}
}

// resize sends the sizes of the terminal; nil never sends one.
func (i *input) resize(sizes <-chan wire.Window) {
	for {
		select {
		case size := <-sizes:
			_ = i.out.WriteJSON(wire.Resize, size)
		case <-i.ended:
			return
		}
	}
}
