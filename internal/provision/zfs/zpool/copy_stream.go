package zpool

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// SendCommand writes the stream of a snapshot, or of a head that nothing has open, as the difference to base if that is
// not empty. Blocks go as they are on the disk: compressed, and as large as they are. A stream with other blocks would
// leave a copy that no later stream of another form fits.
func (t CopyTool) SendCommand(base, target string) run.Command {
	args := []string{"-L", "-e", "-c"}
	if base != "" {
		args = append(args, "-i", base)
	}
	return t.Command("send", append(args, target)...)
}

// Busy is in what SendCommand says if its target is a head that is mounted, or that a process has open.
const Busy = "target is busy"

// ResumeCommand writes the rest of a stream.
func (t CopyTool) ResumeCommand(token string) run.Command { return t.Command("send", "-t", token) }

// ReceiveCommand receives a stream into a dataset of its own, which no process sees. base is the
// snapshot that the stream is the difference to. What is received of a stream that ends early stays.
func (t CopyTool) ReceiveCommand(into, base string, files, resumed bool) run.Command {
	args := []string{"-s", "-u"}
	if !resumed {
		props := []string{propVolMode + "=none", "snapdev=hidden", "readonly=on"}
		if files {
			props = []string{"mountpoint=none", "canmount=off", "readonly=on", "sharenfs=off", "sharesmb=off"}
		}
		for _, p := range props {
			args = append(args, "-o", p)
		}
		if base != "" {
			args = append(args, "-o", "origin="+base)
		}
	}
	return t.Command("receive", append(args, into)...)
}

// NamedCommand reports datasets and snapshots in the form of a report.
func (t CopyTool) NamedCommand(names ...string) run.Command {
	kinds := strings.Join([]string{kindFilesystem, kindVolume, kindSnapshot}, ",")
	return t.Command("list", append([]string{"-H", "-p", "-t", kinds, "-o", strings.Join(columns, ",")}, names...)...)
}

// WrittenCommand reports how many bytes of a dataset were written since a snapshot.
func (t CopyTool) WrittenCommand(name, since string) run.Command {
	return t.Command("get", "-H", "-p", "-o", "value", "written@"+since, name)
}

// OwnCommand reports the properties that were set on a dataset itself.
func (t CopyTool) OwnCommand(name string) run.Command {
	return t.Command("get", "-H", "-p", "-s", "local", "-o", "property,value", "all", name)
}

// Own reads the answer to OwnCommand as settings for a clone of a head. A clone gets its size and its
// room by themselves.
func Own(report []byte) (props []string, err error) {
	for line := range strings.Lines(string(report)) {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok {
			return nil, fmt.Errorf("reading ZFS's report: no property in %q", line)
		}
		switch name {
		case "volsize", "refquota", "refreservation":
		default:
			props = append(props, name+"="+value)
		}
	}
	return props, nil
}

// Available returns how many bytes are left in the first dataset of a report.
func Available(report []byte) (int64, error) {
	rows, err := Parse(report)
	if err != nil || len(rows) == 0 {
		return 0, cmp.Or(err, fmt.Errorf("reading ZFS's report: it is empty"))
	}
	return rows[0].available, nil
}

// Guids returns those of snapshots in a report of them.
func Guids(report []byte) (map[string]uint64, error) {
	rows, err := Parse(report)
	guids := map[string]uint64{}
	for _, r := range rows {
		guid, parseErr := strconv.ParseUint(r.guid, 10, 64)
		if err = cmp.Or(err, parseErr); err == nil {
			guids[r.name] = guid
		}
	}
	return guids, err
}

