package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// InNamespace returns the processes that live in the network namespace at
// path. Among them are processes that a command started there and died before it
// could record them, and children of recorded processes. The calling process may be
// among them, too: its first thread cannot end after [InNetNS].
func InNamespace(path string) ([]Record, error) {
	wanted, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking at network namespace: %w", err)
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var found []Record
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// A process may end meanwhile: it is skipped.
		namespace, err := os.Stat(filepath.Join("/proc", entry.Name(), "ns", "net"))
		if err != nil || !os.SameFile(namespace, wanted) {
			continue
		}
		if st, err := readStat(pid); err == nil {
			name, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "comm"))
			found = append(found, Record{Name: strings.TrimSpace(string(name)), PID: pid, StartTime: st.startTime})
		}
	}
	return found, nil
}
