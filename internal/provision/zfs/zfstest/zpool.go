package zfstest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Made has the vdevs and options of a zpool.
type Made struct {
	// Comment on the zpool.
	Comment string
	// Vdevs are lists of disks, each with its layout first unless it is a single disk.
	Vdevs [][]string
	// Ashift of the last vdev, and Cachefile that notes the zpool.
	Ashift, Cachefile string
}

// onDisks is a zpool that is not imported.
type onDisks struct {
	id, name string
	*Zpool
}

// Alias implements zfs.Labels.
func (h *Host) Alias(node string) string {
	if alias := h.Aliases[node]; alias != "" {
		return alias
	}
	return node
}

// Udev implements zfs.Labels.
func (h *Host) Udev() bool { return !h.NoUdev }

// Reboot leaves all zpools on their disks, and imports none.
func (h *Host) Reboot() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(h.zpools)) {
		h.leave(name, h.zpools[name])
		delete(h.zpools, name)
	}
}

// Leave puts a zpool of others on a disk, not imported.
func (h *Host) Leave(name, comment, disk string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leave(name, &Zpool{State: "ONLINE", Size: 1 << 30, Datasets: map[string]*Dataset{name: filesystem()}, Made: Made{Comment: comment, Vdevs: [][]string{{disk}}}})
}

func (h *Host) leave(name string, z *Zpool) {
	h.txg++
	h.left = append(h.left, onDisks{strconv.FormatInt(8_000_000_000+h.txg, 10), name, z})
}

// zpoolProgram plays the program zpool.
type zpoolProgram struct{ *Host }

// zpool runs a command; mu is held.
func (h zpoolProgram) zpool(operation string, args []string) (out []byte, err error) {
	a := parse("zpool "+operation, args)
	switch operation {
	case "create":
		return nil, h.makeZpool(a)
	case "add":
		return nil, h.growZpool(a)
	case "import":
		if len(a.operands) == 0 {
			return h.printLeft(args), nil
		}
		return nil, h.importZpool(a, args)
	case "sync":
		return nil, nil
	case "get":
		z := h.zpools[a.operands[1]]
		if z == nil {
			return nil, fmt.Errorf("cannot open '%s': no such pool", a.operands[1])
		}
		return []byte(cmp.Or(z.Made.Comment, "-") + "\n"), nil
	}
	return nil, fmt.Errorf("unrecognized command '%s'", operation)
}

func (h zpoolProgram) makeZpool(a arguments) error {
	name, disks := a.operands[0], a.operands[1:]
	size, err := h.labelVdev(disks)
	if err != nil {
		return err
	}
	if h.zpools[name] != nil {
		return fmt.Errorf("cannot create '%s': pool already exists", name)
	}
	h.zpools[name] = &Zpool{
		State: "ONLINE", Size: size, Datasets: map[string]*Dataset{name: filesystem()},
		Made: Made{Comment: a.props["comment"], Vdevs: [][]string{disks}, Ashift: a.props["ashift"], Cachefile: a.props["cachefile"]},
	}
	return nil
}

func (h zpoolProgram) growZpool(a arguments) error {
	z, disks := h.zpools[a.operands[0]], a.operands[1:]
	if z == nil {
		return fmt.Errorf("cannot open '%s': no such pool", a.operands[0])
	}
	if has, gets := layoutOf(z.Made.Vdevs[0]), layoutOf(disks); has != gets {
		return fmt.Errorf("mismatched replication level: pool uses %s and new vdev is %s", has, gets)
	}
	size, err := h.labelVdev(disks)
	if err != nil {
		return err
	}
	z.Made.Vdevs, z.Made.Ashift, z.Size = append(z.Made.Vdevs, disks), a.props["ashift"], z.Size+size
	return nil
}

func layoutOf(vdev []string) string {
	if strings.HasPrefix(vdev[0], "/") {
		return "disk"
	}
	return fmt.Sprint(vdev[0], len(vdev)-1)
}

// labelVdev writes to disks one after the other, and returns the room on them, in bytes.
func (h zpoolProgram) labelVdev(vdev []string) (size int64, err error) {
	disks, lost := vdev, 0
	if !strings.HasPrefix(vdev[0], "/") {
		lost = map[string]int{"mirror": len(vdev) - 2, "raidz1": 1, "raidz2": 2}[vdev[0]]
		disks = vdev[1:]
	}
	for _, disk := range disks {
		node := disk
		for of, alias := range h.Aliases {
			if alias == disk {
				node = of
			}
		}
		if size, err = h.Label(node); err != nil {
			return 0, fmt.Errorf("cannot label '%s': %w", disk, err)
		}
	}
	return size * int64(len(disks)-lost), nil
}

// isOn says whether the options of a command name a partition of a zpool's disk.
func (z onDisks) isOn(args []string) bool {
	for _, disk := range slices.Concat(z.Made.Vdevs...) {
		if slices.Contains(args, disk+"1") || slices.Contains(args, disk+"-part1") {
			return true
		}
	}
	return false
}

func (h zpoolProgram) printLeft(args []string) []byte {
	var b strings.Builder
	for _, z := range h.left {
		if !z.isOn(args) {
			continue
		}
		fmt.Fprintf(&b, "   pool: %s\n     id: %s\n  state: ONLINE\naction: The pool can be imported using its name or numeric identifier, if: \n\tit: is wanted.\n", z.name, z.id)
		if z.Made.Comment != "" {
			fmt.Fprintf(&b, "comment: %s\n", z.Made.Comment)
		}
		fmt.Fprintf(&b, " config:\n\n\t%s  ONLINE\n\n", z.name)
	}
	return []byte(b.String())
}

func (h zpoolProgram) importZpool(a arguments, args []string) error {
	for i, z := range h.left {
		if z.id != a.operands[0] || !z.isOn(args) {
			continue
		}
		if h.zpools[z.name] != nil {
			return fmt.Errorf("cannot import '%s': a pool with that name already exists", z.name)
		}
		h.zpools[z.name] = z.Zpool
		z.Made.Cachefile = a.props["cachefile"]
		h.left = slices.Delete(h.left, i, i+1)
		return nil
	}
	return fmt.Errorf("cannot import '%s': no such pool available", a.operands[0])
}

// Take takes a zpool out, to be put into another machine.
func (h *Host) Take(name string) *Zpool {
	h.mu.Lock()
	defer h.mu.Unlock()
	z := h.zpools[name]
	delete(h.zpools, name)
	return z
}
