package schedule

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/ledger"
)

// Source is the object that a claim is to begin as a copy of. A copy is made beside
// its source, in the same pool.
type Source struct {
	// Claim that is to be made from it.
	Claim string
	// Kind and Name of the object that the claim names, in its own namespace: a
	// PersistentVolumeClaim or a VolumeSnapshot.
	Kind, Name string
	// Places that have it.
	Places []ledger.Place
	// ignored sources are not for Berth to find: those of another driver, which the
	// provisioner refuses, and claims that wait for the same pod.
	ignored bool
}

// The kinds of sources that a provisioner knows.
const (
	kindClaim    = "PersistentVolumeClaim"
	kindSnapshot = "VolumeSnapshot"
)

// sourceOf returns the object that the claim's data comes from, or nil for a claim that
// begins blank. Of the two fields the newer one counts; the API server keeps them alike.
func sourceOf(c *corev1.PersistentVolumeClaim) *corev1.TypedObjectReference {
	if c.Spec.DataSourceRef != nil {
		return c.Spec.DataSourceRef
	}
	if s := c.Spec.DataSource; s != nil {
		return &corev1.TypedObjectReference{APIGroup: s.APIGroup, Kind: s.Kind, Name: s.Name}
	}
	return nil
}

// RestoredFrom returns the name of the VolumeSnapshot, in its own namespace, that a
// claim is to be made from, or empty.
func RestoredFrom(c *corev1.PersistentVolumeClaim) string {
	s := sourceOf(c)
	if s == nil || s.Kind != kindSnapshot || !copies(s) || s.Namespace != nil && *s.Namespace != c.Namespace {
		return ""
	}
	return s.Name
}

// copies reports whether a provisioner makes a copy of the source. Otherwise a
// populator fills the claim.
func copies(source *corev1.TypedObjectReference) bool {
	group := ""
	if source.APIGroup != nil {
		group = *source.APIGroup
	}
	return source.Kind == kindClaim && group == "" || source.Kind == kindSnapshot && group == groupSnapshot
}

// String says for people which claim is made from which source: no full stop, and
// open to a clause that begins with ", which".
func (s *Source) String() string {
	word := "claim"
	if s.Kind == kindSnapshot {
		word = "snapshot"
	}
	return fmt.Sprintf("claim %q is made from %s %q", s.Claim, word, s.Name)
}

// OfClaim reports whether the source is the claim of this name.
func (s *Source) OfClaim(name string) bool { return s.Kind == kindClaim && s.Name == name }

// Where says for people where the source is.
func (s *Source) Where() string {
	nodes := s.Nodes()
	if len(nodes) == 1 {
		return s.String() + ", which is on node " + nodes[0]
	}
	return s.String() + ", which is on nodes " + strings.Join(nodes, ", ")
}

// Nodes that have the source, in order.
func (s *Source) Nodes() []string {
	var nodes []string
	for _, at := range s.Places {
		nodes = append(nodes, at.Node)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// restored finds the places of a snapshot, or says in a clause that begins with
// "which" why nothing can be made from it now. Each of the objects may be missing.
func (s *Source) restored(d driver.Driver, of *VolumeSnapshot, snapshot *v1alpha1.Snapshot) (problem string) {
	switch {
	case of == nil:
		return "which does not exist"
	case of.Driver != "" && !d.Took(of.Driver):
		s.ignored = true
		return ""
	case of.Deleting:
		return "which is being deleted"
	case of.Driver == "":
		return "which is not taken yet" + because(of.Problem)
	case !of.Ready || of.Handle == "":
		return "which is not ready to use" + because(of.Problem)
	case snapshot == nil:
		return fmt.Sprintf("which is lost: Berth has no snapshot %s", of.Handle)
	}
	return s.kept(snapshot)
}

// kept finds the places of a snapshot that Berth knows.
func (s *Source) kept(snapshot *v1alpha1.Snapshot) (problem string) {
	if snapshot.DeletionTimestamp != nil {
		return "which is being deleted"
	}
	for _, replica := range snapshot.Spec.Replicas {
		if entry := snapshot.Entry(replica.Node); entry != nil && entry.State == v1alpha1.SnapshotReady {
			s.Places = append(s.Places, ledger.Place{Node: replica.Node, Pool: replica.Pool})
		}
	}
	if len(s.Places) > 0 {
		return ""
	}
	for i := range snapshot.Status.Replicas {
		if entry := &snapshot.Status.Replicas[i]; entry.State == v1alpha1.SnapshotFailed && entry.Taken != nil {
			return fmt.Sprintf("which is lost on node %s%s", entry.Node, because(entry.Message))
		}
	}
	return "which is not ready to use"
}

// cloned finds the places of a bound claim's Volume, or says like restored why
// nothing can be made from it now. The Volume may be missing.
func (s *Source) cloned(v *v1alpha1.Volume) (problem string) {
	switch {
	case v == nil:
		return "whose volume does not exist"
	case v.DeletionTimestamp != nil:
		return "whose volume is being deleted"
	}
	for _, replica := range v.Spec.Replicas {
		entry := v.Entry(replica.Node)
		switch {
		case entry != nil && entry.Ready:
			s.Places = append(s.Places, ledger.Place{Node: replica.Node, Pool: replica.Pool})
		case entry != nil:
			problem = fmt.Sprintf("which is not ready on node %s%s", entry.Node, because(entry.Message))
		}
	}
	switch {
	case len(s.Places) > 0:
		return ""
	case problem == "":
		return "which is not ready on any node"
	}
	return problem
}

// because is the end of a sentence that says why, if that is known.
func because(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}
