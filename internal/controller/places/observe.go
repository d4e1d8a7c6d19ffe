package places

import (
	"context"
	"errors"
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide/attach"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/record"
)

// Listen connects the handlers with the informers of a cache.
func (p *Places) Listen(ctx context.Context, from cache.Informers) error {
	for _, each := range []struct {
		object  client.Object
		handler toolscache.ResourceEventHandler
	}{
		{&corev1.Node{}, handler(p, p.observeNode, p.forgetNode)},
		{&storagev1.CSINode{}, handler(p, p.observeCSINode, p.forgetCSINode)},
		{&coordinationv1.Lease{}, handler(p, p.observeLease, p.forgetLease)},
		{&v1alpha1.Volume{}, handler(p, p.observeVolume, p.forgetVolume)},
		{&corev1.Pod{}, handler(p, p.observePod, p.forgetPod)},
		{&corev1.PersistentVolumeClaim{}, handler(p, p.observeClaim, p.forgetClaim)},
		{&corev1.PersistentVolume{}, handler(p, p.observePV, p.forgetPV)},
	} {
		informer, err := from.GetInformer(ctx, each.object)
		if err != nil {
			return fmt.Errorf("watching %T: %w", each.object, err)
		}
		registration, err := informer.AddEventHandler(each.handler)
		if err != nil {
			return fmt.Errorf("listening to %T: %w", each.object, err)
		}
		p.synced = append(p.synced, registration.HasSynced)
	}
	return nil
}

// handler calls observe and forget with the lock held.
func handler[T client.Object](p *Places, observe, forget func(T)) toolscache.ResourceEventHandler {
	locked := func(f func(T), obj any) {
		if unknown, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
			obj = unknown.Obj
		}
		if o, ok := obj.(T); ok {
			p.mu.Lock()
			defer p.mu.Unlock()
			f(o)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { locked(observe, obj) },
		UpdateFunc: func(_, obj any) { locked(observe, obj) },
		DeleteFunc: func(obj any) { locked(forget, obj) },
	}
}

func (p *Places) observeNode(o *corev1.Node) {
	p.board.SetNode(o.Name, func(n *attach.Node) {
		n.Exists, n.Ready, n.Cordoned, n.Taints, n.Labels = true, ready(o), o.Spec.Unschedulable, o.Spec.Taints, o.Labels
	})
}

func (p *Places) forgetNode(o *corev1.Node) {
	p.board.SetNode(o.Name, func(n *attach.Node) { n.Exists = false })
}

func (p *Places) observeCSINode(o *storagev1.CSINode) {
	p.board.SetNode(o.Name, func(n *attach.Node) {
		n.Registered, n.Limit = false, 0
		for i := range o.Spec.Drivers {
			if d := &o.Spec.Drivers[i]; d.Name == p.driver.Name {
				n.Registered = true
				if d.Allocatable != nil && d.Allocatable.Count != nil {
					n.Limit = int(*d.Allocatable.Count)
				}
			}
		}
	})
}

func (p *Places) forgetCSINode(o *storagev1.CSINode) {
	p.board.SetNode(o.Name, func(n *attach.Node) { n.Registered, n.Limit = false, 0 })
}

func (p *Places) observeLease(o *coordinationv1.Lease) {
	node, is := strings.CutPrefix(o.Name, v1alpha1.GuardLeasePrefix)
	if !is || o.Spec.RenewTime == nil {
		return
	}
	if !p.guards[node].said.Equal(o.Spec.RenewTime.Time) { // else it is an edit, or a resync
		p.guards[node] = renewal{o.Spec.RenewTime.Time, p.clock.Now()}
	}
}

func (p *Places) forgetLease(o *coordinationv1.Lease) {
	delete(p.guards, strings.TrimPrefix(o.Name, v1alpha1.GuardLeasePrefix))
}

// observeVolume takes a shared disk. One without a record is attached nowhere. One whose record cannot be
// read keeps what was known of it.
func (p *Places) observeVolume(o *v1alpha1.Volume) {
	if !p.driver.Owns(o) {
		return
	}
	r, err := record.From(o)
	var absent *record.AbsentError
	switch {
	case errors.As(err, &absent) && o.Spec.Replication.Attachments != nil:
		r = &ownership.Volume{Kind: ownership.Attachments, Factor: int(o.Spec.Replication.Factor), Deleting: !o.DeletionTimestamp.IsZero(), Sharing: ownership.Sharing{
			MaxShares: int(o.Spec.Replication.Attachments.MaxShares), Yields: o.Spec.Replication.Attachments.Yields}}
	case err != nil || !r.Kind.Traits().Attaches:
		return
	}
	p.board.SetVolume(attach.VolumeOf(o.Name, r))
}

func (p *Places) forgetVolume(o *v1alpha1.Volume) { p.board.DropVolume(o.Name) }

func (p *Places) observePod(o *corev1.Pod) {
	pod := attach.Pod{
		Node: o.Spec.NodeName, Ended: o.Status.Phase == corev1.PodSucceeded || o.Status.Phase == corev1.PodFailed,
		Tolerations: o.Spec.Tolerations, Required: nodeaffinity.GetRequiredNodeAffinity(o),
	}
	for i := range o.Spec.Volumes {
		switch v := &o.Spec.Volumes[i]; {
		case v.PersistentVolumeClaim != nil:
			pod.Claims = append(pod.Claims, o.Namespace+"/"+v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			pod.Claims = append(pod.Claims, o.Namespace+"/"+o.Name+"-"+v.Name)
		}
	}
	p.board.SetPod(o.UID, pod)
}

func (p *Places) forgetPod(o *corev1.Pod) { p.board.DropPod(o.UID) }

func (p *Places) observeClaim(o *corev1.PersistentVolumeClaim) {
	p.board.SetClaim(o.Namespace+"/"+o.Name, attach.Claim{UID: o.UID, Volume: o.Spec.VolumeName})
}

func (p *Places) forgetClaim(o *corev1.PersistentVolumeClaim) {
	p.board.DropClaim(o.Namespace + "/" + o.Name)
}

func (p *Places) observePV(o *corev1.PersistentVolume) {
	handle, claim := p.driver.Handle(o), o.Spec.ClaimRef
	if handle == "" || claim == nil {
		p.board.DropBound(o.Name)
		return
	}
	p.board.SetBound(o.Name, attach.Bound{Handle: handle, Claim: claim.Namespace + "/" + claim.Name, ClaimUID: claim.UID, Reach: reach(o)})
}

func (p *Places) forgetPV(o *corev1.PersistentVolume) { p.board.DropBound(o.Name) }

// reach is the required node affinity of a PersistentVolume apart from the labels that Berth moves: they
// follow from where the attachments are. It is nil if any node will do, and one that cannot be read matches
// none, as for a scheduler.
func reach(pv *corev1.PersistentVolume) *nodeaffinity.NodeSelector {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return nil
	}
	kept := &corev1.NodeSelector{}
	for _, term := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms {
		left := corev1.NodeSelectorTerm{MatchFields: term.MatchFields}
		for _, e := range term.MatchExpressions {
			if !strings.HasPrefix(e.Key, v1alpha1.VolumeLabelPrefix) {
				left.MatchExpressions = append(left.MatchExpressions, e)
			}
		}
		if len(left.MatchExpressions)+len(left.MatchFields) == 0 && len(term.MatchExpressions) > 0 {
			return nil
		}
		kept.NodeSelectorTerms = append(kept.NodeSelectorTerms, left)
	}
	selector, err := nodeaffinity.NewNodeSelector(kept)
	if err != nil {
		return &nodeaffinity.NodeSelector{}
	}
	return selector
}
