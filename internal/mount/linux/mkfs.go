package linux

import (
	"context"
	"fmt"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/mkfs"
	"berth.dev/berth/internal/run"
)

// Mkfs makes a filesystem, with options of mkfs or none, on a device that its
// provisioner knows to be blank. It is for provisioners alone. A device that is mounted
// is ErrInUse.
func (m *Mounter) Mkfs(_ context.Context, device, filesystem, options string) error {
	args, err := mkfs.Args(filesystem, options)
	if err != nil {
		return fmt.Errorf("%w: mkfs option %w", provision.ErrInvalid, err)
	}
	number, err := deviceNumber(device)
	if err != nil {
		return err
	}
	targets, err := users(number)
	if err != nil {
		return err
	}
	if len(targets) > 0 {
		return fmt.Errorf("%w: %s is mounted at %s", provision.ErrInUse, device, targets[0])
	}
	tool := "mkfs." + filesystem
	_, err = m.runner.Change(run.Command{Operation: tool, Program: tool, Args: append(args, device)})
	return err
}
