package trial

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/replicate/cert"
	"berth.dev/berth/internal/replicate/stream"
	"berth.dev/berth/internal/replicate/wire"
)

// Side is one of the two nodes.
type Side struct {
	Identity cert.Identity
	Pool     provision.PoolRef
	// Provisioner of the pool, and its Replicator.
	Provisioner provision.Provisioner
	Copies      provision.Replicator
	// Tree is the filesystem of volumes that are trees, empty for devices.
	Tree string
	Data Data
	// Pace, if not nil, returns what holds back a stream of the serving node.
	Pace func(wire.Want) stream.Pacer
	// Note is told of what happens: a line for people.
	Note func(line string)
	Now  func() time.Time
}

// Data writes and compares the data of a volume that may be mounted.
type Data interface {
	// Fill writes so many bytes that follow from a seed, and changes nothing else.
	Fill(ctx context.Context, v provision.Volume, seed uint64, bytes int64) error
	// Compare returns how many bytes are there, and an error unless they are what Fill wrote with these seeds, all of it
	// and nothing else.
	Compare(ctx context.Context, v provision.Volume, seeds ...uint64) (bytes int64, err error)
}

// The epochs and points of a trial. The serving node writes in the first epoch, and the fetching one opens
// its copy in the second.
var (
	first  = lineage.Epoch{Number: 1, ID: "trial-1"}
	second = lineage.Epoch{Number: 2, ID: "trial-2"}
	whole  = lineage.Point{Epoch: first, Seq: 1}
	change = lineage.Point{Epoch: first, Seq: 2}
)

// Volume returns the name of the volume that a node serves.
func Volume(node string) string {
	sum := sha256.Sum256([]byte(node))
	return fmt.Sprintf("vol-check-%x", sum[:4])
}

// packing is how many frames are packed at once.
const packing = 2

// absent returns an error if the volume of a trial exists already: another one runs, or was killed.
func (s Side) absent(ctx context.Context, id string) error {
	switch _, err := s.Provisioner.Get(ctx, id); {
	case err == nil:
		return fmt.Errorf("%w: volume %s is in a pool of node %s already: another check runs, or was killed; delete it with --delete", provision.ErrConflict, id, s.Identity.Node)
	case !errors.Is(err, provision.ErrNotFound):
		return err
	}
	return nil
}

// open makes the copy one that may be written, and returns the volume.
func (s Side) open(ctx context.Context, id string, p ownership.Promise) (v provision.Volume, err error) {
	if err := s.Copies.Mark(ctx, id, provision.Mark{Promise: p, Opened: p.Epoch}); err != nil {
		return v, err
	}
	return s.Copies.Writable(ctx, id)
}

// Delete removes the volume of a trial that a node served. One that is gone is no error.
func (s Side) Delete(ctx context.Context, of string) error {
	err := s.Provisioner.Delete(ctx, Volume(of))
	if errors.Is(err, provision.ErrNotFound) {
		return nil
	}
	return err
}

// leave deletes the volume at the end of a trial, also of one whose caller gave up.
func (s Side) leave(ctx context.Context, of string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if err := s.Delete(ctx, of); err != nil {
		return fmt.Errorf("volume %s is left over; delete it with --delete: %w", Volume(of), err)
	}
	return nil
}
