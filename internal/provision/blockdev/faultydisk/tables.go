//go:build platform

package faultydisk

import (
	"fmt"
	"strconv"
	"strings"
)

// Works is the table of a disk without faults.
func (d *Disk) Works() string { return line(0, d.size, "linear", d.backing, 0) }

// Fails is the table of one that fails whatever is asked of it.
func (d *Disk) Fails() string { return line(0, d.size, "error") }

// FailsWrites is the table of one that can be read.
func (d *Disk) FailsWrites() string {
	return line(0, d.size, "flakey", d.backing, 0, 0, 1, 1, "error_writes")
}

// FailsBehind is the table of one of which only so many bytes work, from the beginning on.
func (d *Disk) FailsBehind(works int64) string {
	return line(0, works, "linear", d.backing, 0) + line(works, d.size-works, "error")
}

// logs is the table of one that writes down what is written to it on another disk.
func (d *Disk) logs(log string) string { return line(0, d.size, "log-writes", d.backing, log) }

// line is that of a table: what so many bytes from one on are mapped to.
func line(from, length int64, target string, options ...any) string {
	words := []string{strconv.FormatInt(from/SectorSize, 10), strconv.FormatInt(length/SectorSize, 10), target}
	for _, o := range options {
		words = append(words, fmt.Sprint(o))
	}
	return strings.Join(words, " ") + "\n"
}
