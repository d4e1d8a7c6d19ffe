package zfstest

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// list prints a zpool as `zfs list -Hp` does, for the columns of package zfs.
func (h zfsProgram) list(name string, snapshots bool) []byte {
	var out bytes.Buffer
	z := h.zpools[zpoolOf(name)]
	for _, name := range slices.Sorted(maps.Keys(z.Datasets)) {
		d := z.Datasets[name]
		h.print(&out, name, d)
		if !snapshots {
			continue
		}
		for _, at := range slices.Sorted(maps.Keys(d.Snapshots)) {
			h.printSnapshot(&out, name, at, d.Snapshots[at])
		}
	}
	return out.Bytes()
}

// listNamed prints those of the named datasets and snapshots that are there, as ZFS does.
func (h zfsProgram) listNamed(names []string) (printed []byte, err error) {
	var out bytes.Buffer
	for _, name := range slices.Sorted(slices.Values(names)) {
		of, at, _ := strings.Cut(name, "@")
		_, d := h.zpools.find(name)
		_, s := h.zpools.findSnapshot(name)
		switch {
		case d != nil:
			h.print(&out, name, d)
		case s != nil:
			h.printSnapshot(&out, of, at, s)
		default:
			err = fmt.Errorf("cannot open '%s': dataset does not exist", name)
		}
	}
	return out.Bytes(), err
}

// guidOf returns a guid that no other dataset or snapshot has.
func guidOf(of *int64) string {
	if *of == 0 {
		*of = guids.Add(1)
	}
	return text(*of)
}

// copied are the columns of the record of a copy, the last of all.
var copied = []string{"berth.dev:copy.1", "berth.dev:copy.2"}

// labels are the columns of labels.
var labels = []string{"berth.dev:label:namespace", "berth.dev:label:claim"}

// user are the columns of user properties.
var user = []string{"berth.dev:pool", "berth.dev:volume", "berth.dev:fs", "berth.dev:source", "berth.dev:inline", "berth.dev:snapshot", "berth.dev:size", "berth.dev:taken"}

func (h zfsProgram) print(out *bytes.Buffer, name string, d *Dataset) {
	z := h.zpools[zpoolOf(name)]
	kind, size := "filesystem", "-"
	if d.Volsize > 0 {
		kind, size = "volume", text(d.Volsize)
	}
	written := int64(0)
	if d.Volsize == 0 {
		written = 1024 // ZFS itself writes, also after a rollback
	}
	if d.Written {
		written = 4 << 20
	}
	line := []string{
		name, kind, text(z.used(name)), text(z.available()), text(d.referenced()), text(written), size,
		text(d.Refreservation), text(d.Refquota), text(d.Quota), cmp.Or(d.Origin, "-"), "-", "1", text(max(d.Created.Unix(), 0)),
	}
	for _, p := range user {
		line = append(line, cmp.Or(z.property(name, p), "-"))
	}
	canMount := "-"
	if d.Volsize == 0 {
		canMount = cmp.Or(d.Props["canmount"], "on")
	}
	line = append(line, canMount, guidOf(&d.guid))
	for _, p := range labels {
		line = append(line, cmp.Or(z.property(name, p), "-"))
	}
	mode := "-"
	if d.Volsize > 0 || d.half {
		mode = cmp.Or(z.property(name, "volmode"), "default")
	}
	line = append(line, mode, cmp.Or(d.token(name), "-"))
	for _, p := range copied {
		line = append(line, cmp.Or(z.property(name, p), "-"))
	}
	out.WriteString(strings.Join(line, "\t") + "\n")
}

func (h zfsProgram) printSnapshot(out *bytes.Buffer, of, at string, s *Snapshot) {
	z := h.zpools[zpoolOf(of)]
	deferred, volsize := "off", "-"
	if s.Volsize > 0 {
		volsize = text(s.Volsize)
	}
	if s.Deferred {
		deferred = "on"
	}
	line := []string{
		of + "@" + at, "snapshot", "0", "-", text(s.referenced()), "0", volsize,
		"-", "-", "-", "-", deferred, text(s.TXG), "1700000000",
	}
	for _, p := range user {
		line = append(line, cmp.Or(s.Props[p], z.property(of, p), "-"))
	}
	line = append(line, "-", guidOf(&s.guid))
	for _, p := range labels {
		line = append(line, cmp.Or(z.property(of, p), "-"))
	}
	line = append(line, "-", "-")
	for _, p := range copied {
		line = append(line, cmp.Or(z.property(of, p), "-"))
	}
	out.WriteString(strings.Join(line, "\t") + "\n")
}

// property returns a dataset's own property, or the one inherited from the datasets above.
func (z *Zpool) property(name, key string) string {
	for ; name != ""; name = parentOf(name) {
		if v := z.Datasets[name].Props[key]; v != "" {
			return v
		}
	}
	return ""
}

// metadata is the number of bytes that any dataset takes.
const metadata = 24 << 10

func (d *Dataset) referenced() int64 { return metadata + d.Data + int64(len(d.Content)) }

func (s *Snapshot) referenced() int64 { return metadata + int64(len(s.Content)) }

// used returns how many bytes a dataset takes, with its snapshots and all below it.
func (z *Zpool) used(name string) (used int64) {
	for other, d := range z.Datasets {
		if other != name && !strings.HasPrefix(other, name+"/") {
			continue
		}
		used += max(d.Refreservation, d.referenced())
		for _, s := range d.Snapshots {
			used += s.referenced()
		}
	}
	return used
}

func (z *Zpool) available() (available int64) {
	for name := range z.Datasets {
		if parentOf(name) == "" {
			available = z.Size - z.used(name)
		}
	}
	return available
}

func text(n int64) string { return strconv.FormatInt(n, 10) }
