package main

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	storagevolume "k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

// provisioner does at once the work of the external-provisioner, CreateVolume and
// the PersistentVolume controller: the claim gets its Volume, unless the scheduler
// made one, then a PersistentVolume, and is bound to it.
type provisioner struct {
	ctx context.Context //nolint:containedctx // the handlers of informers have none
	*server
	agents *agents
	failed func(error)

	mu       sync.Mutex
	busy     map[types.UID]bool
	failures int
}

func newProvisioner(ctx context.Context, s *server, a *agents, failed func(error)) *provisioner {
	return &provisioner{ctx: ctx, server: s, agents: a, failed: failed, busy: map[types.UID]bool{}}
}

// handler handles the events of the informer of claims.
func (p *provisioner) handler() toolscache.ResourceEventHandler {
	seen := func(obj any) {
		claim, ok := obj.(*corev1.PersistentVolumeClaim)
		if !ok || claim.Spec.VolumeName != "" || claim.Annotations[storagevolume.AnnSelectedNode] == "" || !p.take(claim.UID) {
			return
		}
		go func() {
			defer p.leave(claim.UID)
			if err := p.provision(claim.DeepCopy()); err != nil {
				p.failed(err)
			}
		}()
	}
	return toolscache.ResourceEventHandlerFuncs{AddFunc: seen, UpdateFunc: func(_, obj any) { seen(obj) }}
}

func (p *provisioner) take(uid types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy[uid] {
		return false
	}
	p.busy[uid] = true
	return true
}

func (p *provisioner) leave(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.busy, uid)
}

// count is the number of provisions that failed so far.
func (p *provisioner) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failures
}

func (p *provisioner) provision(claim *corev1.PersistentVolumeClaim) error {
	node, name := claim.Annotations[storagevolume.AnnSelectedNode], "pvc-"+string(claim.UID)
	fits, err := p.create(claim, name, node)
	if err != nil {
		return fmt.Errorf("creating volume %s: %w", name, err)
	}
	if !fits {
		return p.giveBack(claim, name)
	}
	pv := persistentVolume(claim, name, node)
	if _, err := p.core.CoreV1().PersistentVolumes().Create(p.ctx, pv, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating PersistentVolume %s: %w", name, err)
	}
	claim.Spec.VolumeName = name
	claim.Annotations[storagevolume.AnnBindCompleted], claim.Annotations[storagevolume.AnnBoundByController] = "yes", "yes"
	return p.bind(claim)
}

// bind writes the claim's volume and then its phase, as the PersistentVolume
// controller does: kubelets look at nothing else.
func (p *provisioner) bind(claim *corev1.PersistentVolumeClaim) error {
	claims := p.core.CoreV1().PersistentVolumeClaims(claim.Namespace)
	bound, err := claims.Update(p.ctx, claim, metav1.UpdateOptions{})
	if err == nil {
		bound.Status.Phase, bound.Status.AccessModes, bound.Status.Capacity = corev1.ClaimBound, bound.Spec.AccessModes, bound.Spec.Resources.Requests
		_, err = claims.UpdateStatus(p.ctx, bound, metav1.UpdateOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("binding claim %s: %w", claim.Name, err)
	}
	return nil
}

// create makes the Volume, or takes the mark off the one that the scheduler has
// made, as CreateVolume does once its node has answered.
func (p *provisioner) create(claim *corev1.PersistentVolumeClaim, name, node string) (fits bool, err error) {
	c := p.agents.find(name)
	reserved := c != nil
	if !reserved {
		v := volume(name, claim, node)
		err := p.berth.Create(p.ctx, v)
		if reserved = apierrors.IsAlreadyExists(err); reserved { // the scheduler did not wait for the answer
			err = p.berth.Get(p.ctx, client.ObjectKeyFromObject(v), v)
		}
		if err != nil {
			return false, err
		}
		c = p.agents.begin(v)
	}
	select {
	case <-c.answered:
	case <-p.ctx.Done():
		return false, p.ctx.Err()
	}
	if !c.fits || !reserved {
		return c.fits, nil
	}
	return true, p.unmark(name, c)
}

// unmark takes the mark off a Volume as it was last seen.
func (p *provisioner) unmark(name string, c *carved) error {
	v := p.agents.latest(c)
	for {
		delete(v.Annotations, v1alpha1.ReservedAnnotation)
		err := p.berth.Update(p.ctx, v)
		if !apierrors.IsConflict(err) {
			return err
		}
		if err := p.berth.Get(p.ctx, types.NamespacedName{Name: name}, v); err != nil {
			return err
		}
	}
}

// giveBack takes the claim's node away, as for ResourceExhausted.
func (p *provisioner) giveBack(claim *corev1.PersistentVolumeClaim, name string) error {
	p.mu.Lock()
	p.failures++
	p.mu.Unlock()
	if err := p.remove(p.ctx, name); err != nil {
		return err
	}
	p.agents.forget(name)
	delete(claim.Annotations, storagevolume.AnnSelectedNode)
	_, err := p.core.CoreV1().PersistentVolumeClaims(claim.Namespace).Update(p.ctx, claim, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("giving claim %s back: %w", claim.Name, err)
	}
	return nil
}

// remove deletes a Volume and its finalizers, and waits for no other process.
func (s *server) remove(ctx context.Context, name string) error {
	v := &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	err := s.berth.Patch(ctx, v, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	if err == nil {
		err = s.berth.Delete(ctx, v)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing volume %s: %w", name, err)
	}
	return nil
}

func persistentVolume(claim *corev1.PersistentVolumeClaim, name, node string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{storagevolume.AnnDynamicallyProvisioned: v1alpha1.LocalDriverName}},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: class, AccessModes: claim.Spec.AccessModes, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			Capacity: corev1.ResourceList{corev1.ResourceStorage: quantity(volumeBytes)},
			ClaimRef: &corev1.ObjectReference{
				Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: v1alpha1.LocalDriverName, VolumeHandle: name, FSType: "ext4",
			}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: v1alpha1.TopologyKey, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
			}}}},
		},
	}
}
