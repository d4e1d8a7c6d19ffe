package quarantine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
)

// Adopting is the verb of a step whose objects are to be made.
const Adopting decide.Verb = "Adopt"

// Step is what a plan has for one orphan.
type Step struct {
	// Action is Adopting; decide.None if the objects are there already, and the node is about to
	// report it; or decide.Refuse if a person has to decide, and the reason says what.
	Action decide.Verb `json:"action"`
	Node   string      `json:"node"`
	Pool   string      `json:"pool"`
	Name   string      `json:"name"`
	// Claim, as NAMESPACE/NAME, that the data is for; empty for snapshots, and if it is not known.
	Claim string            `json:"claim,omitempty"`
	Size  resource.Quantity `json:"size"`
	// Reason why the step refuses, or does nothing.
	Reason string `json:"reason,omitempty"`
	// Done says that the step was carried out, and Error why it failed.
	Done  bool   `json:"done,omitempty"`
	Error string `json:"error,omitempty"`
}

// Facts are what a plan follows from.
type Facts struct {
	Nodes     []v1alpha1.StorageNode
	Volumes   []v1alpha1.Volume
	Snapshots []v1alpha1.Snapshot
	PVs       []corev1.PersistentVolume
	Claims    []corev1.PersistentVolumeClaim
	// Node to plan for; empty means all.
	Node string
	// PoolClass of all that is adopted; empty means the only one of the pool.
	PoolClass string
}

// Plan returns a step for each orphan: the volumes first, since the class of a snapshot is that of
// its volume. It adopts a volume only for a claim that is known by, in this order, the
// PersistentVolume of the volume, the uid in the volume's name, and the record beside the data. It
// refuses where two answers are possible.
func Plan(f Facts) []Step {
	orphans := slices.DeleteFunc(Find(f.Nodes, nil, nil), func(o Orphan) bool { return o.Missing != MissingObject })
	steps := []Step{}
	for _, o := range orphans {
		s := Step{Action: Adopting, Node: o.Node, Pool: o.Pool, Name: o.Name, Size: o.Size}
		s.Claim = f.claimOf(o)
		if others := f.twins(o, orphans); others != "" {
			s.refuse("%s has data of the same name: compare them, and adopt one by its name", others)
		} else if o.Forgotten != nil {
			s.refuse("it is to be deleted: kubectl berth forget --undo %s %s", o.Node, o.Name)
		} else if v1alpha1.IsSnapshotName(o.Name) {
			f.snapshot(&s)
		} else {
			f.volume(&s)
		}
		steps = append(steps, s)
	}
	rivals(steps)
	if f.Node != "" {
		steps = slices.DeleteFunc(steps, func(s Step) bool { return s.Node != f.Node })
	}
	slices.SortStableFunc(steps, func(a, b Step) int {
		return cmp.Or(cmp.Compare(last(a), last(b)), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Name, b.Name))
	})
	return steps
}

func last(s Step) int {
	if v1alpha1.IsSnapshotName(s.Name) {
		return 1
	}
	return 0
}

func (s *Step) refuse(format string, args ...any) {
	s.Action, s.Reason = decide.Refuse, fmt.Sprintf(format, args...)
}

// twins names the other places that have data of an orphan's name.
func (Facts) twins(o Orphan, all []Orphan) string {
	var places []string
	for _, other := range all {
		if other.Name == o.Name && (other.Node != o.Node || other.Pool != o.Pool) {
			places = append(places, fmt.Sprintf("pool %s of node %s", other.Pool, other.Node))
		}
	}
	return strings.Join(places, " and ")
}

// claimOf returns the claim of data, as NAMESPACE/NAME; empty if it is not known.
func (f Facts) claimOf(o Orphan) string {
	if v1alpha1.IsSnapshotName(o.Name) {
		return ""
	}
	if pv := f.pv(o.Name); pv != nil && pv.Spec.ClaimRef != nil {
		return pv.Spec.ClaimRef.Namespace + "/" + pv.Spec.ClaimRef.Name
	}
	for i := range f.Claims {
		if c := &f.Claims[i]; v1alpha1.VolumeName("pvc-"+string(c.UID)) == o.Name {
			return c.Namespace + "/" + c.Name
		}
	}
	return o.Claim
}

