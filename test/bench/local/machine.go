package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	zfskernel "berth.dev/berth/internal/provision/zfs/kernel"
)

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

// processorName returns the name of the first processor in /proc/cpuinfo.
func processorName(cpuinfo string) string {
	for line := range strings.Lines(cpuinfo) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

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

// loadZFS loads the kernel's ZFS and returns its version.
func loadZFS() (string, error) {
	if _, err := runTool("modprobe", "zfs"); err != nil {
		return "", err
	}
	version := (&zfskernel.Devices{}).Module()
	if version == "" {
		return "", errors.New("the kernel's ZFS does not say its version")
	}
	return version, nil
}
