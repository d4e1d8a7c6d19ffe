package copies

import (
	"encoding/json"
	"errors"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/replicate/wire"
)

// encode returns a header as it travels: without the parts that decode does not believe.
func encode(h provision.StreamHeader) ([]byte, error) {
	h = received(h, "")
	text, err := json.Marshal(h)
	if err == nil && len(text) > wire.MaxPromise {
		err = wire.Errorf(wire.Failed, "the history of volume %s has %d bytes, and a stream carries %d at most", h.Volume, len(text), wire.MaxPromise)
	}
	return text, err
}

// decode returns the header of an offer. The parts that are the receiver's own are left empty, whatever the
// sender wrote there. So are the ids of CSI snapshots: no object of the API vouches for them, and points with
// invented ids would never be dropped.
func decode(o wire.Offer) (provision.StreamHeader, error) {
	var h provision.StreamHeader
	if err := json.Unmarshal(o.Promise, &h); err != nil {
		return h, wire.Errorf(wire.BadMessage, "the header of the stream of volume %s cannot be read: %v", o.Volume, err)
	}
	if h.Volume != o.Volume || h.Promise.Epoch != o.Epoch || h.Base != o.Base || h.Target != o.Target || h.Format != o.Format {
		return h, wire.Errorf(wire.WrongStream, "the header names another stream than the offer of volume %s", o.Volume)
	}
	return received(h, o.From), nil
}

// received is a header without the parts that are the receiver's own.
func received(h provision.StreamHeader, from string) provision.StreamHeader {
	h.From, h.Resume, h.Limits, h.Snapshots = from, "", provision.Limits{}, nil
	return h
}

// reasons are those of a pool's errors. An error of another class is a failure of the pool.
var reasons = []struct {
	class  error
	reason wire.Reason
}{
	{provision.ErrNoSpace, wire.PoolFull},
	{provision.ErrInUse, wire.Busy},
	{provision.ErrUnavailable, wire.Busy},    // such as a poold that is replaced: what arrived stays
	{provision.ErrInvalid, wire.WrongSum},    // the bytes are no stream of the pool's: begin anew
	{provision.ErrConflict, wire.WrongBase},  // the copy is not what the receiver asked for: look again
	{provision.ErrNotFound, wire.NoSnapshot}, // the volume or a point is gone: look again
}

// wired returns a pool's error as the one that the other end hears and that stream.After understands.
func wired(err error) error {
	var known *wire.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	for _, r := range reasons {
		if errors.Is(err, r.class) {
			return wire.Errorf(r.reason, "%v", err)
		}
	}
	return wire.Errorf(wire.Failed, "%v", err)
}
