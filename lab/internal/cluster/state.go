package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"berth.dev/berth/lab/internal/network"
	"berth.dev/berth/lab/internal/process"
)

// ErrNotUp says that there is no cluster of that name.
var ErrNotUp = errors.New("there is no such cluster: start it with `lab up`")

// Settings are the settings that the user gave for the cluster. They stay for its life.
type Settings struct {
	Nodes    int    `json:"nodes"`
	Memory   int64  `json:"memory"`   // bytes per node
	Disks    int    `json:"disks"`    // empty data disks per node
	DiskSize int64  `json:"diskSize"` // bytes
	Release  string `json:"release,omitempty"`
	// Kubernetes is the minor version that is built, such as 1.36; empty for the newest.
	Kubernetes string `json:"kubernetes,omitempty"`
	// Native makes nodes parts of this machine instead of guests. Memory does not
	// bound them.
	Native bool `json:"native,omitempty"`
	// Control adds one node, for pods that need not run beside the data. It is native even if
	// the other nodes are guests. It has no disks, and has the taint of a control plane.
	Control bool `json:"control,omitempty"`
	// ZFS says that the nodes' kernel has ZFS, and the nodes have its tools.
	ZFS bool `json:"zfs,omitempty"`
	// StockTimeouts leaves all time-outs and intervals at Kubernetes' defaults: pods leave a
	// lost node after five minutes.
	StockTimeouts bool `json:"stockTimeouts,omitempty"`
	// Images are archives of the images that every node has when it starts.
	Images []string `json:"images,omitempty"`
}

// controlNode is the name of the node that [Settings.Control] asks for.
const controlNode = "control"

// NodeNames returns the names of the cluster's nodes.
func (s Settings) NodeNames() []string {
	var names []string
	for i := range s.Nodes {
		names = append(names, fmt.Sprintf("node%d", i+1))
	}
	if s.Control {
		names = append(names, controlNode)
	}
	return names
}

// native reports whether a node is part of this machine.
func (s Settings) native(node string) bool { return s.Native || node == controlNode }

// guests reports whether any node is a guest.
func (s Settings) guests() bool { return s.Nodes > 0 && !s.Native }

// natives reports whether any node is part of this machine.
func (s Settings) natives() bool { return s.Nodes > 0 && s.Native || s.Control }

func (s Settings) validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	room := network.MaxNodes
	if s.Control {
		room--
	}
	check(s.Nodes >= 0 && s.Nodes <= room, "%d nodes: use 0 to %d", s.Nodes, room)
	check(s.Disks >= 0 && s.Disks <= 16, "%d disks: use 0 to 16", s.Disks)
	check(s.Memory >= minMemory, "%d bytes of memory: a node needs at least %d", s.Memory, minMemory)
	check(s.DiskSize >= 1<<20 && s.DiskSize%512 == 0, "disks of %d bytes: use at least 1M", s.DiskSize)
	check(!s.ZFS || !s.Native, "native nodes have this machine's kernel: ZFS cannot be added to it")
	return errors.Join(errs...)
}

// minMemory is the memory in bytes that kernel, containerd and kubelet need beside a few pods.
const minMemory = 512 << 20

// contents is the state file.
type contents struct {
	Name      string                    `json:"name"`
	Settings  Settings                  `json:"settings"`
	Programs  programs                  `json:"programs"`
	Port      int                       `json:"port,omitempty"` // of the forwarder on 127.0.0.1
	Processes map[string]process.Record `json:"processes"`
	Links     map[string]shaped         `json:"links,omitempty"` // by node
}

// state is the state file in memory. It is safe for concurrent use; every
// change is on disk when the call returns.
type state struct {
	path string
	mu   sync.Mutex
	data contents
}

func newState(path, name string, s Settings) (*state, error) {
	st := &state{path: path, data: contents{Name: name, Settings: s, Processes: map[string]process.Record{}}}
	return st, st.save()
}

// loadState returns [ErrNotUp] if there is no state file.
func loadState(path, name string) (*state, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cluster %q: %w", name, ErrNotUp)
	}
	if err != nil {
		return nil, fmt.Errorf("reading cluster state: %w", err)
	}
	st := &state{path: path}
	if err := json.Unmarshal(data, &st.data); err != nil {
		return nil, fmt.Errorf("reading cluster state %s: %w", path, err)
	}
	if st.data.Processes == nil {
		st.data.Processes = map[string]process.Record{}
	}
	return st, nil
}

// get returns a copy that no other goroutine changes. Its maps are shared: read them
// only through the state's methods.
func (s *state) get() contents {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data
}

func (s *state) update(change func(*contents)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.data)
	return s.save()
}

// Process implements the control plane's journal.
func (s *state) Process(name string) (process.Record, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rec, ok := s.data.Processes[name]
	return rec, ok
}

// RecordProcess implements the control plane's journal.
func (s *state) RecordProcess(rec process.Record) error {
	return s.update(func(c *contents) { c.Processes[rec.Name] = rec })
}

// link returns the record of a node's interface.
func (s *state) link(node string) (shaped, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.data.Links[node]
	return l, ok
}

// processes returns every recorded process.
func (s *state) processes() []process.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []process.Record
	for _, rec := range s.data.Processes {
		all = append(all, rec)
	}
	return all
}

// save replaces the file by a rename: a reader never sees half of it.
func (s *state) save() error {
	data, err := json.MarshalIndent(s.data, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding cluster state: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o755); err != nil {
		return fmt.Errorf("creating state directory: %w", err)
	}
	part := s.path + ".part"
	if err := os.WriteFile(part, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing cluster state: %w", err)
	}
	if err := os.Rename(part, s.path); err != nil {
		return fmt.Errorf("writing cluster state: %w", err)
	}
	return nil
}
