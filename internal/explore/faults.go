package explore

import (
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// crash takes the machine down: mounts, decisions and memory are gone, the disk
// is as it was.
func (w faults) crash(i int) bool {
	n := &w.nodes[i]
	if !n.up {
		return false
	}
	n.up, n.paused, n.agent, n.mounted, n.stopped, n.served, n.refused = false, false, false, false, false, false, false
	w.disk.crash(i)
	w.slots.freed(i)
	n.pending, n.heard, n.late = nil, nil, lineage.Epoch{}
	if w.rules.Conduct.ForgetfulPromises {
		n.copy.Promise = ownership.Promise{}
	}
	return true
}

func (w faults) boot(i int) bool {
	n := &w.nodes[i]
	if n.up || int(n.boot)+1 >= len(bootNames) {
		return false
	}
	n.up, n.agent, n.boot = true, true, n.boot+1
	return true
}

// powerOff cuts the power and leaves a record of the boot that it ended.
func (w faults) powerOff(i int) bool {
	n := &w.nodes[i]
	w.crash(i)
	if n.poweroff == n.boot {
		return false
	}
	n.poweroff = n.boot
	return true
}

func (w faults) agentDown(i int) bool {
	n := &w.nodes[i]
	if !n.up || !n.agent {
		return false
	}
	n.agent, n.pending, n.heard = false, nil, nil
	if w.rules.Conduct.ForgetfulPromises {
		n.copy.Promise = ownership.Promise{}
	}
	return true
}

func (w faults) agentUp(i int) bool {
	n := &w.nodes[i]
	if !n.up || n.agent {
		return false
	}
	n.agent = true
	return true
}

// wreck loses the node's media with everything that was kept with the data.
func (w faults) wreck(i int) bool {
	n := &w.nodes[i]
	if !w.cfg.Kind.Traits().Data || !n.copy.Exists || n.wrecked > 3 {
		return false
	}
	w.crash(i)
	n.copy, n.data, n.head, n.branches = ownership.Copy{}, nil, nil, nil
	n.wrecked++
	return true
}

// restore brings the API server back from a backup: the record as it was back
// versions ago, under a new resource version. It happens once in a schedule: a
// second backup can bring back a claim that was made before the first one and
// rivals those made since, and then no rule can tell whose the volume is. Gone
// means a backup without the volume; after that, one with it is found. A target that
// forgot its reservations and a record that forgot its owner would leave nothing that
// knows of a writer out of reach; one schedule has only one of them.
func (w faults) restore(back int, gone bool) bool {
	now := w.server.current
	found := now
	switch {
	case now.volume == nil:
		found = now.before
	case w.truth.restored || w.truth.forgot || now.volume.Deleting:
		return false
	case gone:
		found = nil
	default:
		for ; back > 0 && found.before != nil; back-- {
			found = found.before
		}
		if found == now {
			return false
		}
	}
	w.truth.restored, w.truth.backup = true, now.rv+1
	if found == nil {
		w.server.current = &version{rv: now.rv + 1, before: now}
		return true
	}
	w.server.current = &version{volume: found.volume, rv: now.rv + 1, before: found.before}
	w.truth.recall(found.volume)
	w.recordJudge().recallEpochs()
	return true
}

// want places the pod on node i. The kubelets of the others let go as soon as they
// run, unless both is set: then they have not heard of it.
func (w faults) want(i int, both bool) bool {
	if i >= w.cfg.Nodes || w.nodes[i].wanted {
		return false
	}
	w.nodes[i].wanted = true
	for j := range w.nodes {
		if j != i && !both && !w.cfg.Many {
			w.unwant(j)
		}
	}
	return true
}

func (w faults) unwant(i int) bool {
	n := &w.nodes[i]
	if !n.wanted {
		return false
	}
	n.wanted, n.served = false, false
	return true
}

// evict ends a pod whose mount is dead. Its successor on the node asks for the volume.
func (w faults) evict(i int) bool {
	n := &w.nodes[i]
	if !n.served || n.mounted {
		return false
	}
	n.served = false
	return true
}

func (w faults) link(i, j int, up bool) bool {
	if i == j || w.cut[i]&(1<<j) == 0 == up {
		return false
	}
	if up {
		w.cut[i] &^= 1 << j
		w.cut[j] &^= 1 << i
	} else {
		w.cut[i] |= 1 << j
		w.cut[j] |= 1 << i
	}
	return true
}

// approve lets the administrator agree to the snapshot that a controller named
// last, or ask for the failover of a shared disk.
func (w faults) approve(c int) bool {
	v := w.server.current.volume
	p := w.ctl[c].blocked
	if v != nil && !v.Kind.Traits().Data {
		return w.ask(v, func(int) bool { return true })
	}
	if v == nil || p.IsZero() || v.Failover.Approved == p {
		return false
	}
	next := *v
	next.Failover.Approved = p
	w.commit(&next)
	return true
}

// ask lets the administrator ask the first other node that runs to shut a writer out, whether or not the
// writer looks dead.
func (w faults) ask(v *ownership.Volume, of func(writer int) bool) bool {
	if v.Deleting || !w.cfg.Persistent {
		return false
	}
	for _, writer := range v.Writing() {
		v := v.On(writer)
		if v.FenceRequest.Epoch == v.Epoch || !of(indexOf(writer)) {
			continue
		}
		for _, e := range v.Replicas {
			if e.Node != writer && e.State == ownership.Ready && w.runs(indexOf(e.Node)) {
				w.commit(v.RequestFence(e.Node).Stored())
				return true
			}
		}
	}
	return false
}

// deleteVolume records that the volume's data shall be destroyed. A backup from before that is another
// story: it finds what is left of a volume that no claim wants.
func (w faults) deleteVolume() bool {
	v := w.server.current.volume
	if v == nil || v.Deleting {
		return false
	}
	next := *v
	next.Deleting = true
	w.commit(&next)
	return true
}

// expand is a user who wants the volume larger. The API lets no size fall.
func (w faults) expand() bool {
	v := w.server.current.volume
	if v == nil || v.Size >= maxSize || v.Deleting || !v.Kind.Traits().Data {
		return false
	}
	next := *v
	next.Size++
	w.commit(&next)
	return true
}

func (w faults) setFactor(n int) bool {
	v := w.server.current.volume
	if v == nil || v.Factor == n || n > w.cfg.Nodes || v.Kind.Traits().Attaches && n > v.Sharing.MaxShares {
		return false
	}
	next := *v
	next.Factor = n
	w.commit(&next)
	return true
}
