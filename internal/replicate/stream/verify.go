package stream

import (
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/replicate/wire"
)

// Verify decides whether an offer is the stream that this node asked for, before anything else hears of
// it. Peer is the name in the sender's certificate. Half is what the request wants to go on with, nil if
// the stream begins. Verify returns nil or a *wire.Error.
func Verify(want wire.Want, half *Half, peer string, o wire.Offer) error {
	switch {
	case peer != want.From || o.From != want.From || o.To != want.To:
		return wire.Errorf(wire.WrongPeer, "node %s offers a stream from node %s to node %s, and this request was from %s to %s", peer, o.From, o.To, want.To, want.From)
	case o.ID != want.ID:
		return wire.Errorf(wire.WrongStream, "the offer answers another request")
	case o.Volume != want.Volume:
		return wire.Errorf(wire.WrongVolume, "the offer is of volume %s, and volume %s was asked for", o.Volume, want.Volume)
	case o.Base != want.Base:
		return wire.Errorf(wire.WrongBase, "the stream begins at snapshot %s, and this node's newest is %s", o.Base, want.Base)
	case o.Target != want.Target:
		return wire.Errorf(wire.WrongTarget, "the stream ends at snapshot %s, and snapshot %s was asked for", o.Target, want.Target)
	case o.Format != want.Format:
		return wire.Errorf(wire.WrongFormat, "the stream is of format %s, and this node's pool reads %s", o.Format, want.Format)
	}
	if err := verifyEpoch(want.Epoch, o.Epoch); err != nil {
		return err
	}
	return verifyStart(want.Resume, half, o)
}

// verifyEpoch is the part of ownership.Receive that needs no record: of two epochs of one number, one comes from a
// restored backup. An epoch older than the promise may still have what the receiver's history has.
func verifyEpoch(promised, offered lineage.Epoch) error {
	switch {
	case offered.IsZero():
		return wire.Errorf(wire.BadMessage, "the sender names no epoch")
	case offered.Number == promised.Number && offered.ID != promised.ID:
		return wire.Errorf(wire.RivalEpoch, "the sender is in epoch %s, and this node has promised to obey %s", offered, promised)
	}
	return nil
}

func verifyStart(resume wire.Resume, half *Half, o wire.Offer) error {
	switch {
	case half == nil && o.Form == wire.Resumed:
		return wire.Errorf(wire.WrongResume, "the offer is the rest of a stream, and this node has no beginning of one")
	case half == nil:
		return nil
	case o.Form != wire.Resumed || o.Offset != resume.Offset:
		return wire.Errorf(wire.WrongResume, "the offer is %s from byte %d, and this node goes on from byte %d", o.Form, o.Offset, resume.Offset)
	}
	return nil
}

// Continues decides whether a half stream may be continued by the stream to be asked for: only the
// same snapshots of the same volume, from the same node. Another node's bytes for the same snapshots may
// differ. The epoch in which it began may be over: a snapshot stays the same, and the sink asks the rules whether it
// still is one of the volume's. It returns nil or a *wire.Error that says why the half stream is of no use any more.
func Continues(s wire.Stream, half Half) error {
	h := half.Stream
	h.ID, h.Epoch = s.ID, s.Epoch
	switch {
	case h != s:
		return wire.Errorf(wire.WrongResume, "the half stream of volume %s is from node %s, from snapshot %s to %s in format %s; wanted is another", h.Volume, h.From, h.Base, h.Target, h.Format)
	case half.Resume.IsZero():
		return wire.Errorf(wire.WrongResume, "the half stream of volume %s has no bytes", h.Volume)
	}
	return nil
}

// verifyWant decides whether a request may be looked at: it names this node and the peer.
func verifyWant(me, peer string, w wire.Want) error {
	if w.From != me || w.To != peer {
		return wire.Errorf(wire.WrongPeer, "node %s asks for a stream from node %s to node %s, and this is node %s", peer, w.From, w.To, me)
	}
	return nil
}
