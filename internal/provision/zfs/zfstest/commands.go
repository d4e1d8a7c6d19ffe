package zfstest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth.dev/berth/internal/run"
)

// arguments are the parsed arguments of a command.
type arguments struct {
	flags    map[string]string
	props    map[string]string // of -o
	operands []string
}

// valued are the options that have a value.
var valued = map[string][]string{"list": {"-t", "-o"}, "create": {"-V", "-b", "-o"}, "clone": {"-o"}, "snapshot": {"-o"}, "receive": {"-o"}, "send": {"-i", "-t"}, "get": {"-o", "-s"},
	"zpool create": {"-o", "-O"}, "zpool add": {"-o"}, "zpool import": {"-o", "-d"}, "zpool get": {"-o"}}

func parse(operation string, args []string) arguments {
	a := arguments{flags: map[string]string{}, props: map[string]string{}}
	for i := 0; i < len(args); i++ {
		switch {
		case slices.Contains(valued[operation], args[i]):
			a.flags[args[i]] = args[i+1]
			k, v, _ := strings.Cut(args[i+1], "=")
			if args[i] == "-o" && operation != "list" {
				a.props[k] = v
			}
			i++
		case strings.HasPrefix(args[i], "-"):
			a.flags[args[i]] = ""
		default:
			a.operands = append(a.operands, args[i])
		}
	}
	return a
}

// zfsProgram plays the program zfs.
type zfsProgram struct{ *Host }

func (h zfsProgram) do(c run.Command) ([]byte, error) {
	var out []byte
	var err error
	switch c.Operation {
	case "zfs send":
		err = h.send(c)
	case "zfs receive":
		err = h.receive(c)
	default:
		h.mu.Lock()
		defer h.mu.Unlock()
		h.txg++
		out, err = h.answer(c)
	}
	if err != nil {
		return nil, &run.ExitError{Command: c, Code: 1, Stderr: err.Error()}
	}
	return out, nil
}

func (h zfsProgram) answer(c run.Command) ([]byte, error) {
	if c.Args[0] == "version" {
		return []byte(h.Tools + "\nzfs-kmod-" + h.Version + "\n"), nil
	}
	if c.Program == "zpool" {
		return zpoolProgram(h).zpool(c.Args[0], c.Args[1:])
	}
	if c.Args[0] == "get" {
		return h.get(c.Args[1:])
	}
	a := parse(c.Args[0], c.Args[1:])
	name := a.operands[len(a.operands)-1]
	z := h.zpools[zpoolOf(name)]
	switch {
	case z == nil:
		return nil, fmt.Errorf("cannot open '%s': dataset does not exist", name)
	case c.Args[0] == "list":
		if _, all := a.flags["-r"]; all {
			return h.list(name, strings.Contains(a.flags["-t"], "snapshot")), nil
		}
		return h.listNamed(a.operands)
	}
	return nil, h.change(z, c.Args[0], a, name)
}

func (h zfsProgram) change(z *Zpool, operation string, a arguments, name string) error {
	switch operation {
	case "create":
		return h.create(z, a, name)
	case "clone":
		return h.clone(z, a, name)
	case "set":
		return h.set(z, a.operands[:len(a.operands)-1], name)
	case "rename":
		return h.rename(z, a.operands[0], name)
	case "destroy":
		return h.destroy(z, a, name)
	case "snapshot":
		return h.snapshot(a, name)
	case "rollback":
		return h.rollback(name)
	case "promote":
		return h.promote(z, name)
	}
	return fmt.Errorf("unrecognized command '%s'", operation)
}

// absent returns nil if a dataset can be made.
func (z *Zpool) absent(name string) error {
	if z.Datasets[name] != nil {
		return fmt.Errorf("'%s': dataset already exists", name)
	}
	if z.Datasets[parentOf(name)] == nil {
		return fmt.Errorf("'%s': parent does not exist", name)
	}
	return nil
}

// reservation returns how many bytes ZFS reserves for a zvol with blocks of 16 KiB.
func reservation(volsize int64) int64 { return volsize + volsize/64 + 7<<18 }

func (h zfsProgram) create(z *Zpool, a arguments, name string) error {
	if err := z.absent(name); err != nil {
		return err
	}
	d := filesystem()
	d.Props = a.props
	if size := a.flags["-V"]; size != "" {
		d.Volsize, _ = strconv.ParseInt(size, 10, 64)
		d.Refreservation = reservation(d.Volsize)
		d.Block, _ = strconv.ParseInt(a.flags["-b"], 10, 64)
	}
	return h.put(z, name, d)
}

