package provision

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"time"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

const (
	// MaxHold is how far away the deadline of a hold may be: more than a copy of a large volume takes.
	MaxHold = 24 * time.Hour
	// MaxHolds and MaxPoints bound the record of a copy, which has little room beside the data.
	MaxHolds  = 32
	MaxPoints = 48
)

// Abilities are what streams of a backend can do.
type Abilities struct {
	// Format of the streams: only a backend of the same format can receive one.
	Format string
	// Incremental streams hold the difference to a base. Resumable ones go on where they were cut
	// off. Checksummed ones are checked by the receiver as it applies them.
	Incremental, Resumable, Checksummed bool
}

// Replica is what a node keeps of a replicated volume.
type Replica struct {
	// Copy has the size of the volume in bytes, whether it is a copy or not.
	ownership.Copy
	// Filesystem that the volume was recorded with: see Volume.
	Filesystem string
	// Writable says that the head may be mounted and written.
	Writable bool
	// Snapshots lists the CSI snapshots that are points of the copy, by their ids. A hold without
	// a near end in Copy.Holds stands for each.
	Snapshots map[string]lineage.Point
	// Branches that were put aside.
	Branches []KeptBranch
	// Receiving is what was received half, nil if there is nothing.
	Receiving *Receiving
}

// KeptBranch is data that was written and is not part of the volume.
type KeptBranch struct {
	// Tip is its newest point, and From the newest one that it has in common with the volume; zero
	// if there is none.
	Tip, From lineage.Point
}

// Receiving describes a stream that was received half.
type Receiving struct {
	Base, Target lineage.Point
	// Epoch is the sender's promise, and From its node.
	Epoch lineage.Epoch
	From  string
	// Token for SendRequest.Resume; empty if the stream cannot be resumed. It is the receiver's, and
	// a sender must not trust it.
	Token string
}

// Mark is what changes in a record. Parts that are zero stay as they are.
type Mark struct {
	// Promise replaces the present one, even a newer one: see ownership.Persist.
	Promise ownership.Promise
	// Opened and Closed only grow: see ownership.Open and ownership.Close.
	Opened, Closed lineage.Epoch
	// Fate says whether the copy is to be destroyed.
	Fate *Fate
}

// Fate of a copy: see ownership.Copy. The zero Fate takes it out of the trash.
type Fate struct {
	Condemned, Quarantined bool
	DestroyAt              time.Time
}

// PointRequest asks for a point.
type PointRequest struct {
	Volume string
	Point  lineage.Point
	// Snapshot is the id of the CSI snapshot that the point is; empty for none. It keeps the point
	// until Release.
	Snapshot string
	// Limits of the pool's use.
	Limits Limits
}

// SendRequest asks for a stream.
type SendRequest struct {
	Volume string
	// Target is the point to send, as the difference to Base; a zero Base sends it in full.
	Base, Target lineage.Point
	// Resume is the token of the receiver that has a part of the stream already; empty for none. It is a
	// peer's word: a token that names another point is refused.
	Resume string
}

// StreamHeader describes a stream. It comes from another node, and is checked before it is used.
type StreamHeader struct {
	Volume string
	ownership.Stream
	// From is the sender's node.
	From string
	// Format of the stream: see Abilities.
	Format string
	// Filesystem that the sender's volume is recorded with.
	Filesystem string
	// Snapshots are the ids of the CSI snapshots that the target is.
	Snapshots []string
	// Resume is the receiver's own token, from which on the stream goes on; empty for a whole stream.
	Resume string
	// Limits of the pool's use. The receiver sets them itself.
	Limits Limits
}

// NoEnd is the deadline of a hold that stands for a CSI snapshot.
var NoEnd = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// Header returns the header of the stream that a request asks of a copy. The error is ErrNotFound
// if the copy does not hold both points, and ErrConflict if the target is not newer than the base.
func (r Replica) Header(a Abilities, s SendRequest) (StreamHeader, error) {
	h := StreamHeader{
		Volume: s.Volume, Stream: ownership.Stream{Promise: r.Promise, Base: s.Base, Target: s.Target, Size: r.Size},
		Format: a.Format, Filesystem: r.Filesystem, Resume: s.Resume,
	}
	for id, p := range r.Snapshots {
		if p == s.Target {
			h.Snapshots = append(h.Snapshots, id)
		}
	}
	switch {
	case !r.Has(s.Target) || !s.Base.IsZero() && !r.Has(s.Base):
		return h, fmt.Errorf("%w: volume %s does not hold both points %v and %v", ErrNotFound, s.Volume, s.Base, s.Target)
	case !s.Base.IsZero() && s.Base.Seq >= s.Target.Seq:
		return h, fmt.Errorf("%w: point %v of volume %s is not newer than %v", ErrConflict, s.Target, s.Volume, s.Base)
	}
	return h, nil
}

