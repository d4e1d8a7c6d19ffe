package iscsi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/iscsi/scsi"
)

// place is where a disk is on the node, as far as it is there.
type place struct {
	session *Session
	unit    *Unit
}

func (p *Disks) interfaceName() string {
	if p.c.Interface != "" {
		return p.c.Interface
	}
	return "default"
}

// find looks for the disk's session and unit.
func (c call) find() (place, error) {
	sessions, err := c.c.Kernel.Sessions()
	if err != nil {
		return place{}, provision.Unavailable(fmt.Errorf("reading the sessions: %w", err))
	}
	own := slices.DeleteFunc(sessions, func(s Session) bool {
		return s.Target != c.Target || c.c.Interface != "" && s.Interface != c.c.Interface
	})
	switch len(own) {
	case 0:
		return place{}, nil
	case 1:
	default:
		return place{}, fmt.Errorf("%w: %d sessions with target %s: Berth uses no multipath, so log out of all but one, of the interface %s",
			provision.ErrUnsupported, len(own), c.Target, c.interfaceName())
	}
	at := place{session: &own[0]}
	if i := slices.IndexFunc(own[0].Units, func(u Unit) bool { return u.LUN == c.LUN }); i >= 0 {
		at.unit = &own[0].Units[i]
	}
	return at, nil
}

// vacant says whether a session is one that may be ended: it is of Berth's own interface, and has no unit of any kind.
// Berth uses a session of another interface if there is one, and never ends it: the program that logged in may need it
// still.
func (p *Disks) vacant(s *Session) bool {
	return s != nil && s.Interface == p.interfaceName() && len(s.Units)+len(s.Others) == 0
}

// attached returns where a disk is that is to be attached.
func (c call) attached() (place, error) {
	at, err := c.find()
	if err == nil && at.unit == nil {
		err = fmt.Errorf("%w: the disk is not attached to this node", provision.ErrUnavailable)
	}
	return at, err
}

const (
	// running is the state of a unit that takes commands.
	running = "running"
	// givenUp is the state of a unit that did not answer after all that the kernel does about errors. No login of its
	// session ends it, so the unit is to be removed and found anew. All other states end by themselves, and nothing is
	// removed for them: "blocked" and "transport-offline" with the next login of the session, "created",
	// "created-blocked" and "quiesce" when the kernel is done with the unit, "cancel" and "deleted" with the unit. While
	// the session is away, a unit that was given up stays, too: it could not be found anew.
	givenUp = "offline"
)

// usable refuses a unit that does not answer now, or that is reached in two ways.
func (c call) usable(at place) error {
	u := at.unit
	switch {
	case !at.session.LoggedIn:
		return fmt.Errorf("%w: the path to target %s is away", provision.ErrUnavailable, c.Target)
	case u.State != running || u.Path == "":
		return fmt.Errorf("%w: the kernel has unit %s in the state %s", provision.ErrUnavailable, u.Address, u.State)
	case u.Multipath != "":
		return fmt.Errorf("%w: device-mapper multipath has taken %s for %s: exclude the disk in multipath.conf", provision.ErrUnsupported, u.Path, u.Multipath)
	case u.WWID == "":
		return nil
	}
	disks, err := c.c.Kernel.Disks()
	if err != nil {
		return provision.Unavailable(fmt.Errorf("reading the disks: %w", err))
	}
	foreign, err := c.foreignHosts()
	if err != nil {
		return err
	}
	for _, other := range disks {
		if other.WWID == u.WWID && other.Address != u.Address && !foreign[other.Host] {
			return fmt.Errorf("%w: %s and %s are one disk, %s: Berth uses no multipath, so log out of all but one session", provision.ErrUnsupported, u.Path, other.Path, u.WWID)
		}
	}
	return nil
}

// foreignHosts are those of sessions that are another node's.
func (c call) foreignHosts() (map[int]bool, error) {
	if c.c.Interface == "" {
		return nil, nil
	}
	sessions, err := c.c.Kernel.Sessions()
	if err != nil {
		return nil, provision.Unavailable(fmt.Errorf("reading the sessions: %w", err))
	}
	hosts := map[int]bool{}
	for _, s := range sessions {
		hosts[s.Host] = s.Interface != c.c.Interface
	}
	return hosts, nil
}

// open opens the device of a disk and proves that it is the disk. The caller closes it. idle says that nothing may
// have it open: it is then opened exclusively, so that nothing mounts it meanwhile.
func (c call) open(ctx context.Context, at place, idle bool) (nexus, error) {
	if err := c.usable(at); err != nil {
		return nexus{}, err
	}
	if idle {
		if err := c.idle(at); err != nil {
			return nexus{}, err
		}
	}
	dev, err := c.c.Kernel.Open(*at.unit, idle)
	switch {
	case errors.Is(err, ErrBusy):
		return nexus{}, fmt.Errorf("%w: %s is mounted, or another device is made of it", provision.ErrInUse, at.unit.Path)
	case err != nil:
		return nexus{}, provision.Unavailable(fmt.Errorf("opening %s: %w", at.unit.Path, err))
	}
	n := nexus{c, dev}
	if err := n.prove(ctx); err != nil {
		dev.Close()
		return nexus{}, err
	}
	return n, nil
}

