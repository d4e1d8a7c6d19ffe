package schedule

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/storageclass"
	"berth.dev/berth/internal/usecase/volumes"
)

// PodVolumes are the volumes that a pod wants of Berth, or has.
type PodVolumes struct {
	// Wanted are the volumes that are yet to be placed, in the order of the pod's
	// spec. They include volumes that a static PersistentVolume can serve: see Static.
	Wanted []Wanted
	// Holders are the nodes that have the pod's volumes already.
	Holders []Holder
	// Unready, if not empty, says in people's words why the pod cannot be
	// scheduled anywhere now: a claim is missing, or waits for others.
	Unready string
	// Sources are the sources of the pod's unbound claims, also if one of them is the
	// reason why the pod is not ready.
	Sources []*Source
}

// Wanted is a volume that is yet to be placed.
type Wanted struct {
	Demand ledger.Demand
	// Claim that it is for, and its StorageClass; nil for an inline volume.
	Claim *corev1.PersistentVolumeClaim
	Class *storagev1.StorageClass
	// Request makes the claim's Volume, once Topology and Pool are filled in. It
	// is the zero Request for an inline volume, and for a claim that is Populated.
	Request volumes.Request
	// Populated claims do not begin blank. They need room, but the scheduler must
	// make no Volume for them. They get another claim's volume, or a copy, which only
	// CreateVolume makes: only CreateVolume is told the source.
	Populated bool
	// Source, if known, is the object that the volume has to be made beside.
	Source *Source
}

// Holder is a node that has a replica of one of the pod's volumes.
type Holder struct {
	Volume, Node string
	Standing     Standing
}

// Standing is how good a node's replica is, the best last.
type Standing uint8

// The standings.
const (
	// Unfit replicas cannot be used now.
	Unfit Standing = iota
	// Standby replicas could become primary.
	Standby
	// Primary replicas were, or are, written.
	Primary
)

// Demands lists the wanted volumes as demands to the ledger.
func (v *PodVolumes) Demands() []ledger.Demand {
	demands := make([]ledger.Demand, 0, len(v.Wanted))
	for i := range v.Wanted {
		demands = append(demands, v.Wanted[i].Demand)
	}
	return demands
}

// Why says for people why the pod's volumes do not fit on a node, if more is known
// than the ledger says; empty otherwise.
func (v *PodVolumes) Why(verdict ledger.Verdict) string {
	if verdict.Reason != ledger.SourceElsewhere {
		return ""
	}
	for i := range v.Wanted {
		if w := &v.Wanted[i]; w.Demand.Owner == verdict.Owner && w.Source != nil {
			return w.Source.Where()
		}
	}
	return ""
}

// Reader reads which volumes pods want of a driver.
type Reader struct {
	Driver  driver.Driver
	Objects Objects
}

// Read returns the volumes that the pod wants of the driver, or nil if there are none. A
// pod without claims and inline volumes costs no allocation.
func (r Reader) Read(ctx context.Context, pod *corev1.Pod) (*PodVolumes, error) {
	var out *PodVolumes
	ours := func() *PodVolumes {
		if out == nil {
			out = &PodVolumes{}
		}
		return out
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		switch {
		case v.CSI != nil:
			if r.Driver.Describes(v) {
				ours().addInline(pod, v)
			}
		case v.PersistentVolumeClaim != nil || v.Ephemeral != nil:
			c, err := r.claimOf(ctx, pod, v)
			if err != nil {
				return nil, err
			}
			c.add(r.Driver, ours)
		}
	}
	return out, nil
}

func (v *PodVolumes) addInline(pod *corev1.Pod, source *corev1.Volume) {
	volume, feature, err := inline(source)
	if err != nil {
		v.unready(fmt.Sprintf("inline volume %q: %v", source.Name, err))
		return
	}
	v.Wanted = append(v.Wanted, Wanted{Demand: ledger.Demand{
		Owner: ledger.Inline(string(pod.UID), volume.Name), Class: volume.Class, Bytes: volume.Bytes, Namespace: pod.Namespace, Feature: feature,
	}})
}

// unready keeps the first reason.
func (v *PodVolumes) unready(message string) {
	if v.Unready == "" {
		v.Unready = message
	}
}