const (
	maxSeq    = 1 << 60
	maxTags   = 16
	maxToken  = 4096
	maxFormat = 64
	maxLosses = 8 // as package ownership keeps
)

var (
	// An epoch's id is random, and the record beside the data must keep it byte for byte.
	epochID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,63}$`)
	// The name of a node, or the id of a boot.
	nodeName = regexp.MustCompile(`^[A-Za-z0-9.-]{0,253}$`)
)

// Check returns ErrInvalid for a header that no stream can have.
func (h StreamHeader) Check() error {
	if err := CheckID(h.Volume); err != nil {
		return err
	}
	switch {
	case h.Size <= 0 || h.Size > MaxSize:
		return fmt.Errorf("%w: volume %s of %d bytes", ErrInvalid, h.Volume, h.Size)
	case !nodeName.MatchString(h.From):
		return fmt.Errorf("%w: the stream of volume %s comes from node %.80q", ErrInvalid, h.Volume, h.From)
	case len(h.Snapshots) > maxTags || len(h.Resume) > maxToken || len(h.Format) > maxFormat:
		return fmt.Errorf("%w: the header of a stream of volume %s is too long", ErrInvalid, h.Volume)
	case h.Filesystem != "" && !slices.Contains(append(Filesystems(), Raw), h.Filesystem):
		return fmt.Errorf("%w: filesystem %.80q of volume %s", ErrInvalid, h.Filesystem, h.Volume)
	case h.Promise.Lineage.Head() != h.Promise.Epoch:
		return fmt.Errorf("%w: the lineage in the promise for volume %s does not end in its epoch", ErrInvalid, h.Volume)
	}
	for _, s := range h.Snapshots {
		if err := CheckSnapshotID(s); err != nil {
			return err
		}
	}
	if err := checkFrom(h.Base); err != nil {
		return err
	}
	return cmp.Or(CheckPoint(h.Target), CheckPromise(h.Promise))
}

// CheckPoint returns ErrInvalid for the name of a point that no node gives.
func CheckPoint(p lineage.Point) error {
	if p.Seq == 0 || p.Seq > maxSeq {
		return fmt.Errorf("%w: %d is not the number of a point", ErrInvalid, p.Seq)
	}
	return CheckEpoch(p.Epoch)
}

// CheckEpoch returns ErrInvalid for the name of an epoch that no node gives.
func CheckEpoch(e lineage.Epoch) error {
	if e.Number == 0 || e.Number > maxSeq || !epochID.MatchString(e.ID) {
		return fmt.Errorf("%w: %d/%.80q is no epoch", ErrInvalid, e.Number, e.ID)
	}
	return nil
}

// checkFrom is CheckPoint for a point that may be zero.
func checkFrom(p lineage.Point) error {
	if p.IsZero() {
		return nil
	}
	return CheckPoint(p)
}

// CheckPromise returns ErrInvalid for a promise that has no epoch, or cannot be kept.
func CheckPromise(p ownership.Promise) error {
	if len(p.Lineage) > lineage.MaxBranches || len(p.Losses) > maxLosses || !nodeName.MatchString(p.Primary) || !nodeName.MatchString(p.Boot) {
		return fmt.Errorf("%w: the promise of epoch %d/%.80q cannot be kept", ErrInvalid, p.Epoch.Number, p.Epoch.ID)
	}
	for _, b := range p.Lineage {
		if err := cmp.Or(CheckEpoch(b.Epoch), checkFrom(b.From)); err != nil {
			return err
		}
	}
	for _, l := range p.Losses {
		if err := cmp.Or(CheckEpoch(l.Epoch), checkFrom(l.Kept), checkFrom(l.Known)); err != nil {
			return err
		}
	}
	return CheckEpoch(p.Epoch)
}

// Check returns ErrInvalid for a request that can never be met.
func (r PointRequest) Check() error {
	if r.Snapshot != "" {
		if err := CheckSnapshotID(r.Snapshot); err != nil {
			return err
		}
	}
	return cmp.Or(CheckID(r.Volume), CheckPoint(r.Point), r.Limits.check())
}

// Check returns ErrInvalid for a mark that cannot be kept.
func (m Mark) Check() error {
	if m.Promise.Epoch.IsZero() != (len(m.Promise.Lineage) == 0) {
		return fmt.Errorf("%w: a promise has an epoch and its lineage", ErrInvalid)
	}
	if !m.Promise.Epoch.IsZero() {
		if err := CheckPromise(m.Promise); err != nil {
			return err
		}
	}
	for _, e := range []lineage.Epoch{m.Opened, m.Closed} {
		if err := CheckEpoch(e); err != nil && !e.IsZero() {
			return err
		}
	}
	return nil
}
