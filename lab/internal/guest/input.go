package guest

import (
	"errors"
	"io"

	"berth.dev/berth/lab/internal/guest/wire"
)

// input sends a session's input, never more than the guest allows. The receiving
// side of the session sees the errors.
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

// end stops the sending; the goroutine that reads the source notices at its next frame.
func (i *input) end() { close(i.ended) }

// taken makes room for one more frame.
func (i *input) taken() {
	select {
	case <-i.window:
	default: // the guest confirmed a frame that was not sent
	}
}

// copy sends all of r and then the end of the input; a nil r is empty.
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

// resize sends the sizes of the terminal. With nil it sends none.
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