// idle returns nil if nothing on the node has the disk open.
func (c call) idle(at place) error {
	if len(at.unit.Holders) > 0 {
		return fmt.Errorf("%w: %s is made of %s%s", provision.ErrInUse, strings.Join(at.unit.Holders, ", "), at.unit.Path, activated(at.unit))
	}
	if at.unit.Number == "" {
		return nil
	}
	why, err := c.c.Used(at.unit.Number)
	if err != nil {
		return provision.Unavailable(fmt.Errorf("looking for what has %s open: %w", at.unit.Path, err))
	}
	if why != "" {
		return fmt.Errorf("%w: %s: %s", provision.ErrInUse, at.unit.Path, why)
	}
	return nil
}

// activated says what to do if LVM or md of the machine has taken what a pod wrote to the disk for its own.
func activated(u *Unit) string {
	md := slices.IndexFunc(u.Holders, func(h string) bool { return strings.HasPrefix(h, "md") })
	switch {
	case u.LVM != "":
		return fmt.Sprintf(": %s is of LVM: deactivate its volume group, and keep the machine's LVM from this disk (global_filter, or a devices file)", u.LVM)
	case md >= 0:
		return fmt.Sprintf(": %s is an array of md: stop it, and keep the machine's mdadm from this disk (AUTO -all)", u.Holders[md])
	}
	return ""
}

// serialScheme begins an identity that is a serial number. It names a disk only among those of its
// target, so a world-wide name is better.
const serialScheme = "serial."

// nexus is a call that has the disk's device open, in the session to which the target answers (SAM-5's I_T_L nexus).
type nexus struct {
	call
	dev Device
}

// prove compares what the unit says of itself with the disk's identity.
func (n nexus) prove(ctx context.Context) error {
	want := string(n.disk.Identity)
	if serial, ok := strings.CutPrefix(want, serialScheme); ok {
		b, err := n.execute(ctx, scsi.Inquiry(scsi.UnitSerialNumber))
		if err != nil {
			return err
		}
		got, err := scsi.Serial(b)
		return n.compare(err, got == serial && serial != "", strconv.Quote(serialScheme+got))
	}
	b, err := n.execute(ctx, scsi.Inquiry(scsi.DeviceIdentification))
	if err != nil {
		return err
	}
	names, err := scsi.Names(b)
	return n.compare(err, slices.Contains(names, strings.ToLower(want)), fmt.Sprintf("%q", names))
}

func (c call) compare(err error, same bool, says string) error {
	switch {
	case err != nil:
		return fmt.Errorf("%w: unit %d of target %s does not say which disk it is: %w", provision.ErrConflict, c.LUN, c.Target, err)
	case !same:
		return fmt.Errorf("%w: unit %d of target %s calls itself %s, and the disk of volume %s is %s", provision.ErrConflict, c.LUN, c.Target, says, c.disk.Volume, c.disk.Identity)
	}
	return nil
}

const (
	// commandLimit is how long the kernel waits for the answer to one command: as long as for the
	// reads and writes of disks. Then it resets the unit, for all who use it. A call is given up earlier.
	commandLimit = 30 * time.Second
	// attentions is how many conditions that a target reports in place of an answer are read over.
	attentions = 8
)

// execute sends a command and returns the answer's data. A target tells each session once of what
// happened since (UNIT ATTENTION), in place of executing a command, which is then sent again.
func (n nexus) execute(ctx context.Context, command scsi.Command) ([]byte, error) {
	for range attentions {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		r, err := n.dev.Execute(command, commandLimit)
		if err != nil {
			return nil, provision.Unavailable(fmt.Errorf("sending %s: %w", command.Name, err))
		}
		err = r.Err()
		sense, isSense := errors.AsType[*scsi.SenseError](err)
		switch {
		case err == nil:
			return r.Data, nil
		case isSense && sense.Key == scsi.UnitAttention:
			n.proved = nil
			continue
		case isSense && sense.Key == scsi.IllegalRequest:
			return nil, fmt.Errorf("%w: the target refuses %s: %w", provision.ErrUnsupported, command.Name, err)
		case errors.Is(err, scsi.ErrReservationConflict):
			return nil, fmt.Errorf("%w: %s: %w", provision.ErrConflict, command.Name, err)
		default:
			return nil, provision.Unavailable(fmt.Errorf("%s: %w", command.Name, err))
		}
	}
	return nil, fmt.Errorf("%w: %s: the target reports a new condition each time", provision.ErrUnavailable, command.Name)
}
