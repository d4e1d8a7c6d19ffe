package schedule

import (
	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ledger"
)

// observeVolume counts the Volumes of all drivers, since they share the pools. Only what has no
// Volume yet is counted by the driver.
func (f *feeder) observeVolume(v *v1alpha1.Volume) {
	f.book.change(func(l *ledger.Ledger) { l.ObserveVolume(volume(v)) })
}

// forgetVolume uses the version of the deleted object as that of the deletion. If the
// informer missed the deletion, that version is too old: the ledger may then give up
// the remains of the volume at an earlier report than with the right version.
func (f *feeder) forgetVolume(v *v1alpha1.Volume) {
	f.book.change(func(l *ledger.Ledger) { l.ObserveVolumeGone(v.Name, revision(v.ResourceVersion)) })
}

func (f *feeder) observeClaim(c *corev1.PersistentVolumeClaim) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name, key := StorageClassOf(c), claimKey(c)
	if name != "" {
		f.dropUnbound("", key) // a claim without a class may be given the default one
	}
	if pv := c.Spec.VolumeName; pv != "" {
		f.dropUnbound(name, key)
		if _, known := f.pvs[pv]; !known {
			f.unknown[pv] = c
		}
	} else {
		if f.unbound[name] == nil {
			f.unbound[name] = map[string]*corev1.PersistentVolumeClaim{}
		}
		f.unbound[name][key] = c
	}
	f.charge(c)
}

// charge observes a claim by the present state of its class. The ledger does not
// charge a claim of another driver, or of a class that does not exist yet. No
// provisioner is at work for a claim whose volume is not the driver's, whatever
// node it names.
func (f *feeder) charge(c *corev1.PersistentVolumeClaim) {
	class := f.classes[StorageClassOf(c)]
	if class == nil {
		return
	}
	o, err := claim(f.from.Driver, c, class)
	if ours, known := f.pvs[c.Spec.VolumeName]; known && !ours {
		o.SelectedNode = ""
	}
	f.book.change(func(l *ledger.Ledger) {
		if err == nil { // otherwise a Reader says why
			l.ObserveClaim(o)
		}
	})
}

func (f *feeder) forgetClaim(c *corev1.PersistentVolumeClaim) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dropUnbound(StorageClassOf(c), claimKey(c))
	delete(f.unknown, c.Spec.VolumeName)
	f.book.change(func(l *ledger.Ledger) { l.ObserveClaimGone(string(c.UID)) })
}

func (f *feeder) dropUnbound(storageClass, key string) {
	delete(f.unbound[storageClass], key)
	if len(f.unbound[storageClass]) == 0 {
		delete(f.unbound, storageClass)
	}
}

func (f *feeder) observePersistentVolume(pv *corev1.PersistentVolume) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o, ours := persistentVolume(f.from.Driver, pv)
	if ours {
		f.book.change(func(l *ledger.Ledger) { l.ObservePV(o) })
	}
	f.pvs[pv.Name] = ours
	if c := f.unknown[pv.Name]; c != nil {
		delete(f.unknown, pv.Name)
		f.charge(c)
	}
}

func (f *feeder) forgetPersistentVolume(pv *corev1.PersistentVolume) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.pvs, pv.Name)
	if f.from.Driver.Handle(pv) != "" {
		f.book.change(func(l *ledger.Ledger) { l.ObservePVGone(pv.Name) })
	}
}

func (f *feeder) observePod(p *corev1.Pod) {
	if HasInline(f.from.Driver, p) || f.book.holdsFor(string(p.UID)) {
		f.book.change(func(l *ledger.Ledger) { l.ObservePod(pod(f.from.Driver, p)) })
	}
}

func (f *feeder) forgetPod(p *corev1.Pod) {
	if f.book.holdsFor(string(p.UID)) {
		f.book.change(func(l *ledger.Ledger) { l.ObservePodGone(string(p.UID)) })
	}
}

func claimKey(c *corev1.PersistentVolumeClaim) string { return c.Namespace + "/" + c.Name }

// StorageClassOf returns the StorageClass that a claim names, empty if it names none.
func StorageClassOf(c *corev1.PersistentVolumeClaim) string {
	if name, ok := c.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return name
	}
	if c.Spec.StorageClassName != nil {
		return *c.Spec.StorageClassName
	}
	return ""
}
