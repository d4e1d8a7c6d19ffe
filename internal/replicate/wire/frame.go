package wire

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// Kind is what a frame holds.
type Kind uint8

// The kinds of frames.
const (
	KindHello Kind = iota + 1
	KindWant
	KindOffer
	KindAccept
	KindRefuse
	KindData
	KindAck
	KindDone
	KindCommitted
	KindAbort
	KindAlive
)

var kindNames = [...]string{
	KindHello: "Hello", KindWant: "Want", KindOffer: "Offer", KindAccept: "Accept", KindRefuse: "Refuse", KindData: "Data",
	KindAck: "Ack", KindDone: "Done", KindCommitted: "Committed", KindAbort: "Abort", KindAlive: "Alive",
}

func (k Kind) known() bool { return k >= KindHello && k <= KindAlive }

func (k Kind) String() string {
	if !k.known() {
		return "Unknown"
	}
	return kindNames[k]
}

const (
	// HeaderLen is the length of a frame's header in bytes.
	HeaderLen = 20
	// MaxData is how many bytes of the stream a frame holds at most. Larger frames copy no faster, and
	// each stream has three of them in memory.
	MaxData = 256 << 10
	// MaxMessage is how long the payload of any other frame may be.
	MaxMessage = 16 << 10

	// summed is the part of the header that goes into the sum.
	summed = 12
	packed = 1
)

// Header is what stands before the payload of a frame.
type Header struct {
	Kind   Kind
	Packed bool
	// Length of the payload on the wire and Raw of the payload unpacked, in bytes. They are equal
	// unless the frame is packed.
	Length, Raw uint32
	Sum         uint64
}

// ParseHeader reads a header and refuses each one that Put does not write.
func ParseHeader(b *[HeaderLen]byte) (Header, error) {
	h := Header{
		Kind: Kind(b[0]), Packed: b[1] == packed,
		Length: binary.BigEndian.Uint32(b[4:]), Raw: binary.BigEndian.Uint32(b[8:]), Sum: binary.BigEndian.Uint64(b[12:]),
	}
	limit := uint32(MaxMessage)
	if h.Kind == KindData {
		limit = MaxData
	}
	switch {
	case !h.Kind.known():
		return Header{}, Errorf(BadFrame, "there is no kind %d", b[0])
	case b[1] > packed || b[2] != 0 || b[3] != 0:
		return Header{}, Errorf(BadFrame, "a frame of kind %s has flags %x", h.Kind, b[1:4])
	case h.Length > limit || h.Raw > limit:
		return Header{}, Errorf(TooLong, "a frame of kind %s has %d bytes, unpacked %d, and may have %d", h.Kind, h.Length, h.Raw, limit)
	case h.Packed && h.Kind != KindData:
		return Header{}, Errorf(BadFrame, "a frame of kind %s is packed", h.Kind)
	case h.Kind == KindData && h.Length == 0:
		return Header{}, Errorf(BadFrame, "a frame of data is empty")
	case h.Packed && h.Length >= h.Raw, !h.Packed && h.Length != h.Raw:
		return Header{}, Errorf(BadFrame, "a frame has %d bytes on the wire and %d unpacked", h.Length, h.Raw)
	}
	return h, nil
}

// Put writes the header into the first HeaderLen bytes of b.
func (h Header) Put(b []byte) {
	clear(b[:4])
	b[0] = byte(h.Kind)
	if h.Packed {
		b[1] = packed
	}
	binary.BigEndian.PutUint32(b[4:], h.Length)
	binary.BigEndian.PutUint32(b[8:], h.Raw)
	binary.BigEndian.PutUint64(b[12:], h.Sum)
}

// Chain is the sum of all frames in one direction. The zero Chain is the one before the first frame.
type Chain struct{ sum uint64 }

// Sum is the sum of the last frame.
func (c Chain) Sum() uint64 { return c.sum }

// Next returns the chain after one more frame: head is its header, of which the sum may be missing.
func (c Chain) Next(head, payload []byte) Chain {
	var d xxhash.Digest
	d.ResetWithSeed(c.sum)
	_, _ = d.Write(head[:summed])
	_, _ = d.Write(payload)
	return Chain{sum: d.Sum64()}
}
