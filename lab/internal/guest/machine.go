package guest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"berth.dev/berth/lab/internal/guest/wire"
	"berth.dev/berth/lab/internal/process"
)

// Files of a machine's directory.
const (
	recordFile  = "machine.json"
	overlayFile = "root.qcow2"
	imagesFile  = "images.qcow2"
	seedFile    = "seed.tar"
	readyFile   = "ready" // empty until the guest has booted
	qmpSocket   = "qmp.sock"
	consoleLog  = "console.log"
	qemuLog     = "qemu.log"
)

func serviceLog(service string) string { return service + ".log" }

// ErrNotExist says that a directory holds no machine.
var ErrNotExist = errors.New("the machine does not exist")

// Machine is a virtual machine, on or off. Several processes may call its methods,
// but the callers must make sure that only one changes it at a time.
type Machine struct{ directory }

// directory holds all that outlives the commands of the lab: the record of a machine, its disks and
// its logs.
type directory struct {
	dir string
	record
}

// record is the content of machine.json.
type record struct {
	Spec     Spec           `json:"spec"`
	Plan     wire.Plan      `json:"plan"`
	Process  process.Record `json:"process"`
	ExecPort int            `json:"execPort"`
}

// Create makes a machine in dir, which may exist, without starting it. It makes a
// half-made machine there anew.
func Create(ctx context.Context, dir string, s Spec) (*Machine, error) {
	s.Seed.Plan.Hostname, s.Seed.Plan.Token = s.Name, rand.Text()
	if err := errors.Join(s.Validate(), s.Seed.Plan.Validate()); err != nil {
		return nil, fmt.Errorf("creating machine %s: %w", s.Name, err)
	}
	m := &Machine{directory{dir: dir, record: record{Spec: s, Plan: s.Seed.Plan}}}
	if err := m.create(ctx, s.Seed); err != nil {
		return nil, fmt.Errorf("creating machine %s: %w", s.Name, err)
	}
	return m, nil
}

// create writes the record last: with it the machine exists.
func (m *directory) create(ctx context.Context, seed Seed) error {
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return err
	}
	for _, d := range m.Spec.Disks {
		if err := d.create(m.dir); err != nil {
			return err
		}
	}
	if err := m.overlay(ctx, m.Spec.Image.Root, overlayFile); err != nil {
		return fmt.Errorf("making the root disk: %w", err)
	}
	if m.Spec.Images != "" {
		if err := m.overlay(ctx, m.Spec.Images, imagesFile); err != nil {
			return fmt.Errorf("making the disk for images: %w", err)
		}
	}
	if err := m.writeSeed(seed); err != nil {
		return err
	}
	return m.save()
}

// overlay makes a disk that holds only the machine's changes to another disk.
func (m *directory) overlay(ctx context.Context, base, file string) error {
	return process.Run(ctx, process.Command{Path: "qemu-img", Args: []string{
		"create", "-q", "-f", "qcow2", "-F", "raw", "-b", base, filepath.Join(m.dir, file)}})
}

// Reseed replaces the seed that the machine finds at its next boot, except its name
// and token.
func (m *directory) Reseed(seed Seed) error {
	seed.Plan.Hostname, seed.Plan.Token = m.Plan.Hostname, m.Plan.Token
	if err := seed.Plan.Validate(); err != nil {
		return fmt.Errorf("machine %s: %w", m.Spec.Name, err)
	}
	if err := m.writeSeed(seed); err != nil {
		return fmt.Errorf("machine %s: %w", m.Spec.Name, err)
	}
	m.Plan = seed.Plan
	return m.save()
}

func (m *directory) writeSeed(seed Seed) error {
	path := filepath.Join(m.dir, seedFile)
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("writing the seed: %w", err)
	}
	err = errors.Join(seed.write(f), f.Close())
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("writing the seed: %w", err)
	}
	return nil
}

// Open returns the machine in dir, or [ErrNotExist].
func Open(dir string) (*Machine, error) {
	data, err := os.ReadFile(filepath.Join(dir, recordFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", filepath.Base(dir), ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("opening machine: %w", err)
	}
	m := &Machine{directory{dir: dir}}
	if err := json.Unmarshal(data, &m.record); err != nil {
		return nil, fmt.Errorf("opening machine %s: %w", filepath.Base(dir), err)
	}
	return m, nil
}

func (m *directory) save() error {
	data, err := json.MarshalIndent(m.record, "", "  ")
	if err != nil {
		return fmt.Errorf("recording machine %s: %w", m.Spec.Name, err)
	}
	path := filepath.Join(m.dir, recordFile)
	err = os.WriteFile(path+".new", data, 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("recording machine %s: %w", m.Spec.Name, err)
	}
	return nil
}

// Name returns the machine's name.
func (m *directory) Name() string { return m.Spec.Name }

// Disks returns the machine's data disks.
func (m *directory) Disks() []Disk { return m.Spec.Disks }

// Logs returns the log files of the machine by their writer: its kernel
// ("console"), its services, and QEMU itself ("qemu").
func (m *directory) Logs() map[string]string {
	logs := map[string]string{"console": filepath.Join(m.dir, consoleLog), "qemu": filepath.Join(m.dir, qemuLog)}
	for _, s := range m.Plan.Services {
		logs[s.Name] = filepath.Join(m.dir, serviceLog(s.Name))
	}
	return logs
}

// lastWords returns the end of the log of QEMU, or of the guest's kernel if that is
// empty, and the path of the whole log.
func (m *directory) lastWords() string {
	const lines = 8
	for _, log := range []string{qemuLog, consoleLog} {
		path := filepath.Join(m.dir, log)
		data, err := os.ReadFile(path)
		if text := strings.TrimSpace(string(data)); err == nil && text != "" {
			all := strings.Split(text, "\n")
			return fmt.Sprintf("log %s ends with\n%s", path, strings.Join(all[max(0, len(all)-lines):], "\n"))
		}
	}
	return fmt.Sprintf("log %s is empty", filepath.Join(m.dir, consoleLog))
}

// Remove powers the machine off and deletes it with all its disks.
func (m *Machine) Remove(ctx context.Context) error {
	if err := m.PowerOff(ctx); err != nil {
		return err
	}
	if err := os.RemoveAll(m.dir); err != nil {
		return fmt.Errorf("removing machine %s: %w", m.Spec.Name, err)
	}
	return nil
}
