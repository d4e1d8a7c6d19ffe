package lvmtest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"berth.dev/berth/internal/run"
)

// arguments are the parsed arguments of a command.
type arguments struct {
	flags    map[string]string
	tags     []string // --addtag
	gone     []string // --deltag
	operands []string
}

// valued are the options that have a value.
var valued = []string{
	"--config", "--reportformat", "--units", "--configreport", "-o", "--wipesignatures", "--zero", "--size", "--name", "--addtag", "--activate",
	"--type", "--thinpool", "--virtualsize", "--permission", "--setactivationskip", "--poolmetadatasize", "--chunksize",
	"--metadatasize", "--select",
}

func parse(args []string) (a arguments) {
	a.flags = map[string]string{}
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--addtag":
			i++
			a.tags = append(a.tags, args[i])
		case args[i] == "--deltag":
			i++
			a.gone = append(a.gone, args[i])
		case slices.Contains(valued, args[i]):
			a.flags[args[i]] = args[i+1]
			i++
		case strings.HasPrefix(args[i], "-"):
			a.flags[args[i]] = ""
		default:
			a.operands = append(a.operands, args[i])
		}
	}
	return a
}

func (h *Host) do(c run.Command) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := parse(c.Args[1:])
	fail := func(format string, args ...any) ([]byte, error) {
		return nil, &run.ExitError{Command: c, Code: 5, Stderr: fmt.Sprintf(format, args...)}
	}
	if c.Operation == "lvmconfig" {
		if h.Settings.None && a.flags["--config"] == "" {
			return fail("Cannot clone NULL config node.\nFailed to clone current config tree.")
		}
		return h.Settings.show(), nil
	}
	unseen := h.unseen(a.flags["--config"])
	if name, n, is := h.ambiguous(a.operands, unseen); is && n > 1 {
		return fail("Multiple VGs found with the same name: skipping %s", name)
	} else if is && c.Operation != "vgcreate" && c.Operation != "vgextend" {
		return fail("Volume group %q not found", name)
	}
	switch c.Operation {
	case "vgcreate", "vgextend":
		return h.takeDisks(c.Operation, a, fail)
	case "vgmknodes":
		return h.remake(a.operands, fail)
	}
	return h.doAssured(c, a, unseen, fail)
}

// doAssured plays the commands that ask before they change anything, and those that change nothing.
func (h *Host) doAssured(c run.Command, a arguments, unseen []string, fail failure) ([]byte, error) {
	if _, yes := a.flags["--yes"]; !yes && !strings.HasPrefix(c.Operation, "fullreport") && c.Operation != "vgs" {
		return fail("a question nobody answers")
	}
	switch c.Operation {
	case "fullreport":
		return h.report(a.operands, unseen)
	case "vgs":
		return h.names(unseen)
	case "lvcreate":
		delete(h.nodes, "/dev/"+strings.TrimSuffix(a.operands[0], "/")+"/"+a.flags["--name"])
		return h.create(a, fail)
	case "lvextend", "lvremove", "lvchange", "lvconvert":
		return h.edit(c.Operation, a, fail)
	}
	return fail("no command %s", c.Operation)
}

type failure func(format string, args ...any) ([]byte, error)

func (h *Host) create(a arguments, fail failure) ([]byte, error) {
	g, name := h.groups[a.operands[0]], a.flags["--name"]
	switch _, pool := a.flags["--thinpool"]; {
	case a.flags["--type"] == "thin-pool" && h.lacks("thin-pool") != "":
		return fail("%s", h.lacks("thin-pool"))
	case a.flags["--type"] == "thin-pool":
		return h.createPool(g, a, fail)
	case a.flags["--type"] == "thin" && !pool:
		return h.createThinSnapshot(a, fail)
	case a.flags["--type"] == "snapshot":
		return h.createCow(a, fail)
	case pool:
		return h.createThin(g, a, fail)
	}
	switch extents, err := extents(a.flags["--size"]); {
	case err != nil:
		return fail("%v", err)
	case g == nil:
		return fail("Volume group %q not found", a.operands[0])
	case g.Missing > 0:
		return fail("Cannot change VG %s while PVs are missing.", g.Name)
	case g.Volumes[name] != nil:
		return fail("Logical Volume %q already exists in volume group %q", name, g.Name)
	case extents > g.free():
		return fail("Volume group %q has insufficient free space", g.Name)
	default:
		v := &Volume{Extents: extents, Tags: a.tags, Active: true}
		g.Volumes[name] = v
		g.zero(v, 0, 4096) // --zero and --wipesignatures clear this much, and no more
		g.commit(h)
		return nil, nil
	}
}

