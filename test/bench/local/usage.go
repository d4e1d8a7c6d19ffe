package main

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

// ticks of processor time in a second, on every Linux that Go supports.
const ticks = 100

// used is the processor time that a process and its ended children have used, and the memory
// that the process has.
type used struct {
	processor           time.Duration
	resident, anonymous int64
}

func usedBy(pid int) (u used, err error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return u, fmt.Errorf("looking at process %d: %w", pid, err)
	}
	stat, err := process.Stat()
	if err != nil {
		return u, fmt.Errorf("looking at process %d: %w", pid, err)
	}
	status, err := process.NewStatus()
	if err != nil {
		return u, fmt.Errorf("looking at process %d: %w", pid, err)
	}
	spent := time.Duration(stat.UTime+stat.STime) + time.Duration(stat.CUTime+stat.CSTime) //nolint:gosec // ticks since a process began
	return used{
		processor: spent * time.Second / ticks,
		resident:  int64(status.VmRSS), anonymous: int64(status.RssAnon), //nolint:gosec // less than the machine has
	}, nil
}

// observe measures for the time d how much a process uses that nothing disturbs. First it
// leaves the process the same time to come to rest.
func observe(ctx context.Context, pid, volumes int, d time.Duration) (i idle, err error) {
	progress("a process with %d volumes that has nothing to do: %s to come to rest, %s to look at it", volumes, d, d)
	if err := pause(ctx, d); err != nil {
		return i, err
	}
	before, err := usedBy(pid)
	if err != nil {
		return i, err
	}
	begun := time.Now()
	if err := pause(ctx, d); err != nil {
		return i, err
	}
	after, err := usedBy(pid)
	return idle{
		Volumes: volumes, Resident: after.resident, Anonymous: after.anonymous,
		Processor: after.processor - before.processor, Observed: time.Since(begun),
	}, err
}
