package zpool

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/replica"
)

// Changing returns the record of a copy after a change, by its volume and the time.
type Changing func(c *Copy, v provision.Volume) (replica.Record, error)

// Alter plans the steps of a change that only the record shows. unused says that no pod may use the
// volume meanwhile.
func (p CopyPlanner) Alter(z CopyFacts, id string, unused bool, change Changing) ([]Step, error) {
	c, name, d, err := z.Copy(id)
	if err != nil {
		return nil, err
	}
	n, err := change(c, z.View(name, p.Now))
	if err != nil {
		return nil, err
	}
	steps, err := p.keep(z, c, n)
	if unused && len(steps) > 0 {
		steps[0].Unused = d.unmounted(name)
	}
	return steps, err
}

// keep plans the steps that write a record, after everything that it names.
func (p CopyPlanner) keep(z CopyFacts, c *Copy, n replica.Record) ([]Step, error) {
	if !n.Exists || reflect.DeepEqual(n, c.Record) {
		return nil, nil
	}
	if err := z.Answers(p.Now); err != nil {
		return nil, err
	}
	props, err := copyProperties(n)
	if err != nil {
		return nil, err
	}
	name, id, parent := CopyName(c.Parent, c.ID), c.ID, c.Parent
	steps := p.areaSteps(z.Facts, parent, copies)
	if !c.container {
		steps = append(steps, Step{Command: p.areaCommand(name), Learn: func(z *Facts) { CopiesIn(z).copyAt(parent, id).container = true }})
	}
	if !c.noted {
		steps = append(steps, Step{Command: p.areaCommand(name + "/" + recordName), Learn: func(z *Facts) { CopiesIn(z).copyAt(parent, id).noted = true }})
	}
	return append(steps, Step{
		Command: p.Command("set", append(props, name+"/"+recordName)...),
		Learn:   func(z *Facts) { CopiesIn(z).copyAt(parent, id).Record = n },
	}), nil
}

// Point plans the steps that keep the head as a point.
func (p CopyPlanner) Point(z CopyFacts, q provision.PointRequest) ([]Step, error) {
	c, name, d, err := z.Copy(q.Volume)
	if err != nil {
		return nil, err
	}
	number := c.Free(z.numbers(c))
	n, met, err := c.Record.Snapshot(q, number, p.Now)
	if met || err != nil {
		return nil, err
	}
	if d.stands {
		return nil, fmt.Errorf("%w: volume %s has no head", provision.ErrUnavailable, q.Volume)
	}
	if err := cmp.Or(z.Usable(p.Now), z.admit(d.Parent, q.Limits, d.size)); err != nil {
		return nil, err
	}
	take := Step{
		Command: p.snapshotCommand(name, PointName(number), nil), Takes: d.size, Parent: d.Parent,
		Learn: func(z *Facts) {
			d := z.Datasets[name]
			d.snapshots[PointName(number)] = &Snapshot{size: d.size, allocated: d.size, filesystem: d.Filesystem, order: d.last() + 1, place: number}
			d.dirty = false
			CopiesIn(z).copyAt(d.Parent, d.ID).kept += Charge(d.size) // at most, which the next report corrects
		},
	}
	steps, err := p.keep(z, c, n)
	return append([]Step{take}, steps...), err
}

// Head plans the steps that make the head follow the newest point. props are the properties that were
// set on the head itself, for the clone that takes its place. The rejected alternative is to roll the head
// back where it has the point itself: a rollback brings the zvol's old size back, too.
func (p CopyPlanner) Head(z CopyFacts, id string, props []string) ([]Step, error) {
	c, name, d, err := z.Copy(id)
	if err != nil {
		return nil, err
	}
	n, made, err := c.Record.Head(p.Now)
	if err != nil {
		return nil, err
	}
	steps, err := p.keep(z, c, n)
	if err != nil || !made {
		return steps, err
	}
	tip, _ := c.Tip()
	at := PointName(tip.Place)
	of := z.at(c, tip.Place)
	if of == "" {
		return nil, fmt.Errorf("%w: point %v of volume %s has no snapshot: others removed it", provision.ErrUnavailable, tip.Point, id)
	}
	var first []Step
	if d.area == live {
		strand := c.StrandName(c.Free(z.numbers(c)))
		first = p.parkSteps(z, c, name, strand)
		if of == name {
			of = strand
		}
	}
	first = append(first, p.discardSteps(z.Facts, id)...)
	return append(append(first, p.headStep(c, d, of+"@"+at, props)), steps...), nil
}

// parkSteps make a head a strand: its points stay, and it gives its room to the head that follows.
func (p CopyPlanner) parkSteps(z CopyFacts, c *Copy, head, strand string) (steps []Step) {
	d, parent, id := z.Datasets[head], c.Parent, c.ID
	if c.quota > 0 {
		steps = append(steps, p.boundStep(c, 0))
	}
	if d.reserved {
		steps = append(steps, p.releaseStep(head))
		steps[len(steps)-1].Unused = d.unmounted(head)
	}
	number := parseNumber(strand[len(CopyName(parent, id))+1:])
	park := p.moveStep(z.Facts, head, strand, copies)
	learn := park.Learn
	park.Unused, park.Settles = d.unmounted(head), head
	park.Learn = func(z *Facts) {
		learn(z)
		z.Datasets[strand].strand, z.Datasets[strand].wasHead = number, true
		CopiesIn(z).appoint()
	}
	return append(steps, park)
}

func (p CopyPlanner) releaseStep(name string) Step {
	return Step{Command: p.releaseCommand(name), Learn: func(z *Facts) { z.Datasets[name].reserved = false }}
}

// headStep makes a head out of a point.
func (p CopyPlanner) headStep(c *Copy, was *Dataset, point string, props []string) Step {
	name := LiveName(c.Parent, c.ID)
	args, size := []string{}, text(was.size)
	for _, prop := range props {
		args = append(args, "-o", prop)
	}
	if was.Files() {
		args = append(args, "-o", propQuota+"="+size, "-o", propReservation+"="+size)
	} else {
		args = append(args, "-o", "volsize="+size, "-o", propReservation+"=auto")
	}
	d := *was
	d.area, d.strand, d.wasHead, d.stands, d.guid, d.origin, d.quota = live, 0, false, false, "", point, was.size
	d.reserved, d.dirty, d.short, d.snapshots = true, false, false, map[string]*Snapshot{}
	return Step{
		Command: p.Command("clone", append(args, point, name)...), Makes: true,
		Learn: func(z *Facts) {
			z.Datasets[name] = &d
			CopiesIn(z).appoint()
		},
	}
}

// boundStep bounds how many bytes the strands of a copy take together; 0 is no bound.
func (p CopyPlanner) boundStep(c *Copy, bytes int64) Step {
	parent, id, to := c.Parent, c.ID, none
	if bytes > 0 {
		to = strconv.FormatInt(bytes, 10)
	}
	return Step{
		Command: p.Command("set", "quota="+to, CopyName(parent, id)),
		Learn:   func(z *Facts) { CopiesIn(z).copyAt(parent, id).quota = bytes },
	}
}
