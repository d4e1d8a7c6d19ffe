package lvmtest

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// ThinPool is the state of a thin pool, except its extents for data.
type ThinPool struct {
	// Metadata is how many extents its metadata and the spare take together.
	Metadata int64
	// Filled is how much of the metadata is taken, in percent.
	Filled int
	// Blocks of metadata; 1000 if it is 0.
	Blocks int64
	// Mode is the kernel's name for the mode of the pool: empty while the pool works.
	Mode string
	// NeedsCheck says that its metadata needs a check, and Unzeroed that it does not zero blocks.
	NeedsCheck, Unzeroed bool
	// Parts are the logical volumes "_tdata" and "_tmeta" that are active although the pool is not,
	// and whether they are read-only.
	Parts map[string]bool
}

// block is how many bytes a thin pool gives its volumes at a time.
const block = 64 << 10

// AddThinPool makes an active thin pool.
func (h *Host) AddThinPool(group, name string, extents int64) {
	h.Edit(func(groups map[string]*Group) string {
		g := groups[group]
		g.Volumes[name] = &Volume{Extents: extents, Active: true, Thin: &ThinPool{Metadata: 2, Filled: 11}}
		g.Seqno += 3
		return g.Device
	})
}

// PutForeignThin makes a thin volume that bears no tag. With an origin it is a snapshot.
func (h *Host) PutForeignThin(group, pool, name, origin string, size int64) {
	h.Edit(func(groups map[string]*Group) string {
		g := groups[group]
		g.Volumes[name] = &Volume{Extents: (size + Unit - 1) / Unit, Pool: pool, Origin: origin}
		g.Seqno += 2
		return g.Device
	})
}

// createThin makes a thin volume. LVM writes the metadata twice, before and after it
// tells the kernel.
func (h *Host) createThin(g *Group, a arguments, fail failure) ([]byte, error) {
	name, pool := a.flags["--name"], a.flags["--thinpool"]
	extents, err := extents(a.flags["--virtualsize"])
	for _, carved := range []string{"--size", "--zero", "--wipesignatures"} {
		if _, given := a.flags[carved]; given {
			return fail("%s would be about the pool", carved)
		}
	}
	switch {
	case err != nil:
		return fail("%v", err)
	case g == nil:
		return fail("Volume group %q not found", a.operands[0])
	case g.Missing > 0:
		return fail("Cannot change VG %s while PVs are missing.", g.Name)
	case g.Volumes[pool] == nil || g.Volumes[pool].Thin == nil:
		return fail("Pool %s not found in Volume group %s.", pool, g.Name)
	case g.mode(pool) != "rw":
		return fail("Cannot create new thin volume, free space in thin pool %s/%s reached threshold.", g.Name, pool)
	case g.Volumes[name] != nil:
		return fail("Logical Volume %q already exists in volume group %q", name, g.Name)
	}
	g.Volumes[name] = &Volume{Extents: extents, Tags: a.tags, Active: true, Pool: pool}
	g.Seqno++
	g.commit(h)
	return nil, nil
}

// createThinSnapshot makes a thin snapshot in the pool of its origin. LVM writes the
// metadata as often as for a thin volume, whether the origin is active or not.
func (h *Host) createThinSnapshot(a arguments, fail failure) ([]byte, error) {
	g, origin := h.device("/dev/" + a.operands[0])
	name := a.flags["--name"]
	switch {
	case origin == nil:
		return fail("Failed to find logical volume %q", a.operands[0])
	case origin.Pool == "":
		return fail("Please specify either size or extents with snapshots.")
	case g.Missing > 0:
		return fail("Cannot change VG %s while PVs are missing.", g.Name)
	case g.mode(origin.Pool) != "rw":
		return fail("Cannot create new thin volume, free space in thin pool %s/%s reached threshold.", g.Name, origin.Pool)
	case g.Volumes[name] != nil:
		return fail("Logical Volume %q already exists in volume group %q", name, g.Name)
	}
	skip := a.flags["--setactivationskip"] != "n" // which LVM sets for thin snapshots by itself
	g.Volumes[name] = &Volume{
		Extents: origin.Extents, Tags: a.tags, Active: !skip, Skip: skip, ReadOnly: a.flags["--permission"] == "r",
		Pool: origin.Pool, Origin: a.operands[0][len(g.Name)+1:], Signature: origin.Signature, Content: origin.Content,
		own: maps.Clone(origin.own),
	}
	g.Seqno++
	g.commit(h)
	return nil, nil
}

// remove removes a logical volume as LVM does with --yes. It removes a thin pool with its
// volumes, and an origin with its snapshots unless they are thin.
func (g *Group) remove(id string) {
	for name, v := range g.Volumes {
		switch {
		case v.Pool == id, v.Origin == id && v.Pool == "":
			delete(g.Volumes, name)
		case v.Origin == id:
			v.Origin = ""
		}
	}
	delete(g.Volumes, id)
}

// taken is how much of a thin pool holds data, in bytes.
func (g *Group) taken(pool string) (data int64) {
	for _, v := range g.Volumes {
		if v.Pool == pool {
			data += v.Data
		}
	}
	return min(data, g.Volumes[pool].Extents*Unit)
}

