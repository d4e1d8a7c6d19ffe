package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"berth.dev/berth/lab/internal/guest"
	"berth.dev/berth/lab/internal/guest/wire"
	"berth.dev/berth/lab/internal/network"
	"berth.dev/berth/lab/internal/process"
)

// Files of a node's directory. The data disks are beside them.
const (
	recordFile = "machine.json"
	upperDir   = "upper" // the node's writes over the machine's root directory
	workDir    = "work"  // overlayfs' own
	rootDir    = "root"  // where the node's root is mounted, in the node
	logDir     = "log"
	readyFile  = "ready" // in logDir, as soon as the services run
	initLog    = "init.log"
)

// Spec describes a node to be made.
type Spec struct {
	Name    string       `json:"name"`
	Network string       `json:"network"` // name of the lab's network
	Address netip.Prefix `json:"address"`
	MAC     string       `json:"mac"`
	// Programs are the machine's files by their path below [wire.ToolsDir].
	Programs map[string]string `json:"programs"`
	Services []wire.Service    `json:"services"`
	Disks    []guest.Disk      `json:"disks,omitempty"`
	// Cgroup is the node's cgroup in every hierarchy.
	Cgroup string `json:"cgroup"`
	// Files are written before the first start.
	Files []guest.File `json:"-"`
}

// Machine is a native node, on or off. Callers must make sure that only one process
// changes it at a time.
type Machine struct{ directory }

// directory holds all that outlives the commands of the lab: the record of a node, its disks and its
// logs.
type directory struct {
	dir string
	record
}

// record is the content of machine.json.
type record struct {
	Spec    Spec           `json:"spec"`
	Process process.Record `json:"process"`
	// Loops are the numbers of the loop devices over the data disks.
	Loops []int `json:"loops,omitempty"`
}

// Create makes a node in dir, which may exist, without starting it.
func Create(dir string, s Spec) (*Machine, error) {
	m := &Machine{directory{dir: dir, record: record{Spec: s}}}
	if err := m.create(); err != nil {
		return nil, fmt.Errorf("creating node %s: %w", s.Name, err)
	}
	return m, nil
}

// create writes the record last: with it the node exists.
func (m *directory) create() error {
	for _, dir := range append([]string{upperDir, workDir, rootDir, logDir}, stateDirs()...) {
		if err := os.MkdirAll(filepath.Join(m.dir, dir), 0o755); err != nil {
			return err
		}
	}
	for _, f := range m.Spec.Files {
		path := filepath.Join(m.dir, upperDir, f.Path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.Data, os.FileMode(f.Mode)); err != nil {
			return err
		}
	}
	for _, d := range m.Spec.Disks {
		if err := makeDisk(m.diskFile(d), d.Size); err != nil {
			return fmt.Errorf("creating %s: %w", d.Name, err)
		}
	}
	return m.save()
}

// Open returns the node in dir, or [guest.ErrNotExist].
func Open(dir string) (*Machine, error) {
	data, err := os.ReadFile(filepath.Join(dir, recordFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", filepath.Base(dir), guest.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("opening node: %w", err)
	}
	m := &Machine{directory{dir: dir}}
	if err := json.Unmarshal(data, &m.record); err != nil {
		return nil, fmt.Errorf("opening node %s: %w", filepath.Base(dir), err)
	}
	return m, nil
}

func (m *directory) save() error {
	data, err := json.MarshalIndent(m.record, "", "  ")
	path := filepath.Join(m.dir, recordFile)
	if err == nil {
		err = os.WriteFile(path+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("recording node %s: %w", m.Spec.Name, err)
	}
	return nil
}

// PID returns the number of the node's first process while it is on.
func (m *directory) PID() int { return m.Process.PID }

// Disks returns the node's data disks.
func (m *directory) Disks() []guest.Disk { return m.Spec.Disks }

// Device returns the path of a data disk in the node; empty while the node is off.
func (m *directory) Device(d guest.Disk) string {
	for i, mine := range m.Spec.Disks {
		if mine.Name == d.Name && i < len(m.Loops) {
			return loopPath(m.Loops[i])
		}
	}
	return ""
}

// Logs returns the log files of the node by the name of their writer.
func (m *directory) Logs() map[string]string {
	logs := map[string]string{"init": filepath.Join(m.dir, logDir, initLog)}
	for _, s := range m.Spec.Services {
		logs[s.Name] = filepath.Join(m.dir, logDir, s.Name+".log")
	}
	return logs
}

func (m *directory) diskFile(d guest.Disk) string { return filepath.Join(m.dir, d.Name+".raw") }

func (m *Machine) network(ctx context.Context) (*network.Network, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return network.Open(m.Spec.Network)
}
