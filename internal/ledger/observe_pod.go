package ledger

import "slices"

// pod is a pod that has inline volumes or holds room.
type pod struct {
	// inline are the names of its inline volumes that have an account.
	inline []string
	// holds are the accounts in which the pod is a holder.
	holds []*account
}

func (l *Ledger) pod(uid string) *pod {
	p := l.pods[uid]
	if p == nil {
		p = &pod{}
		l.pods[uid] = p
	}
	return p
}

// KnowsPod is whether the pod has inline volumes here or holds room. Later changes
// of any other pod need not be observed.
func (l *Ledger) KnowsPod(uid string) bool { return l.pods[uid] != nil }

// ObservePod takes in a pod, new or changed. Pods that have no inline volumes and
// were never reserved for need not be observed. From the moment it is bound to
// the moment it ends, whatever its phase in between, its inline volumes are
// charged.
func (l *Ledger) ObservePod(o PodObject) {
	if o.Ended {
		l.ObservePodGone(o.UID)
		return
	}
	if o.Node == "" {
		return
	}
	p := l.pod(o.UID)
	for _, v := range o.Inline {
		a := l.account(Inline(o.UID, v.Name))
		a.observed, a.className, a.namespace, a.bytes = true, v.Class, o.Namespace, max(v.Bytes, 0)
		a.promised, a.started = o.Node, o.Started
		if !slices.Contains(p.inline, v.Name) {
			p.inline = append(p.inline, v.Name)
		}
	}
	for _, a := range slices.Clone(p.holds) {
		l.bind(a, o.UID, o.Node)
	}
	for _, name := range p.inline {
		l.settle(l.account(Inline(o.UID, name)))
	}
	l.release(o.UID)
}

// bind notes that the holder was bound to a node: its holds for others become free,
// and its holds for that one stay until the volume is seen.
func (l *Ledger) bind(a *account, uid, node string) {
	for i := range a.holds {
		h := &a.holds[i]
		h.holders = slices.DeleteFunc(h.holders, func(x holder) bool { return x.pod == uid && x.own != node })
		for k := range h.holders {
			if h.holders[k].pod == uid {
				h.holders[k].bound = true
			}
		}
	}
	l.settle(a)
	l.keep(a, uid)
}

// ObservePodGone takes in that a pod is gone, or has ended. It gives back the room
// of its inline volumes and its holds, except for claims that still name the node:
// a provisioner may be at work there.
func (l *Ledger) ObservePodGone(uid string) {
	p := l.pods[uid]
	if p == nil {
		return
	}
	delete(l.pods, uid)
	for _, name := range p.inline {
		a := l.account(Inline(uid, name))
		a.observed, a.promised = false, ""
		l.vacate(a, uid, "")
	}
	for _, a := range p.holds {
		l.vacate(a, uid, "")
	}
}

// vacate takes the pod from the holders of an account, as far as it was to run on one node or
// ("") on any.
func (l *Ledger) vacate(a *account, uid, node string) {
	for i := range a.holds {
		h := &a.holds[i]
		h.holders = slices.DeleteFunc(h.holders, func(x holder) bool { return x.pod == uid && (node == "" || x.own == node) })
	}
	l.settle(a)
}

// keep strikes the account from the pod's list unless the pod still holds there.
func (l *Ledger) keep(a *account, uid string) {
	for i := range a.holds {
		if slices.ContainsFunc(a.holds[i].holders, func(x holder) bool { return x.pod == uid }) {
			return
		}
	}
	l.leave(uid, a)
}

// leave strikes the account from the pod's list.
func (l *Ledger) leave(uid string, a *account) {
	if p := l.pods[uid]; p != nil {
		p.holds = slices.DeleteFunc(p.holds, func(b *account) bool { return a == b })
		l.release(uid)
	}
}

// release forgets a pod that has neither inline volumes nor holds.
func (l *Ledger) release(uid string) {
	if p := l.pods[uid]; p != nil && len(p.holds) == 0 && len(p.inline) == 0 {
		delete(l.pods, uid)
	}
}
