package schedule

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/ledger"
)

func TestAClaimIsChargedFromItsSelectedNodeToItsVolume(t *testing.T) {
	f := newFed(t)
	f.observeClaim(pvc("1", 3*gi))
	f.wantFree(10 * gi)
	f.observeClaim(pvc("1", 3*gi, selected("n1")))
	f.wantFree(7 * gi)
	f.observeVolume(volumeFor("1", "n1", 3*gi))
	f.wantFree(7 * gi)
	f.observePersistentVolume(pvFor("1", "n1"))
	f.observeClaim(pvc("1", 3*gi, selected("n1"), boundTo("pvc-"+string(uidOf("1")))))
	f.wantFree(7 * gi)
	f.forgetClaim(pvc("1", 3*gi))
	f.wantFree(7 * gi)
	f.forgetPersistentVolume(pvFor("1", "n1"))
	f.forgetVolume(volumeFor("1", "n1", 3*gi))
	f.wantFree(10 * gi)
}

// A PersistentVolume that was made by hand, or of another driver, has been found for the claim.
func TestAClaimThatIsBoundToAForeignVolumeHoldsNoRoom(t *testing.T) {
	foreign := pvFor("1", "n1")
	foreign.Name, foreign.Spec.CSI.Driver = "by-hand", "cloud.example"
	chosen, bound := pvc("1", 3*gi, selected("n1")), pvc("1", 3*gi, selected("n1"), boundTo("by-hand"))
	for name, events := range map[string]func(f *fed){
		"the volume is known before": func(f *fed) {
			f.observePersistentVolume(foreign)
			f.observeClaim(bound)
		},
		"the claim is known to be bound before": func(f *fed) {
			f.observeClaim(bound)
			f.wantFree(7 * gi) // the volume may be the driver's
			f.observePersistentVolume(foreign)
		},
		"the claim is seen again after the volume is gone": func(f *fed) {
			f.observePersistentVolume(foreign)
			f.observeClaim(bound)
			f.forgetPersistentVolume(foreign)
			f.observeClaim(bound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFed(t)
			f.observeClaim(chosen)
			f.wantFree(7 * gi)
			events(f)
			f.wantFree(10 * gi)
			f.forgetClaim(bound)
			f.forgetPersistentVolume(foreign)
			if len(f.pvs)+len(f.unknown) != 0 {
				t.Errorf("remembers %v and %v", f.pvs, f.unknown)
			}
		})
	}
}

// reportAt observes n1's report, as its agent makes it once it has seen the Volumes
// up to a revision.
func (f *fed) reportAt(revision string, items ...v1alpha1.InventoryItem) {
	f.observeNode(storageNode("n1", 10*gi, func(n *v1alpha1.StorageNode) {
		n.Status.VolumesRevision, n.Status.Pools[0].Inventory = revision, items
	}))
}

// volumeAt is a Volume of 3 GiB on n1 at a revision.
func volumeAt(revision string, change ...func(*v1alpha1.Volume)) *v1alpha1.Volume {
	v := volumeFor("1", "n1", 3*gi)
	v.ResourceVersion = revision
	for _, each := range change {
		each(v)
	}
	return v
}

func gone(v *v1alpha1.Volume) {
	v.DeletionTimestamp = &metav1.Time{}
	v.Status.Replicas[0].State, v.Status.Replicas[0].Capacity = v1alpha1.ReplicaGone, nil
}

func TestAVolumeThatIsTornAwayIsChargedUntilItsNodeHasSpoken(t *testing.T) {
	f := newFed(t)
	f.reportAt("10")
	f.observeVolume(volumeAt("12"))
	f.forgetVolume(volumeAt("20"))
	f.wantFree(7 * gi)
	f.reportAt("19")
	f.wantFree(7 * gi)
	f.reportAt("20")
	f.wantFree(10 * gi)
}

func TestTheRoomOfAReplicaThatIsClearedAwayIsNeverFreeInBetween(t *testing.T) {
	f := newFed(t)
	f.reportAt("10")
	f.observeVolume(volumeAt("12"))
	f.observeVolume(volumeAt("20", gone))
	f.wantFree(7 * gi)
	f.forgetVolume(volumeAt("21", gone))
	f.wantFree(7 * gi)
	f.reportAt("20", v1alpha1.InventoryItem{Volume: "pvc-" + string(uidOf("1")), Allocated: quantity(3 * gi)})
	f.wantFree(7 * gi) // the volume is being wiped
	f.reportAt("21")
	f.wantFree(10 * gi)
}

func TestTheRoomOfAReplicaThatHasLeftItsNodeIsFreeOnceTheNodeHasSpoken(t *testing.T) {
	f := newFed(t)
	f.reportAt("10")
	f.observeVolume(volumeAt("12"))
	f.observeVolume(volumeAt("20", gone, func(v *v1alpha1.Volume) {
		v.DeletionTimestamp, v.Spec.Replicas = nil, []v1alpha1.ReplicaSpec{{Node: "n2", Pool: "vg0"}}
	}))
	f.wantFree(7 * gi)
	f.reportAt("20")
	f.wantFree(10 * gi)
}

func TestAClaimMayComeBeforeItsStorageClass(t *testing.T) {
	f := newFed(t)
	f.observeClaim(pvc("1", 3*gi, selected("n1"), ofClass("late")))
	f.wantFree(10 * gi)
	f.observeStorageClass(storageClass("late", v1alpha1.LocalDriverName, storagev1.VolumeBindingWaitForFirstConsumer))
	f.wantFree(7 * gi)
}

