package stream_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync"

	"berth.dev/berth/internal/replicate/wire"
)

// raw is a frame as it is on the wire.
type raw struct {
	head    [wire.HeaderLen]byte
	payload []byte
}

func (r raw) kind() wire.Kind { return wire.Kind(r.head[0]) }

// frameOf returns a frame with a sum of 0.
func frameOf(m wire.Message) raw {
	payload, err := wire.Encode(m)
	if err != nil {
		panic(err)
	}
	return frameWith(wire.Header{Kind: wire.KindOf(m), Length: uint32(len(payload)), Raw: uint32(len(payload))}, payload)
}

func frameWith(h wire.Header, payload []byte) (r raw) {
	h.Put(r.head[:])
	r.payload = payload
	return r
}

// relay stands between the two ends and has the keys of both: it plays a peer that is what its
// certificate says, and sends what it should not.
type relay struct {
	// edit makes of each frame of the sender those that the receiver gets; nil is the end of the link.
	edit func(n int, f raw) []raw
	// resum gives each frame the sum that the receiver expects.
	resum  bool
	packer *wire.Packer
	// seen are the sender's frames.
	seen []raw
}

// between puts the relay between the ends.
func (r *relay) between(ctx context.Context, e *ends) (wait func()) {
	toSender, toReceiver := net.Conn(nil), net.Conn(nil)
	r.packer = e.packer
	e.near, toSender = net.Pipe()
	toReceiver, e.far = net.Pipe()
	config, err := e.beta.Client("alpha")
	if err != nil {
		panic(err)
	}
	sender, receiver := tls.Client(toSender, config), tls.Server(toReceiver, e.alpha.Server())
	var group sync.WaitGroup
	group.Go(func() {
		defer toSender.Close()
		defer toReceiver.Close()
		if receiver.HandshakeContext(ctx) != nil || sender.HandshakeContext(ctx) != nil {
			return
		}
		group.Go(func() {
			_, _ = io.Copy(sender, receiver)
			_ = toSender.Close()
		})
		r.forward(sender, receiver)
	})
	return group.Wait
}

func (r *relay) forward(from io.Reader, to io.Writer) {
	var chain wire.Chain
	for n := 0; ; n++ {
		f, err := readRaw(from)
		if err != nil {
			return
		}
		r.seen = append(r.seen, f)
		out := r.edit(n, f)
		if out == nil {
			return
		}
		for _, f := range out {
			if r.resum {
				f, chain = r.resummed(f, chain)
			}
			if _, err := to.Write(append(f.head[:], f.payload...)); err != nil {
				return
			}
		}
	}
}

func readRaw(from io.Reader) (f raw, err error) {
	if _, err := io.ReadFull(from, f.head[:]); err != nil {
		return raw{}, err
	}
	h, err := wire.ParseHeader(&f.head)
	if err != nil {
		return raw{}, err
	}
	f.payload = make([]byte, h.Length)
	_, err = io.ReadFull(from, f.payload)
	return f, err
}

// resummed gives a frame the sum that follows on chain. A payload that does not unpack keeps any sum.
func (r *relay) resummed(f raw, chain wire.Chain) (raw, wire.Chain) {
	h, err := wire.ParseHeader(&f.head)
	if err != nil {
		return f, chain
	}
	payload := f.payload
	if h.Packed {
		payload = make([]byte, h.Raw)
		if r.packer.Unpack(payload, f.payload) != nil {
			return f, chain
		}
	}
	chain = chain.Next(f.head[:], payload)
	h.Sum = chain.Sum()
	h.Put(f.head[:])
	return f, chain
}

// offered returns the frame with its offer changed, and any other frame as it is.
func offered(f raw, change func(*wire.Offer)) raw {
	return changed(f, func(o wire.Offer) wire.Message {
		change(&o)
		return o
	})
}

// changed returns the frame with another message, if it holds an M.
func changed[M wire.Message](f raw, change func(M) wire.Message) raw {
	if f.kind() == wire.KindData {
		return f
	}
	m, err := wire.Decode(f.kind(), bytes.Clone(f.payload))
	if err != nil {
		panic(err)
	}
	if m, ok := m.(M); ok {
		return frameOf(change(m))
	}
	return f
}

// flipping changes one bit of what is written through it.
type flipping struct {
	net.Conn
	at, bit int
}

func (f *flipping) Write(b []byte) (int, error) {
	if f.at >= 0 && f.at < len(b) {
		b = bytes.Clone(b)
		b[f.at] ^= 1 << f.bit
	}
	f.at -= len(b)
	return f.Conn.Write(b)
}