// Receive plans the steps before a stream is received into the strand of a copy: the record names it,
// and its room is bounded. What an earlier stream left is not named any more then.
func (p CopyPlanner) Receive(z CopyFacts, h provision.StreamHeader, may func(c *Copy, v provision.Volume) error) ([]Step, error) {
	c, name, d, err := z.Copy(h.Volume)
	if err != nil {
		return nil, err
	}
	if err := may(c, z.View(name, p.Now)); err != nil {
		return nil, err
	}
	if h.Resume != "" && c.Resumes(h) {
		half := z.Datasets[c.StrandName(c.Receiving.Place)]
		if half == nil || half.token != h.Resume {
			return nil, fmt.Errorf("%w: the stream does not go on where that of volume %s ended", provision.ErrConflict, h.Volume)
		}
		return nil, nil
	}
	if h.Resume != "" {
		return nil, fmt.Errorf("%w: no stream of volume %s can be resumed", provision.ErrConflict, h.Volume)
	}
	if err := z.Usable(p.Now); err != nil {
		return nil, err
	}
	more := d.size
	if c.Receiving != nil {
		more = 0 // it is charged already
	}
	if err := z.admit(d.Parent, h.Limits, more); err != nil {
		return nil, err
	}
	steps, err := p.keep(z, c, c.Begin(h, c.Free(z.numbers(c)), p.Now))
	if err != nil {
		return nil, err
	}
	steps[len(steps)-1].Unused = d.unmounted(name)
	return append(steps, p.boundStep(c, c.kept+Charge(d.size)+allowance(0))), nil
}

// errGone says that a copy is not as it was when the stream began.
func errGone(id string) error {
	return fmt.Errorf("%w: the stream of volume %s was aborted", provision.ErrConflict, id)
}

// Into returns what a stream is received into, its base, both by their full names, and whether it is
// a dataset with files.
func (z CopyFacts) Into(h provision.StreamHeader) (into, base string, files bool, err error) {
	c, _, d, err := z.Copy(h.Volume)
	if err != nil {
		return "", "", false, err
	}
	if !c.Resumes(h) {
		return "", "", false, errGone(h.Volume)
	}
	if !h.Base.IsZero() {
		if base, err = z.PointAt(h.Volume, h.Base); err != nil {
			return "", "", false, err
		}
	}
	return c.StrandName(c.Receiving.Place) + "@" + PointName(c.Receiving.Place), base, d.Files(), nil
}

// LearnStrand takes a report of a strand and its snapshot in.
func (z CopyFacts) LearnStrand(name string, rows []Row) {
	if z.Facts == nil {
		return
	}
	for _, r := range rows {
		of, at, _ := strings.Cut(r.name, "@")
		switch {
		case r.name == name:
			z.takeCopy(r)
			z.appoint()
		case of == name && z.Datasets[name] != nil:
			z.Datasets[name].snapshots[at] = newSnapshot(at, r)
		}
	}
}

// Received plans the steps that make a point of the strand into which a stream was received, whose
// snapshot has the guid that the stream said.
func (p CopyPlanner) Received(z CopyFacts, h provision.StreamHeader, guid uint64, may func(c *Copy, v provision.Volume) error) ([]Step, error) {
	c, name, d, err := z.Copy(h.Volume)
	if err != nil {
		return nil, err
	}
	if err := may(c, z.View(name, p.Now)); err != nil {
		return nil, err
	}
	if !c.Resumes(h) {
		return nil, errGone(h.Volume)
	}
	number := c.Receiving.Place
	strand := z.Datasets[c.StrandName(number)]
	if strand == nil {
		return nil, errGone(h.Volume)
	}
	s := strand.snapshots[PointName(number)]
	if s == nil || s.guid != strconv.FormatUint(guid, 10) || strand.kind != d.kind {
		return nil, fmt.Errorf("%w: the stream of volume %s did not make the snapshot that it was said to make", provision.ErrInvalid, h.Volume)
	}
	if !strand.Files() && (strand.size <= 0 || strand.size > h.Size) {
		return nil, fmt.Errorf("%w: the stream of volume %s has a zvol of %d bytes, and its header says %d", provision.ErrInvalid, h.Volume, strand.size, h.Size)
	}
	n, err := c.Record.Received(h, number, p.Now)
	if err != nil {
		return nil, err
	}
	steps, err := p.keep(z, c, n)
	if err != nil {
		return nil, err
	}
	if h.Filesystem != d.Filesystem {
		steps = append([]Step{{
			Command: p.recordCommand(name, orNone(h.Filesystem)), Learn: func(z *Facts) { z.Datasets[name].Filesystem = h.Filesystem },
		}}, steps...)
	}
	last := &steps[len(steps)-1]
	last.Unused = d.unmounted(name)
	learn, size := last.Learn, d.size
	last.Learn = func(z *Facts) {
		learn(z)
		CopiesIn(z).copyAt(c.Parent, c.ID).kept += Charge(size) // at most, which the next report corrects
	}
	return steps, nil
}
