package wire

import (
	"io"
)

// Frame is one frame, as it was unpacked and compared with its sum.
type Frame struct {
	Kind    Kind
	Payload []byte
	// Wire is the length of the payload on the wire, in bytes.
	Wire int
}

// Reader reads the frames of one direction. It holds at most MaxData bytes beside the caller's.
type Reader struct {
	from   io.Reader
	packer *Packer
	chain  Chain
	packed []byte
}

// NewReader returns a Reader of the frames in from, of which none was read yet.
func NewReader(from io.Reader, packer *Packer) *Reader { return &Reader{from: from, packer: packer} }

// Chain returns the chain after the last frame.
func (r *Reader) Chain() Chain { return r.chain }

// Next reads one frame. Its payload is in buf, of MaxData bytes where data may come and of MaxMessage
// bytes elsewhere. The error is an *Error about the bytes, or the error of the underlying Reader: io.EOF
// before the first byte of a frame, io.ErrUnexpectedEOF within one.
func (r *Reader) Next(buf []byte) (Frame, error) {
	var head [HeaderLen]byte
	if _, err := io.ReadFull(r.from, head[:]); err != nil {
		return Frame{}, err
	}
	h, err := ParseHeader(&head)
	if err != nil {
		return Frame{}, err
	}
	if int(h.Raw) > len(buf) {
		return Frame{}, Errorf(OutOfTurn, "a frame of kind %s has %d bytes where a message must come", h.Kind, h.Raw)
	}
	payload := buf[:h.Raw]
	if err := r.fill(payload, h); err != nil {
		if err == io.EOF { //nolint:errorlint // io.ReadFull returns it bare
			err = io.ErrUnexpectedEOF
		}
		return Frame{}, err
	}
	next := r.chain.Next(head[:], payload)
	if next.Sum() != h.Sum {
		return Frame{}, Errorf(WrongSum, "a frame of kind %s was changed, or is not the one that follows", h.Kind)
	}
	r.chain = next
	return Frame{Kind: h.Kind, Payload: payload, Wire: int(h.Length)}, nil
}

func (r *Reader) fill(payload []byte, h Header) error {
	if !h.Packed {
		_, err := io.ReadFull(r.from, payload)
		return err
	}
	if r.packed == nil {
		r.packed = make([]byte, MaxData)
	}
	packed := r.packed[:h.Length]
	if _, err := io.ReadFull(r.from, packed); err != nil {
		return err
	}
	return r.packer.Unpack(payload, packed)
}
