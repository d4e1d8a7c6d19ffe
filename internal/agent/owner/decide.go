package owner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/publish/staging"
	"berth.dev/berth/internal/record"
)

// asking is what a call asks of the rules, and the steps that it hands over.
type asking struct {
	wanted, unstaging bool
	// idle: it does not count that a kubelet asked a while ago.
	idle bool
	// use mounts the volume, or looks at its device. A call that wants the volume has it.
	use func(context.Context) error
	// off takes the volume off the path of the call. Without it the Owner unmounts every path.
	off *staging.Off
	// unmounted: off has been used.
	unmounted bool
	// silent are the nodes that did not answer an earlier decision of this chain.
	silent map[string]bool
	// unheard are those of them of which the present decision has found it out.
	unheard []string
}

// look is what one decision rests on, and is changed by.
type look struct {
	id     string
	facts  ownership.NodeFacts
	kept   journal.Kept
	object *v1alpha1.Volume
	disk   shared.Disk
	view   shared.View
	// away: the disk did not answer, so view says only that nothing shall begin.
	away bool
	// known says that the journal has the volume, and replica is the copy here.
	known   bool
	replica provision.Replica
	// trouble is what could not be found out.
	trouble error
}

// reach decides until the rules are done with what a kubelet asks for.
func (o *Owner) reach(ctx context.Context, id string, a *asking) error {
	answer, err := o.follow(ctx, id, a)
	switch {
	case err != nil:
		return err
	case answer.action.Verb == ownership.Done, answer.mounted:
		return nil
	}
	return &NotNowError{Volume: id, Why: answer.action.Why, Refused: answer.action.Verb == ownership.Refuse, Cause: answer.trouble}
}

// answer is where a chain of decisions has come to.
type answer struct {
	// action is the rules' answer to the kubelet: nothing if none asks.
	action ownership.Action
	// do is the action that was left: nothing to do, or nothing that can be done now.
	do ownership.Action
	// at is the time that the decision was made for.
	at      time.Time
	mounted bool
	// away: the disk did not answer.
	away    bool
	trouble error
}

// follow decides and acts until nothing is left to do now.
func (o *Owner) follow(ctx context.Context, id string, a *asking) (out answer, err error) {
	for range decisions {
		var more bool
		if err := o.alone(ctx, id, func(ctx context.Context) (err error) {
			out, more, err = o.decide(ctx, id, a)
			return err
		}); err != nil {
			return out, err
		}
		if !more {
			return out, nil
		}
	}
	return out, fmt.Errorf("%w: volume %s changes too often for a decision about it; trying again", provision.ErrUnavailable, id)
}

// decide makes one decision and carries it out. more says that another one is to follow.
func (o *Owner) decide(ctx context.Context, id string, a *asking) (out answer, more bool, err error) {
	l, err := o.gather(ctx, id, a)
	if err != nil {
		return out, false, err
	}
	if err := (actor{o}).takeOffDead(ctx, l, a); err != nil {
		return out, false, err
	}
	if err := (actor{o}).tellGuard(ctx, l); err != nil {
		more, err = (actor{o}).held(ctx, l, err)
		return out, more, err
	}
	(actor{o}).noteLeaving(l)
	rules, dead := o.c.Rules, (actor{o}).stranded(ctx, l, a)
	if !a.wanted || dead {
		rules.Stage = nil // only a call of the kubelet takes a volume over
	} else {
		defer (actor{o}).wants(id) // a call that takes long still asks, and the upkeep has its turn before the next decision
	}
	said, do := rules.Next(&l.facts)
	if dead {
		said = ownership.Action{Verb: ownership.Wait, Why: ownership.Why{Reason: ownership.NotOwner}}
	}
	out = answer{action: said, do: do, at: l.facts.Now, away: l.away, trouble: l.trouble}
	switch {
	case a.use != nil && (do.Verb == ownership.Mount || said.Verb == ownership.Done): // done: a kubelet asks again
		out.mounted = true
		return out, false, (actor{o}).use(ctx, l, do, a)
	case said.Verb == ownership.Done, do.Verb <= ownership.GiveUp:
		if do.Verb > ownership.GiveUp && l.facts.Absent {
			o.c.Poke(id, 0) // no change of a record brings the upkeep
		}
		return out, false, (actor{o}).forget(l)
	}
	more, err = (actor{o}).carryOut(ctx, l, do, a)
	if do.Verb == ownership.Unmount && err != nil {
		more, err = (actor{o}).held(ctx, l, err)
	}
	return out, more, err
}

// gather collects the facts of one decision, in the order that ownership.NodeFacts asks for.
func (o *Owner) gather(ctx context.Context, id string, a *asking) (*look, error) {
	w, l := o.c.World, &look{id: id}
	l.facts = ownership.NodeFacts{Me: o.c.Node, Boot: o.c.Boot, Unstaging: a.unstaging}
	if err := o.c.Medium.recall(ctx, o, l); err != nil {
		return nil, err
	}
	l.facts.FreshID = w.FreshID()
	l.facts.Mounted = mounted(w, o.c.Boot, &l.kept)
	l.facts.ShutDown = l.facts.Mounted && shutDown(w, w.ShutDowns(), &l.kept)
	l.facts.Now = w.Now()
	o.hinted(id, func(h *hint) {
		l.facts.Wanted = a.wanted || !a.unstaging && !a.idle && h.cleared == o.lapses && h.wanted.After(l.facts.Now)
	})
	if err := o.readRecord(ctx, l); err != nil { // the rules stop what they must, and decide nothing else
		l.trouble = err
		record.Tell(&l.facts, nil, err)
	}
	if l.facts.Record != nil {
		l.facts.Peers = a.peers(ctx, o, l)
	}
	o.c.Medium.survey(ctx, o, l)
	standing, err := w.Standing(ctx)
	l.trouble = errors.Join(l.trouble, err)
	if standing.Fenced && o.noteFence() {
		return nil, errLapsed
	}
	if err != nil || standing.Fenced { // no epoch begins before the agent's word, and every other step goes on
		standing.SinceRenewal = ownership.SelfFenceAfter
	}
	l.facts.SinceRenewal, l.facts.OutOfService = standing.SinceRenewal, standing.OutOfService
	l.facts.Lapsed = o.lapsed(l)
	return l, ctx.Err()
}

