package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"berth.dev/berth/test/cluster"
)

const (
	// ahead is the niceness of the measured processes.
	ahead = -15
	// cpuGroups is the hierarchy of cgroups that divides the processors, and
	// mostShares the largest weight in it.
	cpuGroups  = "/sys/fs/cgroup/cpu"
	mostShares = "262144"
)

// goAhead lets this program, and all programs that it starts from now on, use the
// processors before other programs of the machine. They take no more processor time than
// otherwise, but wait less.
func goAhead() error {
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, ahead); err != nil {
		return fmt.Errorf("raising the priority: %w", err)
	}
	return nil
}

// letAhead does the same for a native node. To the scheduler outside of it the node's cgroup
// counts as one process.
func letAhead(ctx context.Context, lab cluster.Lab) error {
	out, err := lab.Output(ctx, "status", "-o", "json")
	if err != nil {
		return err
	}
	var status struct {
		Nodes []struct {
			PID int `json:"pid"`
		} `json:"nodes"`
	}
	if err := json.Unmarshal([]byte(out), &status); err != nil {
		return fmt.Errorf("reading the lab's status: %w", err)
	}
	for _, n := range status.Nodes {
		group, err := cpuGroup(n.PID)
		if err != nil {
			return err
		}
		for ; group != "/"; group = filepath.Dir(group) {
			if err := os.WriteFile(filepath.Join(cpuGroups, group, "cpu.shares"), []byte(mostShares), 0o644); err != nil {
				return fmt.Errorf("raising the node's share of the processors: %w", err)
			}
		}
	}
	return nil
}

// cpuGroup is the cgroup of a process in the hierarchy of processors.
func cpuGroup(pid int) (string, error) {
	lines, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return "", err
	}
	return parseCPUGroup(string(lines))
}

func parseCPUGroup(lines string) (string, error) {
	for line := range strings.Lines(lines) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) == 3 && fields[1] == "cpu" {
			return fields[2], nil
		}
	}
	return "", fmt.Errorf("no cgroup of processors in %q", lines)
}