// podClaim is one claim of a pod.
type podClaim struct {
	name  string
	claim *corev1.PersistentVolumeClaim
	class *storagev1.StorageClass
	// pools is the PoolClass of an unbound claim; nil if there is none of that name.
	pools *v1alpha1.PoolClass
	// problem is the reason why the claim is of no use now. Its driver may then be
	// unknown; a problem is told only beside volumes of Berth's.
	problem string
	// ours says whether the claim is Berth's.
	ours bool
	// holders of a bound claim.
	holders []Holder
	// source of an unbound claim, if it has one.
	source *Source
}

func (r Reader) claimOf(ctx context.Context, pod *corev1.Pod, v *corev1.Volume) (podClaim, error) {
	c := podClaim{name: ClaimName(pod, v)}
	var err error
	c.claim, err = r.Objects.Claim(ctx, pod.Namespace, c.name)
	switch {
	case err != nil:
		return c, fmt.Errorf("reading claim %s/%s: %w", pod.Namespace, c.name, err)
	case c.claim == nil:
		c.problem = fmt.Sprintf("claim %q does not exist", c.name)
		return c, r.templateOf(ctx, v, &c)
	case c.claim.DeletionTimestamp != nil:
		c.problem = fmt.Sprintf("claim %q is being deleted", c.name)
	case v.Ephemeral != nil && !metav1.IsControlledBy(c.claim, pod):
		c.problem = fmt.Sprintf("claim %q was not made for the pod: delete it, or rename the volume", c.name)
	}
	if c.claim.Spec.VolumeName != "" {
		return c, r.bound(ctx, &c)
	}
	if err = r.unbound(ctx, StorageClassOf(c.claim), &c); c.ours && err == nil {
		if err = r.source(ctx, pod, &c); err == nil {
			err = r.poolsOf(ctx, &c)
		}
	}
	return c, err
}

// ClaimName returns the claim behind a volume of a pod, or empty.
func ClaimName(pod *corev1.Pod, v *corev1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		return pod.Name + "-" + v.Name // as the ephemeral volume controller names it
	default:
		return ""
	}
}

// templateOf finds out whether an ephemeral claim that was not made yet will be Berth's.
func (r Reader) templateOf(ctx context.Context, v *corev1.Volume, c *podClaim) error {
	if v.Ephemeral == nil || v.Ephemeral.VolumeClaimTemplate == nil || v.Ephemeral.VolumeClaimTemplate.Spec.StorageClassName == nil {
		return nil
	}
	c.problem = fmt.Sprintf("claim %q of an ephemeral volume is not made yet", c.name)
	return r.unbound(ctx, *v.Ephemeral.VolumeClaimTemplate.Spec.StorageClassName, c)
}

func (r Reader) unbound(ctx context.Context, className string, c *podClaim) error {
	class, err := r.Objects.StorageClass(ctx, className)
	if err != nil {
		return fmt.Errorf("reading storage class %s: %w", className, err)
	}
	c.class = class
	c.ours = class != nil && r.Driver.Provisions(class)
	return nil
}

// poolsOf finds the PoolClass that the claim's StorageClass names.
func (r Reader) poolsOf(ctx context.Context, c *podClaim) (err error) {
	name := c.class.Parameters[storageclass.PoolClassKey]
	if c.pools, err = r.Objects.PoolClass(ctx, name); err != nil {
		return fmt.Errorf("reading PoolClass %s: %w", name, err)
	}
	return nil
}

func (r Reader) bound(ctx context.Context, c *podClaim) error {
	name := c.claim.Spec.VolumeName
	pv, err := r.Objects.PersistentVolume(ctx, name)
	if err != nil {
		return fmt.Errorf("reading PersistentVolume %s: %w", name, err)
	}
	if pv == nil {
		c.problem = fmt.Sprintf("claim %q names PersistentVolume %s, which does not exist", c.name, name)
		return nil
	}
	handle := r.Driver.Handle(pv)
	if c.ours = handle != ""; !c.ours {
		return nil
	}
	v, err := r.Objects.Volume(ctx, handle)
	if err != nil {
		return fmt.Errorf("reading volume %s: %w", handle, err)
	}
	if v == nil {
		if node := nodeOf(pv); node != "" {
			c.holders = []Holder{{Volume: handle, Node: node, Standing: Primary}}
		}
		return nil
	}
	c.holders = holders(v)
	return nil
}
