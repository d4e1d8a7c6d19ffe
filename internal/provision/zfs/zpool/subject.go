package zpool

import (
	"fmt"
	"slices"
	"strings"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// Subject is a dataset, or a snapshot of it, that a step destroys, rolls back or puts into the
// trash. ZFS takes its name alone. By that name there may be another one: the facts are up to a
// minute old, and an administrator may have made another dataset since, or imported another
// zpool. So ZFS is asked what bears the name right before the step, and the step is not taken
// unless the answer shows the very dataset of the plan.
//
// ZFS gives each dataset and snapshot a random number, its guid, which a rename keeps. The facts
// do not have the guid of one that Berth made since the last report. Such a one is known by its
// record, and by the guid of the zpool's own filesystem.
//
// A few milliseconds remain between the answer and the step. A channel program (zfs program)
// could look and destroy at once, but it cannot rename a dataset.
type Subject struct {
	// zpool with its guid, and parent that is the pool.
	zpool, zpoolGUID, parent string
	// dataset with its guid and its kind.
	dataset, guid, kind string
	unfinished          bool
	// at is the name of the snapshot; empty for the dataset itself.
	at       string
	snapshot Snapshot
	// empty says that the dataset must hold nothing of its own.
	empty bool
}

// subject is a dataset of Berth's, or its snapshot at if that is not empty.
func subject(z *Facts, dataset, at string) *Subject {
	d := z.Datasets[dataset]
	s := &Subject{
		zpool: z.Name, zpoolGUID: z.guid, parent: d.Parent, dataset: dataset, guid: d.guid, kind: d.kind, unfinished: d.unfinished, at: at,
	}
	if at != "" {
		s.snapshot = *d.snapshots[at]
	}
	return s
}

// SubjectCommand reports what bears the name of a subject now.
func (t Tool) SubjectCommand(s *Subject) run.Command {
	names := []string{s.zpool, s.parent, s.dataset}
	if s.at != "" {
		names = append(names, s.dataset+"@"+s.at)
	}
	kinds := strings.Join([]string{kindFilesystem, kindVolume, kindSnapshot}, ",")
	return t.Command("list", slices.Concat([]string{"-H", "-p", "-t", kinds, "-o", strings.Join(columns, ",")}, slices.Compact(names))...)
}

// Check returns ErrUnavailable unless a report shows the subject.
func (s *Subject) Check(report []byte) error {
	rows, err := Parse(report)
	if err != nil {
		return err
	}
	z, err := New(rows)
	if err != nil {
		return err
	}
	if d := z.Datasets[s.dataset]; !same(s.zpoolGUID, z.guid) || d == nil || !s.isDataset(d) || s.at != "" && !s.isSnapshot(d.snapshots[s.at]) {
		return fmt.Errorf("%w: %s is not the one that was last reported: others changed it", provision.ErrUnavailable, strings.TrimSuffix(s.dataset+"@"+s.at, "@"))
	}
	return nil
}

func (s *Subject) isDataset(d *Dataset) bool {
	return same(s.guid, d.guid) && d.kind == s.kind && d.unfinished == s.unfinished && !(s.empty && d.holds)
}

func (s *Subject) isSnapshot(found *Snapshot) bool {
	return found != nil && same(s.snapshot.guid, found.guid) && found.id == s.snapshot.id && found.base == s.snapshot.base
}

// same compares a guid with the one that was known, if one was.
func same(known, now string) bool { return known == "" || known == now }
