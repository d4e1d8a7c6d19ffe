package survey_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/survey"
)

func lun(name, size string, state v1alpha1.LUNState, message string) v1alpha1.LUN {
	l := v1alpha1.LUN{ObjectMeta: metav1.ObjectMeta{Name: name}}
	l.Spec = v1alpha1.LUNSpec{PoolClass: "san", Capacity: resource.MustParse(size), Disk: v1alpha1.SharedDisk{Handle: name, Identity: name}}
	l.Status = v1alpha1.LUNStatus{State: state, Message: message}
	if state == v1alpha1.LUNBound {
		l.Status.Volume = &v1alpha1.LUNVolume{Name: "other", UID: "other"}
	}
	return l
}

// wanting is a cluster in which the claim shop/demo asks for 10Gi of the class san.
func wanting(luns ...v1alpha1.LUN) survey.Cluster {
	c, _, _ := well()
	c.LUNs = luns
	c.StorageClasses = append(c.StorageClasses, storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "san"}, Provisioner: v1alpha1.DiskDriverName,
		VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer), Parameters: map[string]string{"poolClass": "san"},
	})
	claimed(&c, "demo", "demo")
	claim := &c.Claims[0]
	claim.Spec.StorageClassName = new("san")
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
	return c
}

func TestAClaimOfASharedDiskIsExplained(t *testing.T) {
	bound := func(edits ...func(*v1alpha1.Volume)) survey.Cluster {
		c := shared(wanting(), edits...)
		c.Claims[0].Spec.VolumeName = "demo"
		return c
	}
	for name, test := range map[string]struct {
		c       survey.Cluster
		state   string
		message string
		nodes   int
	}{
		"no LUN is declared":     {wanting(), "Waiting", `it has no volume yet: no LUN has spec.poolClass "san"`, 0},
		"no LUN is large enough": {wanting(lun("a", "5Gi", v1alpha1.LUNAvailable, ""), lun("b", "20Gi", v1alpha1.LUNBound, "")), "Waiting", "of its 2 LUNs: 1 in use, 1 too small", 0},
		"a LUN is free":          {wanting(lun("a", "20Gi", v1alpha1.LUNAvailable, "")), "Waiting", "LUN a is free. Events tell what is missing: kubectl describe pvc demo -n shop", 0},
		"no pod uses it": {func() survey.Cluster {
			c := wanting(lun("a", "20Gi", v1alpha1.LUNAvailable, ""))
			c.Pods = nil
			return c
		}(), "Waiting", "it waits for the first pod that uses it", 0},
		"its class has a wrong parameter": {func() survey.Cluster {
			c := wanting()
			c.StorageClasses[1].Parameters["maxShares"] = "many"
			return c
		}(), "Waiting", "StorageClass san: ", 0},
		"several nodes shall write a disk of a class with standbys": {func() survey.Cluster {
			c := wanting()
			c.Claims[0].Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
			c.StorageClasses[1].Parameters["maxShares"] = "2"
			return c
		}(), "Waiting", `StorageClass san: access mode ReadWriteMany needs parameter "maxMountReplicaCount" 0`, 0},
		"several nodes shall write a disk whose target forgets": {func() survey.Cluster {
			c := wanting(lun("a", "20Gi", v1alpha1.LUNAvailable, ""))
			c.Claims[0].Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
			c.StorageClasses[1].Parameters["maxShares"], c.StorageClasses[1].Parameters["maxMountReplicaCount"] = "2", "0"
			return c
		}(), "Waiting", "of its 1 LUNs: 1 without reservations that persist, which ReadWriteMany needs", 0},
		"all is well":                     {bound(), "Ready", "", 2},
		"its volume waits":                {bound(waiting), "Waiting", "taint it", 2},
		"its Volume is gone":              {func() survey.Cluster { c := bound(); c.Volumes = nil; return c }(), "Waiting", "its Volume " + disk + " does not exist", 0},
		"its PersistentVolume is missing": {func() survey.Cluster { c := bound(); c.PersistentVolumes = nil; return c }(), "Waiting", "PersistentVolume demo does not exist", 0},
	} {
		t.Run(name, func(t *testing.T) {
			found := test.c.SharedClaims("shop", []string{"demo", "data"})
			if len(found) != 1 || found[0].State != test.state || !strings.Contains(found[0].Message, test.message) || len(found[0].Replicas) != test.nodes {
				t.Errorf("%+v, want %s, %q, %d replicas", found, test.state, test.message, test.nodes)
			}
		})
	}
	if found := wanting().SharedClaims("shop", []string{"data"}); len(found) != 0 {
		t.Errorf("a claim of a pool: %+v", found)
	}
}

func TestLUNsAreCountedAndThoseThatNobodyGetsAreProblems(t *testing.T) {
	c, p, _ := well()
	if s := c.Status(p); s.LUNs != nil {
		t.Errorf("%+v", s.LUNs)
	}
	c.LUNs = []v1alpha1.LUN{
		lun("a", "1Gi", v1alpha1.LUNAvailable, ""), lun("b", "1Gi", v1alpha1.LUNBound, ""), lun("c", "1Gi", v1alpha1.LUNWiping, "node n1 wipes the disk"),
		lun("d", "1Gi", v1alpha1.LUNReleased, "Berth does not wipe the disk"), lun("e", "1Gi", v1alpha1.LUNUnavailable, "LUN f names the same disk"),
	}
	s := c.Status(p)
	if *s.LUNs != (survey.LUNs{Available: 1, Of: 5}) || len(s.Problems) != 2 ||
		s.Problems[0] != "LUN d is Released: Berth does not wipe the disk" || s.Problems[1] != "LUN e is Unavailable: LUN f names the same disk" {
		t.Errorf("%+v", s)
	}
}

func TestAClaimThatWaitsForASharedDiskCounts(t *testing.T) {
	c := wanting()
	_, p, _ := well()
	if s := c.Status(p); s.Waiting != 1 || !strings.Contains(s.Problems[0], "kubectl berth explain pvc demo -n shop") {
		t.Errorf("%+v", s)
	}
}
