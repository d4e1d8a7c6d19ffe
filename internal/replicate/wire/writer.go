package wire

import "io"

// Writer writes the frames of one direction. After an error it must not be used again.
type Writer struct {
	to     io.Writer
	packer *Packer
	chain  Chain
	packed []byte
}

// NewWriter returns a Writer of frames into to, of which none was written yet.
func NewWriter(to io.Writer, packer *Packer) *Writer { return &Writer{to: to, packer: packer} }

// Chain returns the chain after the last frame.
func (w *Writer) Chain() Chain { return w.chain }

// Message writes a message as one frame.
func (w *Writer) Message(m Message) error {
	payload, err := Encode(m)
	if err != nil {
		return err
	}
	frame := make([]byte, HeaderLen, HeaderLen+len(payload))
	return w.write(append(frame, payload...), Header{Kind: m.kind(), Length: uint32(len(payload)), Raw: uint32(len(payload))}, payload)
}

// Packing is data that may go packed.
type Packing struct {
	frame []byte
	raw   []byte
	head  Header
}

// Wire is the length of the payload on the wire, in bytes.
func (p Packing) Wire() int { return int(p.head.Length) }

// Raw is the length of the payload unpacked, in bytes.
func (p Packing) Raw() int { return len(p.raw) }

// Prepare makes a frame of the data that follows HeaderLen free bytes in buf, so that nothing is
// copied: at least one byte, at most MaxData. If pack is true and packing makes it shorter, the
// frame is packed. The frame is in buf or in the Writer until the next call.
func (w *Writer) Prepare(buf []byte, pack bool) Packing {
	raw := buf[HeaderLen:]
	head := Header{Kind: KindData, Length: uint32(len(raw)), Raw: uint32(len(raw))}
	if pack {
		w.packed = w.packer.Pack(append(w.packed[:0], make([]byte, HeaderLen)...), raw)
		if packed := len(w.packed) - HeaderLen; packed < len(raw) {
			head.Packed, head.Length = true, uint32(packed)
			return Packing{frame: w.packed, raw: raw, head: head}
		}
	}
	return Packing{frame: buf, raw: raw, head: head}
}

// Data writes what Prepare made.
func (w *Writer) Data(p Packing) error { return w.write(p.frame, p.head, p.raw) }

func (w *Writer) write(frame []byte, head Header, raw []byte) error {
	head.Put(frame)
	next := w.chain.Next(frame, raw)
	head.Sum = next.Sum()
	head.Put(frame)
	w.chain = next
	_, err := w.to.Write(frame)
	return err
}