func (h *Host) edit(operation string, a arguments, fail failure) ([]byte, error) {
	if operation == "lvremove" {
		return h.remove(a, fail)
	}
	for _, operand := range a.operands {
		if is, err := h.deactivatePart(operand, a); err != nil {
			return fail("%v", err)
		} else if is {
			continue
		}
		g, v := h.device("/dev/" + operand)
		if v == nil {
			return fail("Failed to find logical volume %q", operand)
		}
		id := operand[strings.Index(operand, "/")+1:]
		if !g.selected(id, a) {
			continue
		}
		switch operation {
		case "lvextend":
			if err := g.extend(v, a); err != nil {
				return fail("extending %s: %v", operand, err)
			}
		case "lvchange":
			if err := g.prohibited(id); err != nil && a.flags["--activate"] == "y" {
				return fail("%v", err)
			}
			g.check(id, a)
			written, err := h.alter(v, operand, a)
			if err != nil {
				return fail("%v", err)
			}
			if !written {
				continue
			}
		case "lvconvert":
			if err := g.convert(v, a); err != nil {
				return fail("%s: %v", operand, err)
			}
		}
		g.commit(h)
	}
	return nil, nil
}

// convert plays lvconvert.
func (g *Group) convert(v *Volume, a arguments) error {
	if _, split := a.flags["--splitsnapshot"]; !split {
		return errors.New("what is asked of it is not played here")
	}
	return g.split(v)
}

// alter plays lvchange, and says whether it writes to the group.
func (h *Host) alter(v *Volume, operand string, a arguments) (written bool, err error) {
	if lacks := h.lacks("thin-pool"); lacks != "" && a.flags["--activate"] == "y" && (v.Pool != "" || v.Thin != nil) {
		return false, errors.New(lacks)
	}
	was := v.Active
	written, err = v.change(a)
	if v.Active && !was {
		delete(h.nodes, "/dev/"+operand)
	}
	return written, err
}

// remove removes logical volumes, as LVM does. A volume in use does not keep it from removing the
// others. LVM writes the group twice for each thin volume and each snapshot, and once for all
// other volumes together.
func (h *Host) remove(a arguments, fail failure) (out []byte, err error) {
	var written *Group
	for _, operand := range a.operands {
		g, v := h.device("/dev/" + operand)
		switch {
		case v == nil:
			out, err = fail("Failed to find logical volume %q", operand)
		case !g.selected(operand[strings.Index(operand, "/")+1:], a):
		case v.open():
			out, err = fail("Logical volume %s in use.", operand)
		case v.Pool != "" || v.Origin != "":
			g.Seqno++
			g.remove(operand[strings.Index(operand, "/")+1:])
			g.commit(h)
		default:
			g.remove(operand[strings.Index(operand, "/")+1:])
			written = g
		}
	}
	if written != nil {
		written.commit(h)
	}
	return out, err
}

// selected says whether a command is about a volume that it names: LVM leaves out, without an
// error, those that a selection does not name.
func (g *Group) selected(name string, a arguments) bool {
	selection, some := a.flags["--select"]
	of := []string{`lv_name="` + name + `"`, "lv_uuid=" + g.lvUUID(name)}
	return !some || slices.ContainsFunc(strings.Split(selection, " || "), func(s string) bool { return slices.Contains(of, s) })
}