// pv returns the PersistentVolume of a volume, or nil.
func (f Facts) pv(handle string) *corev1.PersistentVolume {
	i := slices.IndexFunc(f.PVs, func(pv corev1.PersistentVolume) bool { return served.Handle(&pv) == handle })
	if i < 0 {
		return nil
	}
	return &f.PVs[i]
}

// volume decides about a volume that no other data has the name of.
func (f Facts) volume(s *Step) {
	pv := f.pv(s.Name)
	i := slices.IndexFunc(f.Volumes, func(v v1alpha1.Volume) bool { return v.Name == s.Name })
	if i >= 0 && !served.Owns(&f.Volumes[i]) {
		s.refuse("Volume %s is of driver %s", s.Name, f.Volumes[i].DriverName())
		return
	}
	stays := i >= 0 && !superseded(&f.Volumes[i], s.Node)
	if stays {
		if err := placed("Volume", &f.Volumes[i], f.Volumes[i].Spec.Replicas, s.Node); err != nil {
			s.refuse("%v", err)
			return
		}
		if pv != nil {
			s.Action, s.Reason = decide.None, "its objects are there"
			return
		}
	}
	switch other := f.holder(s.Claim, s.Name); {
	case pv != nil && pv.DeletionTimestamp != nil:
		s.refuse("PersistentVolume %s is being deleted", pv.Name)
	case pv != nil: // the objects that users see are there: only the Volume is made
	case s.Claim == "":
		s.refuse("the record beside the data names no claim: kubectl berth adopt %s %s --claim NAMESPACE/NAME", s.Node, s.Name)
	case other != "":
		s.refuse("claim %s has PersistentVolume %s: name another claim with kubectl berth adopt %s %s --claim NAMESPACE/NAME", s.Claim, other, s.Node, s.Name)
	}
	if s.Action == Adopting && !stays {
		f.class(s, pv)
	}
}

// holder returns the PersistentVolume that a claim has, or that is kept for it, if it is not the one
// of this volume.
func (f Facts) holder(claim, name string) string {
	for i := range f.Claims {
		c := &f.Claims[i]
		if c.Namespace+"/"+c.Name == claim && c.Spec.VolumeName != "" && c.Spec.VolumeName != name {
			return c.Spec.VolumeName
		}
	}
	for i := range f.PVs {
		ref := f.PVs[i].Spec.ClaimRef
		if ref != nil && ref.Namespace+"/"+ref.Name == claim && served.Handle(&f.PVs[i]) != name {
			return f.PVs[i].Name
		}
	}
	return ""
}

// class refuses data whose PoolClass is not known.
func (f Facts) class(s *Step, pv *corev1.PersistentVolume) {
	if f.PoolClass != "" || pv != nil && pv.Spec.StorageClassName != "" {
		return
	}
	for i := range f.Nodes {
		for _, p := range f.Nodes[i].Status.Pools {
			if f.Nodes[i].Name == s.Node && p.Name == s.Pool {
				if _, err := onlyClass(p); err != nil {
					s.refuse("%v", err)
				}
			}
		}
	}
}

// snapshot decides about a snapshot that no other data has the name of.
func (f Facts) snapshot(s *Step) {
	for i := range f.Snapshots {
		if found := &f.Snapshots[i]; found.Name == s.Name {
			s.Action, s.Reason = decide.None, "its object is there"
			if err := placed("Snapshot", found, found.Spec.Replicas, s.Node); err != nil {
				s.refuse("%v", err)
			}
		}
	}
}

// rivals refuses all volumes that were made for one claim: it can have one of them.
func rivals(steps []Step) {
	count := map[string][]int{}
	for i, s := range steps {
		if s.Claim != "" && s.Action == Adopting {
			count[s.Claim] = append(count[s.Claim], i)
		}
	}
	for claim, which := range count {
		if len(which) < 2 {
			continue
		}
		for _, i := range which {
			steps[i].refuse("%d volumes were made for claim %s: choose one with kubectl berth adopt %s %s --claim NAMESPACE/NAME",
				len(which), claim, steps[i].Node, steps[i].Name)
		}
	}
}
