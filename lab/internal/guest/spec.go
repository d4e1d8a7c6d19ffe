package guest

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"

	"berth.dev/berth/lab/internal/guest/wire"
)

// Spec describes a machine to be made.
type Spec struct {
	Name   string `json:"name"`
	Image  Image  `json:"image"`
	CPUs   int    `json:"cpus"`
	Memory int64  `json:"memory"` // bytes
	// Tools is a raw ext4 image that is mounted read-only on [wire.ToolsDir],
	// or empty. Many machines may share it.
	Tools string `json:"tools,omitempty"`
	// Images is a raw ext4 image, or empty. A copy-on-write copy of it is mounted on
	// [wire.ImagesDir]. Many machines may share it.
	Images string `json:"images,omitempty"`
	Disks  []Disk `json:"disks,omitempty"`
	// Resets says that the machine starts again when its kernel or its watchdog resets it, as
	// hardware does. Otherwise a reset powers it off.
	Resets bool `json:"resets,omitempty"`
	// NetNS is the namespace that holds Tap, or empty for a machine without
	// network.
	NetNS string `json:"netns,omitempty"`
	Tap   string `json:"tap,omitempty"`
	// Seed is the seed that the machine finds when it boots. [Create] fills in Hostname
	// and Token.
	Seed Seed `json:"-"`
}

// Seed is a plan and the files that go with it.
type Seed struct {
	Plan  wire.Plan
	Files []File
}

// File is a file for a guest: Data, or the content of the host's file Source.
type File struct {
	Path   string // absolute, in the guest
	Mode   uint32 // permission bits
	Data   []byte
	Source string
}

// Disk is a data disk.
type Disk struct {
	Name string `json:"name"` // e.g. "disk1"
	Size int64  `json:"size"` // bytes
	// File is the path of a file that is not the machine's own: other machines and programs
	// may have it, too. It is neither made nor deleted with the disk. Empty: a file of the
	// machine.
	File string `json:"file,omitempty"`
}

// Serial returns the disk's serial number, unique in its lab. A disk that several machines
// share has the same one in all of them.
func (d Disk) Serial(machine string) string {
	if d.File != "" {
		return "shared-" + d.Name
	}
	return machine + "-" + d.Name
}

// Device returns the path of the disk in the guest. It does not change when
// other disks come and go.
func (d Disk) Device(machine string) string {
	return "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_" + d.Serial(machine)
}

var (
	validMachine = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,22}[a-z0-9])?$`)
	validDisk    = regexp.MustCompile(`^[a-z0-9]{1,11}$`)
)

const (
	minMemory  = 256 << 20
	sectorSize = 512
)

// Validate reports everything that is wrong with the specification.
func (s Spec) Validate() error {
	var errs []error
	if !validMachine.MatchString(s.Name) {
		errs = append(errs, fmt.Errorf("machine name %q: must be up to 24 lower-case letters, digits and dashes", s.Name))
	}
	if s.CPUs < 1 || s.CPUs > 64 {
		errs = append(errs, fmt.Errorf("%d processors: must be from 1 to 64", s.CPUs))
	}
	if s.Memory < minMemory {
		errs = append(errs, fmt.Errorf("%d bytes of memory: must be at least %d", s.Memory, minMemory))
	}
	if (s.Seed.Plan.Network == nil) != (s.Tap == "") {
		errs = append(errs, errors.New("a tap and an address for it go together"))
	}
	seen := map[string]bool{}
	for _, d := range s.Disks {
		if seen[d.Name] {
			errs = append(errs, fmt.Errorf("disk %s: named twice", d.Name))
		}
		seen[d.Name] = true
		errs = append(errs, d.validate())
	}
	for _, f := range s.Seed.Files {
		if !path.IsAbs(f.Path) || path.Clean(f.Path) != f.Path || f.Path == "/" {
			errs = append(errs, fmt.Errorf("file %q: must be a clean absolute path", f.Path))
		}
		if f.Source != "" && !filepath.IsAbs(f.Source) {
			errs = append(errs, fmt.Errorf("file %s: its source %q must be an absolute path", f.Path, f.Source))
		}
	}
	return errors.Join(errs...)
}

func (d Disk) validate() error {
	if !validDisk.MatchString(d.Name) {
		return fmt.Errorf("disk name %q: must be up to 11 lower-case letters and digits", d.Name)
	}
	if d.Size <= 0 || d.Size%sectorSize != 0 {
		return fmt.Errorf("disk %s of %d bytes: must be a positive multiple of %d", d.Name, d.Size, sectorSize)
	}
	if d.File != "" && !filepath.IsAbs(d.File) {
		return fmt.Errorf("disk %s: its file %q must be an absolute path", d.Name, d.File)
	}
	return nil
}