// change plays lvchange on a volume, and says whether LVM writes metadata for it.
func (v *Volume) change(a arguments) (written bool, err error) {
	if _, refresh := a.flags["--refresh"]; refresh || a.flags["--activate"] == "y" {
		if refresh && v.Active || !refresh && v.Thin != nil && !v.Active {
			v.refresh() // also a pool that was active only through its volumes
		}
		v.Active = v.Active || !refresh && !v.Skip
		return false, nil
	}
	if err := v.permit(a.flags["--permission"]); err != nil {
		return false, err
	}
	v.retag(a)
	return true, nil
}

// open says whether its device is open.
func (v *Volume) open() bool { return v.Open || v.held || v.looks > 0 }

// permit makes a volume writable or read-only. It is an error if the volume is so already.
func (v *Volume) permit(how string) error {
	if how == "" {
		return nil
	}
	if v.ReadOnly == (how == "r") {
		return fmt.Errorf("logical volume is already %s", how)
	}
	v.ReadOnly = how == "r"
	return nil
}

func (v *Volume) retag(a arguments) {
	v.Tags = slices.DeleteFunc(v.Tags, func(tag string) bool { return slices.Contains(a.gone, tag) })
	v.Tags = append(v.Tags, a.tags...)
}

func (g *Group) commit(h *Host) {
	g.Seqno++
	h.closed(g.Device)
}

func extents(size string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSuffix(size, "b"), 10, 64)
	return (n + Unit - 1) / Unit, err
}

func (h *Host) names(unseen []string) ([]byte, error) {
	var rows []map[string]string
	for _, key := range slices.Sorted(maps.Keys(h.groups)) {
		if !slices.Contains(unseen, key) {
			rows = append(rows, map[string]string{"vg_name": h.groups[key].Name})
		}
	}
	return json.Marshal(map[string]any{"report": []any{map[string]any{"vg": rows}}})
}

func (h *Host) report(names, unseen []string) ([]byte, error) {
	sections := []any{}
	for _, key := range slices.Sorted(maps.Keys(h.groups)) {
		g := h.groups[key]
		if !slices.Contains(unseen, key) && (len(names) == 0 || slices.Contains(names, g.Name)) {
			sections = append(sections, g.section())
		}
	}
	return json.Marshal(map[string]any{"report": sections})
}

func (g *Group) section() map[string]any {
	lvs := []map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(g.Volumes)) {
		v := g.Volumes[name]
		lvs = append(lvs, map[string]string{
			"lv_uuid": g.lvUUID(name), "lv_name": name, "lv_size": text(v.Extents * Unit), "lv_tags": v.tags(),
			"lv_active_locally": bit(v.Active), "lv_suspended": bit(v.Suspended), "lv_device_open": bit(v.open()), "lv_health_status": g.health(v),
			"lv_attr": v.attr(), "lv_layout": v.layout(), "pool_lv": v.Pool, "origin": v.Origin,
		})
	}
	return map[string]any{
		"vg": []map[string]string{{
			"vg_name": g.Name, "vg_uuid": g.uuid(), "vg_seqno": text(int64(g.Seqno)), //nolint:gosec // small
			"vg_extent_size": text(Unit), "vg_extent_count": text(g.Extents), "vg_free_count": text(g.free()),
			"vg_missing_pv_count": text(int64(g.Missing)), "vg_exported": bit(g.Exported),
			"vg_tags":     strings.Join(g.Tags, ","),
			"vg_mda_size": text(g.AreaSize), "vg_mda_free": text(g.AreaFree),
		}},
		"pv": g.devices(),
		"lv": lvs, "pvseg": []any{}, "seg": []any{},
	}
}

func text(n int64) string { return strconv.FormatInt(n, 10) }

func bit(b bool) string { return cmp.Or(map[bool]string{true: "1"}[b], "0") }
