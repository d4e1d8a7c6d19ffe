package lvmtest

import (
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"berth.dev/berth/internal/provision/lvm/group"
)

// Settings are the machine's LVM settings, as lvmconfig shows them.
type Settings struct {
	GlobalFilter, Filter []string
	// DevicesFile says whether LVM uses its devices file.
	DevicesFile bool
	// None says that the machine has no configuration file of LVM.
	None bool
}

func (s Settings) show() []byte {
	var b strings.Builder
	b.WriteString("devices {\n")
	for _, f := range []struct {
		key      string
		patterns []string
	}{{"global_filter", s.GlobalFilter}, {"filter", s.Filter}} {
		if len(f.patterns) == 0 {
			f.patterns = []string{"a|.*|"}
		}
		text, err := json.Marshal(f.patterns)
		if err != nil {
			panic(err)
		}
		b.WriteString("\t" + f.key + "=" + string(text) + "\n")
	}
	b.WriteString("\tuse_devicesfile=" + bit(s.DevicesFile) + "\n\tdevicesfile=\"system.devices\"\n}\n")
	return []byte(b.String())
}

// Attach sets the block device that the kernel has under this name.
func (h *Host) Attach(name string, b group.Block) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.blocks == nil {
		h.blocks = map[string]group.Block{}
	}
	h.blocks[name] = b
}

// Know sets what udev knows of the block device that the kernel has under this name.
func (h *Host) Know(name string, k group.Known) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known = map[string]group.Known{name: k}
}

// Known implements lvm.Devices.
func (h *Host) Known(name string) group.Known {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.known[name]
}

// Blocks implements lvm.Devices. It leaves out devices that were not attached: they count as
// plain disks.
func (h *Host) Blocks() (map[string]group.Block, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.blocks), nil
}

// Name implements lvm.Devices.
func (h *Host) Name(path string) (string, error) {
	name, ok := strings.CutPrefix(path, "/dev/")
	if !ok {
		return "", errors.New("no such device")
	}
	return name, nil
}

// DevicesFile implements lvm.Devices.
func (h *Host) DevicesFile(string) bool { return true }

var filterSetting = regexp.MustCompile(`devices/(?:global_)?filter=(\[[^]]*(?:\][^]]*)*?"\])`)

// unseen returns the groups that a command with these settings does not read.
func (h *Host) unseen(config string) (keys []string) {
	if h.IgnoresFilters {
		return nil
	}
	var patterns []string
	if m := filterSetting.FindStringSubmatch(config); m != nil {
		if err := json.Unmarshal([]byte(m[1]), &patterns); err != nil {
			panic(err)
		}
	}
	for key, g := range h.groups {
		if rejected(patterns, g.Device) || rejected(h.Settings.GlobalFilter, g.Device) || rejected(h.Settings.Filter, g.Device) {
			keys = append(keys, key)
		}
	}
	return keys
}

// rejected says whether the first pattern that matches rejects a device.
func rejected(patterns []string, device string) bool {
	for _, p := range patterns {
		if regexp.MustCompile(p[2 : len(p)-1]).MatchString(device) {
			return p[0] == 'r'
		}
	}
	return false
}

// ambiguous returns the first group that operands name and that does not exist exactly once, and
// how many such groups there are.
func (h *Host) ambiguous(operands, unseen []string) (name string, n int, is bool) {
	for _, operand := range operands {
		name, _, _ := strings.Cut(operand, "/")
		n := 0
		for key, g := range h.groups {
			if g.Name == name && !slices.Contains(unseen, key) {
				n++
			}
		}
		if n != 1 {
			return name, n, true
		}
	}
	return "", 1, false
}
