package watchdog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Device is a watchdog of the machine.
type Device struct {
	// Path of the device, such as /dev/watchdog0. Sys is the kernel's directory about it.
	Path, Sys string

	driver driver
	file   *os.File
	// within is how long after a feeding the device resets the machine.
	within time.Duration
	// magic: the driver lets go of the machine when asked to.
	magic bool
	// unfit is why a device that could not be let go of does not keep the contract's times.
	unfit error
}

// New returns a machine's watchdog, which does nothing yet.
func New(path string) *Device {
	return &Device{Path: path, Sys: filepath.Join("/sys/class/watchdog", filepath.Base(path)), driver: kernel{}}
}

// driver is what an open device answers.
type driver interface {
	set(fd, seconds int) error
	timeout(fd int) (seconds int, err error)
	// options are none if the device does not tell them.
	options(fd int) uint32
}

type kernel struct{}

func (kernel) set(fd, seconds int) error {
	return unix.IoctlSetPointerInt(fd, unix.WDIOC_SETTIMEOUT, seconds)
}

func (kernel) timeout(fd int) (int, error) { return unix.IoctlGetInt(fd, unix.WDIOC_GETTIMEOUT) }

func (kernel) options(fd int) uint32 {
	info, err := unix.IoctlGetWatchdogInfo(fd)
	if err != nil {
		return 0
	}
	return info.Options
}

// Arm opens the device, and sets it to reset the machine a short time after its last feeding. It fails
// if the device cannot be set to each of two times: the reset would come after controllers have waited.
func (d *Device) Arm(long, short time.Duration) error {
	if d.file != nil {
		return d.unfit
	}
	f, err := os.OpenFile(d.Path, os.O_WRONLY, 0)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("this machine has no watchdog %s: load the driver of its hardware, or softdog", d.Path)
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("another program has the watchdog %s: name another one, or take it from the other program, such as RuntimeWatchdogSec= of systemd", d.Path)
	case err != nil:
		return fmt.Errorf("opening watchdog: %w", err)
	}
	d.file, d.magic = f, d.letsGo(int(f.Fd()))
	for _, within := range []time.Duration{long, short} {
		if err := d.set(within); err != nil {
			return d.abandon(err)
		}
	}
	return nil
}

// set changes when the device resets. The kernel feeds it then.
func (d *Device) set(within time.Duration) error {
	fd, seconds := int(d.file.Fd()), int(within/time.Second)
	if err := d.driver.set(fd, seconds); err != nil {
		return fmt.Errorf("setting the watchdog %s to %d seconds: %w", d.Path, seconds, err)
	}
	is, err := d.driver.timeout(fd)
	if err != nil {
		return fmt.Errorf("asking the watchdog %s when it resets: %w", d.Path, err)
	}
	if is <= 0 || is > seconds {
		return fmt.Errorf("the watchdog %s resets after %d seconds, which must be at most %d", d.Path, is, seconds)
	}
	d.within = within
	return nil
}

// letsGo tells whether the driver stops by the magic character, and the kernel allows that.
func (d *Device) letsGo(fd int) bool {
	if d.driver.options(fd)&unix.WDIOF_MAGICCLOSE == 0 {
		return false
	}
	text, _ := os.ReadFile(filepath.Join(d.Sys, "nowayout")) // a kernel that does not tell does not allow it
	return strings.TrimSpace(string(text)) == "0"
}

// abandon lets go of a device that does not keep the contract's times. One that cannot be let go of
// would reset the machine for no reason, so it is kept and fed, and promises nothing.
func (d *Device) abandon(err error) error {
	if d.magic {
		return errors.Join(err, d.Disarm())
	}
	d.unfit = err
	return errors.Join(err, d.ping())
}

// Armed tells whether the device runs, so that it has to be fed.
func (d *Device) Armed() bool { return d.file != nil }

// Promises tells whether the device resets the machine in time.
func (d *Device) Promises() bool { return d.file != nil && d.unfit == nil }

// Stoppable tells whether the device can be let go of.
func (d *Device) Stoppable() bool { return d.magic }

// Feed puts the reset off. The device resets the machine if it is not fed again within this time, one of
// the two that Arm was told.
func (d *Device) Feed(within time.Duration) error {
	if within == d.within || d.unfit != nil {
		return d.ping()
	}
	return d.set(within)
}

// Shorten feeds the device only if it would reset the machine later than within this time.
func (d *Device) Shorten(within time.Duration) error {
	if within < d.within && d.unfit == nil {
		return d.set(within)
	}
	return nil
}

func (d *Device) ping() error {
	if _, err := d.file.Write([]byte{0}); err != nil {
		return fmt.Errorf("feeding the watchdog %s: %w", d.Path, err)
	}
	return nil
}

// Disarm lets go of the device: it resets nothing any more.
func (d *Device) Disarm() error {
	if d.file == nil {
		return nil
	}
	if _, err := d.file.WriteString("V"); err != nil {
		return fmt.Errorf("letting go of the watchdog %s: %w", d.Path, err)
	}
	err := d.file.Close()
	d.file = nil
	return err
}
