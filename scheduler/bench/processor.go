package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of the kernel's processor times, on every Linux that Go
// supports.
const tick = 10 * time.Millisecond

// processorTime is the processor time that a process has used.
func processorTime(pid int) (time.Duration, error) {
	fields, err := statFields(pid)
	if err != nil {
		return 0, err
	}
	return sum(fields[11:13])
}

// ownTime is the processor time that this process and its children have used, those
// that have ended included.
func ownTime() (total time.Duration, err error) {
	self := os.Getpid()
	fields, err := statFields(self)
	if err != nil {
		return 0, err
	}
	if total, err = sum(fields[11:15]); err != nil {
		return 0, err
	}
	paths, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	for _, path := range paths {
		pid, err := strconv.Atoi(filepath.Base(path))
		if err != nil {
			return 0, err
		}
		if fields, err := statFields(pid); err == nil && fields[1] == strconv.Itoa(self) { // else it has just ended
			child, err := sum(fields[11:15])
			if err != nil {
				return 0, err
			}
			total += child
		}
	}
	return total, nil
}

// busyTime is the processor time that all programs of the machine have used.
func busyTime() (time.Duration, error) {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(data), "\n")
	fields := strings.Fields(line) // cpu user nice system idle iowait irq softirq steal
	if len(fields) < 9 {
		return 0, fmt.Errorf("reading /proc/stat: %q", line)
	}
	return sum(append(fields[1:4], fields[6:8]...))
}

// statFields are those of /proc/PID/stat behind the program's name.
func statFields(pid int) ([]string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	return fieldsOf(data)
}

func fieldsOf(stat []byte) ([]string, error) {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return nil, errors.New("a stat file without a name")
	}
	fields := strings.Fields(string(stat[end+1:]))
	if len(fields) < 15 {
		return nil, fmt.Errorf("a stat file with %d fields", len(fields))
	}
	return fields, nil
}

func sum(ticks []string) (total time.Duration, err error) {
	for _, text := range ticks {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading a processor time: %w", err)
		}
		total += time.Duration(n) * tick
	}
	return total, nil
}