// promise takes size, quota and reservation out of the properties.
func (d *Dataset) promise(props map[string]string) error {
	for key, to := range map[string]*int64{"volsize": &d.Volsize, "refquota": &d.Refquota, "refreservation": &d.Refreservation} {
		if value := props[key]; value != "" && value != "auto" {
			*to, _ = strconv.ParseInt(value, 10, 64)
		}
	}
	if props["refreservation"] == "auto" {
		d.Refreservation = reservation(d.Volsize)
	}
	if d.Refquota > 0 && d.Refreservation > d.Refquota {
		return fmt.Errorf("cannot set refreservation: size is greater than the quota")
	}
	return nil
}

func (h zfsProgram) clone(z *Zpool, a arguments, name string) error {
	of, s := h.zpools.findSnapshot(a.operands[0])
	if s == nil {
		return fmt.Errorf("cannot open '%s': dataset does not exist", a.operands[0])
	}
	if err := z.absent(name); err != nil {
		return err
	}
	d := filesystem()
	d.Props, d.Volsize, d.Content, d.Origin, d.Block = a.props, s.Volsize, s.Content, a.operands[0], of.Block
	return h.put(z, name, d)
}

// put adds a dataset with its properties. If there is no room for its reservation, ZFS has
// made the dataset already, and cannot destroy a zvol that udev looks at.
func (h zfsProgram) put(z *Zpool, name string, d *Dataset) error {
	if err := d.promise(d.Props); err != nil {
		return err
	}
	d.Created = time.Now()
	if d.Refreservation > z.available() {
		if d.Refreservation = 0; h.Lingering && d.Volsize > 0 {
			z.Datasets[name] = d
		}
		return fmt.Errorf("cannot create '%s': out of space", name)
	}
	z.Datasets[name] = d
	return nil
}

func (h zfsProgram) set(z *Zpool, props []string, name string) error {
	d := z.Datasets[name]
	if d == nil {
		return fmt.Errorf("cannot open '%s': dataset does not exist", name)
	}
	size, reserved := d.Volsize, d.Refreservation
	user := map[string]string{}
	for _, p := range props {
		switch k, v, _ := strings.Cut(p, "="); k {
		case "volsize":
			size, _ = strconv.ParseInt(v, 10, 64)
			if d.Refreservation == reservation(d.Volsize) {
				reserved = reservation(size)
			}
		case "quota":
			d.Quota, _ = strconv.ParseInt(v, 10, 64)
		case "refquota": // it is set, and stays so if the rest of the command fails
			d.Refquota, _ = strconv.ParseInt(v, 10, 64)
		case "refreservation":
			reserved, _ = strconv.ParseInt(v, 10, 64)
			if v == "auto" {
				reserved = reservation(size)
			}
			if d.Refquota > 0 && reserved > d.Refquota {
				return fmt.Errorf("cannot set property for '%s': size is greater than the quota", name)
			}
		default:
			user[k] = v
		}
	}
	if reserved-d.Refreservation > z.available() {
		return fmt.Errorf("cannot set property for '%s': out of space", name)
	}
	d.Volsize, d.Refreservation = size, reserved
	maps.Copy(d.Props, user)
	return nil
}

func (h zfsProgram) rename(z *Zpool, from, to string) error {
	d := z.Datasets[from]
	if d == nil {
		return fmt.Errorf("cannot open '%s': dataset does not exist", from)
	}
	if err := z.absent(to); err != nil {
		return err
	}
	delete(z.Datasets, from)
	z.Datasets[to] = d
	for _, other := range z.Datasets {
		if at, ok := strings.CutPrefix(other.Origin, from+"@"); ok {
			other.Origin = to + "@" + at
		}
	}
	return nil
}

func (h zfsProgram) snapshot(a arguments, name string) error {
	of, at, _ := strings.Cut(name, "@")
	_, d := h.zpools.find(of)
	switch {
	case d == nil:
		return fmt.Errorf("cannot open '%s': dataset does not exist", of)
	case d.Snapshots[at] != nil:
		return fmt.Errorf("cannot create snapshot '%s': dataset already exists", name)
	}
	d.Snapshots[at] = &Snapshot{Props: a.props, Volsize: d.Volsize, Content: d.Content, TXG: h.txg}
	d.Written, d.headed = false, false
	return nil
}

func (h zfsProgram) rollback(name string) error {
	d, s := h.zpools.findSnapshot(name)
	if s == nil {
		return fmt.Errorf("cannot open '%s': dataset does not exist", name)
	}
	for _, other := range d.Snapshots {
		if other.TXG > s.TXG {
			return fmt.Errorf("cannot rollback to '%s': more recent snapshots or bookmarks exist", name)
		}
	}
	d.Content, d.Volsize, d.Written, d.headed = s.Content, s.Volsize, false, true
	return nil
}
