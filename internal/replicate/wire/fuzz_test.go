package wire_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"berth.dev/berth/internal/replicate/wire"
)

// What is read is written again as the same bytes: there is one way to say each thing.
func FuzzMessage(f *testing.F) {
	for _, m := range messages {
		b, err := wire.Encode(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(wire.KindOf(m)), b)
		f.Add(uint8(wire.KindOf(m)), b[:len(b)/2])
	}
	f.Fuzz(func(t *testing.T, kind uint8, b []byte) {
		before := bytes.Clone(b)
		m, err := wire.Decode(wire.Kind(kind), b)
		if err != nil {
			if wire.ReasonOf(err) == "" {
				t.Fatalf("an error that is no Error: %v", err)
			}
			return
		}
		again, err := wire.Encode(m)
		if err != nil && len(b) <= wire.MaxMessage {
			t.Fatalf("%+v was read and cannot be written: %v", m, err)
		}
		if err == nil && !bytes.Equal(again, before) {
			t.Fatalf("%x was read, and %x would be written", before, again)
		}
	})
}

func FuzzHeader(f *testing.F) {
	for _, h := range []wire.Header{
		{Kind: wire.KindData, Length: 1, Raw: 1}, {Kind: wire.KindData, Packed: true, Length: 1, Raw: wire.MaxData, Sum: 7},
		{Kind: wire.KindAlive}, {Kind: wire.KindOffer, Length: wire.MaxMessage, Raw: wire.MaxMessage},
	} {
		b := make([]byte, wire.HeaderLen)
		h.Put(b)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) != wire.HeaderLen {
			return
		}
		h, err := wire.ParseHeader((*[wire.HeaderLen]byte)(b))
		if err != nil {
			if wire.ReasonOf(err) == "" {
				t.Fatalf("an error that is no Error: %v", err)
			}
			return
		}
		if h.Length > wire.MaxData || h.Raw > wire.MaxData {
			t.Fatalf("%+v is longer than any frame may be", h)
		}
		again := bytes.Repeat([]byte{0xFF}, wire.HeaderLen)
		h.Put(again)
		if !bytes.Equal(again, b) {
			t.Fatalf("%x was read, and %x would be written", b, again)
		}
	})
}

func FuzzFrames(f *testing.F) {
	b := written(f)
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Add(b[30:])
	p := packer(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		all, err := frames(b, p)
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && wire.ReasonOf(err) == "" {
			t.Fatalf("an error that is neither an Error nor an end: %v", err)
		}
		for _, frame := range all {
			if len(frame.Payload) > wire.MaxData {
				t.Fatalf("a frame of %d bytes", len(frame.Payload))
			}
		}
	})
}

func FuzzUnpack(f *testing.F) {
	p := packer(f)
	f.Add([]byte("berth"), uint32(5))
	f.Add(p.Pack(nil, make([]byte, 1000)), uint32(1000))
	f.Add(p.Pack(nil, make([]byte, 1<<20)), uint32(wire.MaxData))
	f.Fuzz(func(t *testing.T, payload []byte, size uint32) {
		size %= wire.MaxData + 1
		guard := append(make([]byte, size), 0xAA)
		if err := p.Unpack(guard[:size], payload); err != nil && wire.ReasonOf(err) != wire.BadPacking {
			t.Fatalf("another error: %v", err)
		}
		if guard[size] != 0xAA {
			t.Fatal("a payload was written beyond its end")
		}
	})
}
