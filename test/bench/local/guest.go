package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
)

// cases are what is measured of volumes. What the socket costs is in the first one
// alone: it is the same for all.
var cases = []struct {
	pool       string
	atOnce     bool
	sides      []string
	operations []string
}{
	{thick, false, []string{bareSide, socketSide, localSide}, []string{create, deletion}},
	{thick, true, []string{bareSide, socketSide}, []string{create, deletion}},
	{thin, false, []string{bareSide, socketSide}, []string{create, snapshot, clone, deletion, deleteSnapshot}},
	{thin, true, []string{bareSide, socketSide}, []string{create, snapshot, clone, deletion, deleteSnapshot}},
}

// measureGuest measures what needs disks, in the machine that this process may
// overwrite the disks of.
func measureGuest(ctx context.Context, o options) (r guestResults, err error) {
	if r.Machine, err = thisMachine(); err != nil {
		return r, err
	}
	if r.Machine.LVM, err = lvmVersion(); err != nil {
		return r, err
	}
	if err := r.measureVolumes(ctx, o); err != nil {
		return r, err
	}
	r.Processes = merge(r.Processes)
	if r.Idle, err = idlePoold(ctx, o); err != nil {
		return r, fmt.Errorf("an idle poold: %w", err)
	}
	return r, nil
}

func (r *guestResults) measureVolumes(ctx context.Context, o options) error {
	for _, c := range cases {
		s := series{pool: c.pool, atOnce: 1, operations: c.operations, names: c.sides}
		if c.atOnce {
			s.atOnce = o.atOnce
		}
		err := onPools(ctx, c.pool, c.sides, func(ctx context.Context, d disksOf) (err error) {
			s.counts = d.counter.Take
			if s.sides, err = sidesOf(ctx, s, d); err != nil {
				return fmt.Errorf("learning what Berth starts: %w", err)
			}
			samples, started, err := s.measure(ctx, o.volumes, o.rounds)
			r.Samples, r.Processes = append(r.Samples, samples...), append(r.Processes, started...)
			return err
		})
		if err != nil {
			return err
		}
	}
	err := onPools(ctx, thick, []string{socketSide}, func(ctx context.Context, d disksOf) (err error) {
		r.Wiping, err = measureWiping(ctx, d)
		return err
	})
	if err != nil {
		return fmt.Errorf("wiping: %w", err)
	}
	err = onPools(ctx, thick, []string{socketSide}, func(ctx context.Context, d disksOf) (err error) {
		r.Stats, err = measureStats(ctx, o, d)
		return err
	})
	if err != nil {
		return fmt.Errorf("statistics: %w", err)
	}
	return nil
}

// onPools does something with disks that are served anew when each side has its pool: as
// if they had been there before.
func onPools(ctx context.Context, pool string, sides []string, do func(context.Context, disksOf) error) error {
	return inGroups(ctx, pool, sides, func(ctx context.Context) error { return withDisks(ctx, do) })
}

// sidesOf makes the sides of a series. Each carries all operations out once that does
// not count: one of Berth's so that its commands are known to the bare side.
func sidesOf(ctx context.Context, s series, d disksOf) (map[string]side, error) {
	through := berth{name: socketSide, node: d.remote, pool: poolOf(s.pool, socketSide)}
	templates, err := learn(ctx, through, d.changes, s.operations)
	if err != nil {
		return nil, err
	}
	plain := bare{runner: d.bare, templates: templates}
	for _, operation := range s.operations {
		if err := plain.do(ctx, operation, warmUp); err != nil {
			return nil, err
		}
	}
	all := map[string]side{bareSide: plain, socketSide: through}
	if slices.Contains(s.names, localSide) {
		inside := berth{name: localSide, node: d.local, pool: poolOf(s.pool, localSide)}
		for _, operation := range s.operations {
			if err := inside.do(ctx, operation, warmUp); err != nil {
				return nil, err
			}
		}
		all[localSide] = inside
	}
	return all, nil
}

// warmUp is the number of a volume that is not measured.
const warmUp = 1_000_000

func lvmVersion() (string, error) {
	out, err := runLVM("version")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(out) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == "LVM version" {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("LVM does not say its version: %q", out)
}

// thisMachine describes the machine that this process runs on.
func thisMachine() (m machine, err error) {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return m, err
	}
	processors, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return m, err
	}
	return machine{
		Kernel: strings.TrimSpace(string(release)), Processors: runtime.NumCPU(), Processor: processorName(string(processors)),
	}, nil
}

// processorName is what /proc/cpuinfo calls the first processor.
func processorName(cpuinfo string) string {
	for line := range strings.Lines(cpuinfo) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