// peers asks the other nodes of the record that may answer.
func (a *asking) peers(ctx context.Context, o *Owner, l *look) []ownership.Peer {
	v := l.facts.Record
	a.doubts(v)
	if !v.Kind.Traits().Data {
		o.silent.recall(a, l.facts.Now)
	}
	answers := a.ask(ctx, o.c.World, l.id, others(v, o.c.Node))
	o.silent.note(a, l.facts.Now)
	return answers
}

// doubts takes the node of a shared disk's writer that is to be shut out, or was and has not said that it stopped,
// for one that does not answer. It is silent, and a standby would wait for it in vain before it takes the disk, and
// again before it takes the volume over. Where the record errs, the disk tells of a later epoch by its holder's key. Where
// several nodes write it does not: a fenced node that writes again, in an epoch that a backup has forgotten, is asked.
func (a *asking) doubts(v *ownership.Volume) {
	if v.Kind.Traits().Data {
		return
	}
	for _, w := range v.AllWriters() {
		node := w.Primary.Node
		e, _ := v.Replica(node)
		asked := w.FenceRequest.Epoch == w.Epoch // it goes with the first change of the phase
		shut := w.Primary.Phase == ownership.Fenced && e.Unstaged != w.Epoch
		if asked || shut && !v.Sharing.ManyWriters {
			a.quiets(node)
			a.unheard = append(a.unheard, node) // a moment later the record has the next epoch, and not its name
		}
	}
}

func (a *asking) quiets(node string) {
	if a.silent == nil {
		a.silent = map[string]bool{}
	}
	a.silent[node] = true
}

// ask asks the nodes, and none twice that did not answer: a chain of ten decisions would wait ten times for
// a node without power, while a pod waits for its volume. The rules take a node that is not asked for one
// that does not answer.
func (a *asking) ask(ctx context.Context, w World, id string, nodes []string) []ownership.Peer {
	nodes = slices.DeleteFunc(nodes, func(node string) bool { return a.silent[node] })
	answers := w.Ask(ctx, id, nodes)
	for _, node := range nodes {
		if !slices.ContainsFunc(answers, func(p ownership.Peer) bool { return p.Node == node }) {
			a.quiets(node)
			a.unheard = append(a.unheard, node)
		}
	}
	return answers
}

// mounted says whether pods of this node may have the volume. What cannot be found out counts as yes:
// an unmount then has to prove that they have not.
func mounted(w World, boot string, k *journal.Kept) bool {
	if !k.InUse(boot) {
		return false
	}
	if k.Taken.Block {
		return true
	}
	paths, err := w.Mounts(k.Taken.Content)
	return err != nil || len(paths) > 0
}

// shutDown says whether the filesystem of a volume is among those that have shut themselves down, which are mounted at
// those paths.
func shutDown(w World, down []string, k *journal.Kept) bool {
	if len(down) == 0 || k.Taken.Block {
		return false
	}
	paths, err := w.Mounts(k.Taken.Content)
	return err == nil && slices.ContainsFunc(paths, func(path string) bool { return slices.Contains(down, path) })
}

// readRecord reads the record, and makes sure that it is about what the node keeps. After an error the
// record counts as unread, unless the API says that there is none.
func (o *Owner) readRecord(ctx context.Context, l *look) error {
	object, err := o.c.World.Read(ctx, l.id)
	v, err := record.Read(l.id, object, err)
	if err != nil {
		return err
	}
	if v.Kind.Traits().Data != o.c.Medium.data() {
		return fmt.Errorf("%w: the replicas of volume %s are of kind %v, which the agent of this driver does not serve", provision.ErrUnsupported, l.id, v.Kind)
	}
	if err := o.c.Medium.identify(o, l, object); err != nil {
		return err
	}
	l.object, l.facts.Record = object, v.On(o.c.Node)
	return nil
}

// others are the nodes that may know of the volume's epochs.
func others(v *ownership.Volume, me string) []string {
	var nodes []string
	known := map[string]bool{me: true, "": true}
	add := func(node string) {
		if !known[node] {
			known[node] = true
			nodes = append(nodes, node)
		}
	}
	for i := range v.Replicas {
		add(v.Replicas[i].Node)
	}
	add(v.Primary.Node)
	return nodes
}

// lapsed says whether an epoch from before a lapse could go on here, and notes when none can any more:
// the node keeps that the record's epoch is another node's, or given up.
func (o *Owner) lapsed(l *look) (lapsed bool) {
	v, c := l.facts.Record, &l.facts.Copy
	over := v != nil && c.Promise.Epoch == v.Epoch && (v.Primary.Node != o.c.Node || c.GaveUp(v.Epoch))
	o.hinted(l.id, func(h *hint) {
		if over {
			h.cleared = o.lapses
		}
		lapsed = h.cleared != o.lapses
	})
	return lapsed
}

// write writes the next record. A conflict is no error: the rules are asked again.
func (o *Owner) write(ctx context.Context, l *look, next *ownership.Volume) error {
	object, err := record.Into(l.object, next)
	if err != nil {
		return err
	}
	if err := o.c.World.Replace(ctx, object); err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("%w: writing the record of volume %s: %w", provision.ErrUnavailable, l.id, err)
	}
	return nil
}
