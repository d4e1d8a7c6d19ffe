package zfstest

import (
	"fmt"
	"strings"
)

func (h zfsProgram) destroy(z *Zpool, a arguments, name string) error {
	_, later := a.flags["-d"]
	if strings.Contains(name, "@") {
		return h.destroySnapshot(z, name, later)
	}
	d := z.Datasets[name]
	switch {
	case d == nil:
		return fmt.Errorf("cannot open '%s': dataset does not exist", name)
	case len(d.Snapshots) > 0:
		return fmt.Errorf("cannot destroy '%s': volume has children", name)
	case d.Open || d.Probed || d.Mounted && d.Volsize > 0: // a filesystem is unmounted
		return fmt.Errorf("cannot destroy '%s': dataset is busy", name)
	}
	for other := range z.Datasets {
		if strings.HasPrefix(other, name+"/") {
			return fmt.Errorf("cannot destroy '%s': filesystem has children", name)
		}
	}
	delete(z.Datasets, name)
	if of, s := h.zpools.findSnapshot(d.Origin); s != nil && s.Deferred && !z.cloned(d.Origin) {
		_, at, _ := strings.Cut(d.Origin, "@")
		delete(of.Snapshots, at)
	}
	return nil
}

func (h zfsProgram) destroySnapshot(z *Zpool, name string, later bool) error {
	d, s := h.zpools.findSnapshot(name)
	switch {
	case s == nil:
		return fmt.Errorf("could not find any snapshots to destroy; check snapshot names")
	case z.cloned(name) && !later:
		return fmt.Errorf("cannot destroy '%s': snapshot has dependent clones", name)
	case z.cloned(name):
		s.Deferred = true
	default:
		_, at, _ := strings.Cut(name, "@")
		delete(d.Snapshots, at)
	}
	return nil
}

func (z *Zpool) cloned(snapshot string) bool {
	for _, d := range z.Datasets {
		if d.Origin == snapshot {
			return true
		}
	}
	return false
}
