package lvm_test

import (
	"fmt"
	"strings"
	"sync"

	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

// trace lists the operations on a machine in the order in which they ended. It explains a story
// that goes wrong once in thousands of times.
type trace struct {
	mu    sync.Mutex
	lines []string
}

func (r *trace) add(err error, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, strings.TrimSuffix(fmt.Sprintf(format, args...)+fmt.Sprintf(": %v", err), ": <nil>"))
}

func (r *trace) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines, "\n")
}

// on records the operations on a machine. It wraps the disturbances that are set already.
func (r *trace) on(host *lvmtest.Host) {
	part := func(what string, around func(string, int64, int64, func() error) error) func(string, int64, int64, func() error) error {
		return func(path string, offset, length int64, do func() error) error {
			err := around(path, offset, length, do)
			r.add(err, "%s %s %d+%d", what, path, offset, length)
			return err
		}
	}
	host.Disturb(func(h *lvmtest.Host) {
		around := h.Around
		h.Around = func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
			out, err := around(c, do)
			if c.Operation == "fullreport" {
				r.add(err, "report")
			} else {
				r.add(err, "%s %s", c.Operation, strings.Join(c.Args[3:], " ")) // without its settings
			}
			return out, err
		}
		h.Wiping, h.Copying = part("wipe", h.Wiping), part("copy", h.Copying)
	})
}