func TestAClaimThatIsGivenTheDefaultClassLaterIsOneClaim(t *testing.T) {
	f := newFed(t)
	f.observeClaim(pvc("1", 3*gi, ofClass("")))
	f.observeClaim(pvc("1", 3*gi, selected("n1")))
	f.wantFree(7 * gi)
	f.forgetClaim(pvc("1", 3*gi))
	f.wantFree(10 * gi)
	if len(f.unbound) != 0 {
		t.Errorf("claims are kept: %v", f.unbound)
	}
}

func TestAClaimIsChargedAsItsVolumeWillBe(t *testing.T) {
	f := newFed(t)
	f.observeClaim(pvc("1", mi, selected("n1"))) // ext4 needs 32Mi
	f.wantFree(10*gi - 32*mi)
	f.observeClaim(pvc("2", gi, selected("n1"), func(c *corev1.PersistentVolumeClaim) { c.Spec.AccessModes[0] = corev1.ReadWriteMany }))
	f.wantFree(10*gi - 32*mi) // there will be no volume
}

func TestClaimsOfOthersAreNotCharged(t *testing.T) {
	f := newFed(t)
	f.observeStorageClass(storageClass("cloud", "cloud.example", storagev1.VolumeBindingWaitForFirstConsumer))
	f.observeClaim(pvc("1", 3*gi, selected("n1"), ofClass("cloud")))
	f.observeClaim(pvc("2", 3*gi, selected("n1"), ofClass("")))
	f.wantFree(10 * gi)
}

func TestAStorageClassThatCannotBeUsedChargesNothing(t *testing.T) {
	f := newFed(t)
	broken := storageClass("broken", v1alpha1.LocalDriverName, storagev1.VolumeBindingWaitForFirstConsumer)
	broken.Parameters["raid"] = "1"
	f.observeStorageClass(broken)
	f.observeClaim(pvc("1", 3*gi, selected("n1"), ofClass("broken")))
	f.wantFree(10 * gi)
}

func TestInlineVolumesAreChargedFromBindingToTheEnd(t *testing.T) {
	f := newFed(t)
	p := podWith(scratch("2Gi"))
	f.observePod(p)
	f.wantFree(10 * gi)
	bound := p.DeepCopy()
	bound.Spec.NodeName = "n1"
	f.observePod(bound)
	f.wantFree(8 * gi)
	f.forgetPod(bound)
	f.wantFree(10 * gi)
}

func TestAPodThatHoldsRoomIsFollowedThoughItHasNoInlineVolume(t *testing.T) {
	f := newFed(t)
	p := podWith(claimVolume("1"))
	f.reserve("web", demand("1", 4*gi))
	f.wantFree(6 * gi)
	f.forgetPod(p)
	f.wantFree(10 * gi)
}

func TestOtherPodsLeaveNoTrace(t *testing.T) {
	f := newFed(t)
	p := podWith(claimVolume("1"))
	p.Spec.NodeName = "n1"
	f.observePod(p)
	if f.book.holdsFor("web") {
		t.Error("it is remembered")
	}
}

func TestANodeWhoseAgentFallsSilentTakesNothingNew(t *testing.T) {
	f := newFed(t)
	f.beats.away["n1"] = "silent for 41s"
	f.lookAtHeartbeats()
	f.wantFree(0)
	if verdict := f.fit(demand("1", gi)); verdict.Reason != ledger.NodeNotReady {
		t.Errorf("a silent node says %v", verdict.Reason)
	}
	if len(f.returned) != 0 {
		t.Errorf("returned: %v", f.returned)
	}

	f.observeNode(storageNode("n1", 12*gi)) // a report that was already under way
	f.wantFree(0)

	delete(f.beats.away, "n1")
	f.beats.heard("n1")
	f.wantFree(12 * gi)
	if !slices.Equal(f.returned, []string{"n1"}) {
		t.Errorf("returned: %v", f.returned)
	}
	f.beats.heard("n1")
	f.beats.heard("unknown")
	if len(f.returned) != 1 {
		t.Errorf("returned again: %v", f.returned)
	}
}

func (f *fed) fit(demands ...ledger.Demand) ledger.Verdict {
	r, _ := f.book.Request(ledger.RequestOptions{Pod: "p"}, demands...)
	return f.book.Node("n1").Fit(r)
}

func TestAnUpdateToAnotherObjectOfTheNameIsADeletionThatWasMissed(t *testing.T) {
	f := newFed(t)
	h := handler(f.observeClaim, f.forgetClaim)
	first := pvc("1", 3*gi, selected("n1"))
	h.OnAdd(first, true)
	f.wantFree(7 * gi)
	second := pvc("1", gi)
	second.UID = uidOf("2")
	h.OnUpdate(first, second)
	f.wantFree(10 * gi)
}

func TestTombstonesAreDeletions(t *testing.T) {
	f := newFed(t)
	h := handler(f.observeVolume, f.forgetVolume)
	h.OnAdd(volumeFor("1", "n1", gi), true)
	f.wantFree(9 * gi)
	h.OnDelete(cache.DeletedFinalStateUnknown{Key: "x", Obj: volumeFor("1", "n1", gi)})
	f.wantFree(10 * gi)
	h.OnDelete(cache.DeletedFinalStateUnknown{Key: "x", Obj: &corev1.Pod{}}) // nonsense is ignored
}

func TestLookingForSilenceAllocatesNothingWhileNoNodeFallsSilent(t *testing.T) {
	f := newFeeder(NewBook(), Informers{Driver: driver.Local(), Heartbeats: &beats{}})
	for _, name := range []string{"n1", "n2", "n3"} {
		f.observeNode(storageNode(name, gi))
	}
	if n := testing.AllocsPerRun(100, f.lookAtHeartbeats); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
