package gone

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide/gone/gonetest"
)

const hour = gonetest.Delay

var start = gonetest.Start

type option func(*Facts)

// facts describe a volume whose only copy is on n1. It is bound to the claim shop/db-0, and its
// class releases claims after an hour. n1 is gone, alone of ten nodes, and no step was taken yet.
func facts(options ...option) Facts {
	f := Facts{
		Volume: gonetest.Volume(), Node: gonetest.Node, Class: gonetest.Class(v1alpha1.NodeGoneReleaseClaims), PersistentVolume: gonetest.PersistentVolume(), Claim: gonetest.Claim(),
		Crowd: Crowd{Gone: 1, Known: 10}, Now: start,
	}
	for _, o := range options {
		o(&f)
	}
	return f
}

// says marks the volume as of the start.
func says(status metav1.ConditionStatus, reason string) option {
	return func(f *Facts) {
		m := metav1.Condition{Type: v1alpha1.ConditionNodeGone, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(start)}
		if reason == v1alpha1.ReasonReleasePending {
			m.Message = f.pending(start.Add(hour))
		}
		f.Volume.Status.Conditions = []metav1.Condition{m}
	}
}

// after lets time pass, all of which this process has seen.
func after(d time.Duration) option {
	return func(f *Facts) {
		f.Now = start.Add(d)
		f.Watched = Watched{For: d, Whole: true}
	}
}

// restarted is a process that has seen only the last part of the absence.
func restarted(seen time.Duration) option {
	return func(f *Facts) { f.Watched = Watched{For: seen} }
}

func present(f *Facts) { f.Present = true }

func retained(f *Facts) {
	f.PersistentVolume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
}

func unclaimed(f *Facts) { f.Claim = nil }

func deletedClaim(f *Facts) { f.Claim.DeletionTimestamp = &metav1.Time{Time: start} }

func crowded(f *Facts) { f.Crowd = Crowd{Gone: 4, Known: 100} }

func keeping(f *Facts) { f.Class = gonetest.Class(v1alpha1.NodeGoneKeep) }