func (g *Group) mode(pool string) string {
	v := g.Volumes[pool]
	full := ""
	if g.taken(pool) == v.Extents*Unit {
		full = "out_of_data_space"
	}
	return cmp.Or(v.Thin.Mode, full, "rw")
}

// live says whether the kernel has a thin pool, and layered whether the pool is below a device
// of its name.
func (g *Group) live(pool string) (live, layered bool) {
	for _, v := range g.Volumes {
		layered = layered || v.Pool == pool && v.Active
	}
	return layered || g.Volumes[pool].Active, layered
}

// check plays the check of a thin pool's metadata, which LVM runs before it activates the pool or
// a volume in it. LVM's caller decides whether sound metadata may then be written again.
func (g *Group) check(name string, a arguments) {
	name = cmp.Or(g.Volumes[name].Pool, name)
	pool := g.Volumes[name]
	if pool == nil || pool.Thin == nil || a.flags["--activate"] != "y" {
		return
	}
	if live, _ := g.live(name); !live && strings.Contains(a.flags["--config"], "--clear-needs-check-flag") {
		pool.Thin.NeedsCheck = false
	}
}

// deactivatePart plays lvchange for a part of a thin pool, and says whether the operand is one.
// A pool that is active holds its parts.
func (h *Host) deactivatePart(operand string, a arguments) (is bool, err error) {
	at := strings.LastIndex(operand, "_t")
	if at < 0 || a.flags["--activate"] != "n" {
		return false, nil
	}
	g, pool := h.device("/dev/" + operand[:at])
	if pool == nil || pool.Thin == nil {
		return false, nil
	}
	if live, _ := g.live(operand[len(g.Name)+1 : at]); live {
		return true, fmt.Errorf("logical volume %s in use", operand)
	}
	delete(pool.Thin.Parts, operand[at:])
	return true, nil
}

// prohibited returns why LVM does not activate a pool or a volume of it, or nil.
func (g *Group) prohibited(name string) error {
	name = cmp.Or(g.Volumes[name].Pool, name)
	pool := g.Volumes[name]
	if pool == nil || pool.Thin == nil {
		return nil
	}
	for _, part := range slices.Sorted(maps.Keys(pool.Thin.Parts)) {
		return fmt.Errorf("activation of logical volume %[1]s/%[2]s is prohibited while logical volume %[1]s/%[2]s%[3]s is active", g.Name, name, part)
	}
	return nil
}

// Target implements lvm.Devices.
func (h *Host) Target(device string) (kind, status string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, g := range h.groups {
		for name, v := range g.Volumes {
			mapping := g.mapping(name)
			if v.Thin == nil {
				continue
			}
			live, layered := g.live(name)
			switch {
			case layered && device == mapping:
				return "linear", "", nil
			case live && !layered && device == mapping, layered && device == mapping+"-tpool":
				return "thin-pool", g.status(name), nil
			}
		}
	}
	return "", "", fmt.Errorf("device %s: %w", device, fs.ErrNotExist)
}

func (g *Group) status(pool string) string {
	v := g.Volumes[pool]
	if v.Thin.Mode == "Fail" {
		return "Fail"
	}
	check := "-"
	if v.Thin.NeedsCheck {
		check = "needs_check"
	}
	blocks := cmp.Or(v.Thin.Blocks, 1000)
	return fmt.Sprintf("1 %d/%d %d/%d - %s discard_passdown queue_if_no_space %s 256 ",
		int64(v.Thin.Filled)*blocks/100, blocks, (g.taken(pool)+block-1)/block, v.Extents*Unit/block, g.mode(pool), check)
}

func doubled(name string) string { return strings.ReplaceAll(name, "-", "--") }

// health returns LVM's name for the health of a pool. LVM learns it from the kernel.
func (g *Group) health(v *Volume) string {
	if v.Thin == nil {
		return ""
	}
	for name, pool := range g.Volumes {
		if live, _ := g.live(name); pool == v && live {
			return map[string]string{"out_of_data_space": "out_of_data", "ro": "metadata_read_only", "Fail": "failed"}[g.mode(name)]
		}
	}
	return ""
}

func (v *Volume) attr() string {
	kind, write, state, zero, skip := "-", "w", "a", "-", "-"
	switch {
	case v.Thin != nil:
		kind = "t"
	case v.Pool != "":
		kind = "V"
	case v.Origin != "":
		kind = "s"
	}
	if v.Broken {
		state = "I"
	}
	if v.Thin != nil && !v.Thin.Unzeroed {
		zero = "z"
	}
	if v.ReadOnly {
		write = "r"
	}
	if v.Skip {
		skip = "k"
	}
	return kind + write + "i-" + state + "-t" + zero + "-" + skip
}

func (v *Volume) layout() string {
	switch {
	case v.Thin != nil:
		return "thin,pool"
	case v.Pool != "":
		return "thin,sparse"
	}
	return cmp.Or(v.Layout, "linear")
}
