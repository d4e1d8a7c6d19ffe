package wire

import (
	"github.com/klauspost/compress/zstd"
)

// Packer packs and unpacks single frames. Its methods may be called at the same time.
type Packer struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

// NewPacker returns a Packer that works on as many frames at a time as workers says; other calls wait. A
// process needs one for all of its streams: each worker keeps some hundred KiB.
func NewPacker(workers int) (*Packer, error) {
	encoder, err := zstd.NewWriter(nil,
		zstd.WithEncoderLevel(zstd.SpeedFastest), // a level more costs twice the time for a tenth of the bytes
		zstd.WithEncoderConcurrency(workers),
		zstd.WithEncoderCRC(false), // the frame has a sum of the unpacked bytes
		zstd.WithWindowSize(MaxData),
		zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, err
	}
	decoder, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(workers),
		zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(MaxData),
		zstd.WithDecoderMaxMemory(MaxData),
		zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, err
	}
	return &Packer{encoder: encoder, decoder: decoder}, nil
}

// Pack appends raw, packed, to dst.
func (p *Packer) Pack(dst, raw []byte) []byte { return p.encoder.EncodeAll(raw, dst) }

// Unpack unpacks a payload into dst, whose length is what the frame's header promises. It never writes
// beyond dst and takes no memory for the rest of what a bomb would unpack to.
func (p *Packer) Unpack(dst, payload []byte) error {
	got, err := p.decoder.DecodeAll(payload, dst[:0:len(dst)])
	switch {
	case err != nil:
		return &Error{Reason: BadPacking, Message: "a frame does not unpack", Cause: err}
	case len(got) != len(dst):
		return Errorf(BadPacking, "a frame unpacks to %d bytes, and its header says %d", len(got), len(dst))
	}
	return nil
}
