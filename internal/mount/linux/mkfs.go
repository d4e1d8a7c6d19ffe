package linux

import (
	"context"
	"fmt"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// mkfsArgs make a filesystem over whatever the device holds: that it is blank is
// the provisioner's record to say, not the tool's. Nothing is discarded first, which
// can take minutes; ext4 keeps no blocks for root and sets up its tables later.
var mkfsArgs = map[string][]string{
	provision.Ext4: {"-F", "-q", "-m", "0", "-E", "nodiscard,lazy_itable_init=1,lazy_journal_init=1"},
	provision.XFS:  {"-f", "-q", "-K"},
}

// Mkfs makes a filesystem on a device that its provisioner knows to be blank. It is
// for provisioners alone. A device that is mounted is ErrInUse.
func (m *Mounter) Mkfs(_ context.Context, device, filesystem string) error {
	args, known := mkfsArgs[filesystem]
	if !known {
		return fmt.Errorf("%w: filesystem %q", provision.ErrInvalid, filesystem)
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
	_, err = m.runner.Change(run.Command{Operation: tool, Program: tool, Args: append(append([]string{}, args...), device)})
	return err
}
