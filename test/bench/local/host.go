package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// runHost measures everything and writes the page.
func runHost(ctx context.Context, o options) (err error) {
	log.SetLogger(logr.Discard())
	begun := time.Now()
	r := results{options: o}
	if r.machine, err = thisMachine(); err != nil {
		return err
	}
	r.load[0] = loadAverage()
	if err := r.idleAgent(ctx); err != nil {
		return fmt.Errorf("an idle agent: %w", err)
	}
	if err := r.runGuest(ctx); err != nil {
		return err
	}
	r.load[1], r.took = loadAverage(), time.Since(begun)
	return r.write()
}

// runGuest runs this program in a guest.
func (r *results) runGuest(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	bin, err := filepath.Abs(filepath.Join(r.root, "bin"))
	if err != nil {
		return err
	}
	o := r.options
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "lab"), "guest", "run", "--zfs", "--disks", fmt.Sprint(len(disks)), "--disk-size", "16G", "--memory", "2G",
		"--copy", self+":/root/bench-local", "--copy", filepath.Join(bin, "berth")+":"+berthProgram, "--",
		"/root/bench-local", "-in-guest", "-n", fmt.Sprint(o.volumes), "-rounds", fmt.Sprint(o.rounds), "-at-once", fmt.Sprint(o.atOnce),
		"-idle-volumes", fmt.Sprint(o.idleVolumes), "-idle-for", o.idleFor.String(), "-stats-for", o.statsFor.String())
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it removes the guest
	cmd.WaitDelay = endGrace
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("measuring in a guest: %w", err)
	}
	if err := json.Unmarshal(out.Bytes(), &r.guest); err != nil {
		return fmt.Errorf("reading what was measured in the guest: %w", err)
	}
	return nil
}

// loadAverage is how many processes wanted a processor in the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	load, _, _ := strings.Cut(string(text), " ")
	return load
}
