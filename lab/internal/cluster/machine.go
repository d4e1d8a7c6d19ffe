package cluster

import (
	"context"
	"io"

	"berth.dev/berth/lab/internal/guest"
)

// Machine is the machine of a node: a guest, or a part of this machine. A kind of
// machine that cannot do something returns an error with the reason.
type Machine interface {
	Power() guest.Power
	PID() int
	PowerOn(ctx context.Context) error
	PowerOff(ctx context.Context) error
	WaitReady(ctx context.Context) error
	Pause(ctx context.Context) error
	Freeze(ctx context.Context) error // pause with all clocks
	Resume(ctx context.Context) error

	Exec(ctx context.Context, r guest.ExecRequest) (code int, err error)
	Output(ctx context.Context, argv ...string) ([]byte, error)
	Pipe(ctx context.Context, stdin io.Reader, argv ...string) error

	Disks() []guest.Disk
	Device(d guest.Disk) string // path in the node
	AddDisk(ctx context.Context, size int64) (guest.Disk, error)
	AttachDisk(ctx context.Context, d guest.Disk) error // one with a file of its own
	RemoveDisk(ctx context.Context, name string) error

	// Logs returns the log files by the name of the process that wrote them.
	Logs() map[string]string
}

// opened returns a nil Machine on an error. A nil M in a Machine would not be nil.
func opened[M Machine](m M, err error) (Machine, error) {
	if err != nil {
		return nil, err
	}
	return m, nil
}
