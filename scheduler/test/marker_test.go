package test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/scheduler/internal/controlplane"
)

const marker corev1.ResourceName = "berth.dev/volumes"

// installMarker installs the chart's policy for a scheduler, and waits until it is
// in force. It is in force for a moment after the test too, so the scheduler is one
// that no test without the policy has.
func (b *bench) installMarker(t *testing.T, scheduler string) {
	t.Helper()
	objects, err := controlplane.Template(t.Context(), root, apitest.Namespace, []string{"extender"},
		"extender.enabled=true", "extender.tlsSecret=none", "extender.clientCASecret=none", "extender.marker.enabled=true", "extender.marker.schedulerName="+scheduler)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if object.GetKind() == "Service" {
			continue
		}
		b.create(t, object)
		t.Cleanup(func() {
			if err := b.Client.Delete(context.WithoutCancel(t.Context()), object); err != nil {
				t.Error(err)
			}
		})
	}
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		probe := b.pod("probe", by(scheduler), named("any"))
		err := b.Client.Create(ctx, probe, client.DryRunAll)
		return markOf(probe) == "1", err
	})
	if err != nil {
		t.Fatalf("waiting for the policy to be in force: %v", err)
	}
}

// named gives a pod a claim by its name alone; there may be none.
func named(claim string) func(*corev1.Pod) {
	return withSource(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}})
}

func withSource(source corev1.VolumeSource) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "v", VolumeSource: source})
	}
}

// withEphemeral gives a pod a claim that lives with it.
func withEphemeral(class string, bytes int64) func(*corev1.Pod) {
	return withSource(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(bytes, resource.BinarySI)}},
		},
	}}})
}

// markOf is how much of the marker a pod asks for, or empty. A request without its
// limit would be refused, so both are looked at.
func markOf(pod *corev1.Pod) string {
	r := pod.Spec.Containers[0].Resources
	request, requested := r.Requests[marker]
	limit, limited := r.Limits[marker]
	switch {
	case !requested && !limited:
		return ""
	case !requested || !limited || !request.Equal(limit):
		return "half"
	}
	return request.String()
}

func TestThePolicyMarksThePodsThatTheExtenderHasToSee(t *testing.T) {
	b := newBench(t, apitest.Start(t))
	b.installMarker(t, "marked")
	foreign := corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "other.example.org"}}
	small := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	tests := map[string]struct {
		change func(*corev1.Pod)
		mark   string
	}{
		"a claim of Berth's":                 {b.withClaims(t, 1, gi), "1"},
		"a claim that does not exist yet":    {named("later"), "1"},
		"a generic ephemeral volume":         {withEphemeral(b.class, gi), "1"},
		"an inline volume of Berth's":        {b.withInline(gi), "1"},
		"an inline volume of another driver": {withSource(foreign), ""},
		"no volume that is stored":           {withSource(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}), ""},
		"no volume":                          {func(*corev1.Pod) {}, ""},
		"a claim, for another scheduler":     {all(named("later"), by("berth-scheduler")), ""},
		"a claim, for the default scheduler": {all(named("later"), by("")), ""},
		"a claim, beside resources":          {all(named("later"), func(pod *corev1.Pod) { pod.Spec.Containers[0].Resources.Requests = small }), "1"},
		"a claim, beside limits":             {all(named("later"), func(pod *corev1.Pod) { pod.Spec.Containers[0].Resources.Limits = small }), "1"},
		"a claim, and several containers":    {all(named("later"), second), "1"},
		"an inline volume that asks for marks": {all(b.withInline(gi), func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{marker: resource.MustParse("7")}
		}), "1"},
	}
	i := 0
	for name, test := range tests {
		i++
		pod := b.pod("p"+string(rune('a'+i)), by("marked"), test.change)
		t.Run(name, func(t *testing.T) {
			before := pod.Spec.Containers[0].Resources.DeepCopy()
			if err := b.Client.Create(t.Context(), pod, client.DryRunAll); err != nil {
				t.Fatal(err)
			}
			if got := markOf(pod); got != test.mark {
				t.Errorf("the pod is marked %q, want %q", got, test.mark)
			}
			r := pod.Spec.Containers[0].Resources
			for _, each := range []struct{ was, is corev1.ResourceList }{{before.Requests, r.Requests}, {before.Limits, r.Limits}} {
				for resource, quantity := range each.was {
					if is := each.is[resource]; resource != marker && !is.Equal(quantity) {
						t.Errorf("the policy changed %s from %s to %s", resource, &quantity, &is)
					}
				}
			}
			if want := quality(before); pod.Status.QOSClass != want {
				t.Errorf("the pod's quality of service is %s, want %s as without the mark", pod.Status.QOSClass, want)
			}
		})
	}
}

func second(pod *corev1.Pod) {
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "second", Image: "pause"})
}

// quality of a pod whose container asks for these and for no memory.
func quality(r *corev1.ResourceRequirements) corev1.PodQOSClass {
	if _, requested := r.Requests[corev1.ResourceCPU]; requested {
		return corev1.PodQOSBurstable
	}
	if _, limited := r.Limits[corev1.ResourceCPU]; limited {
		return corev1.PodQOSBurstable
	}
	return corev1.PodQOSBestEffort
}

// An extender is asked about marked pods alone, so a scheduler without its entry
// must never see one: it counts the mark as something that no node has.
func TestASchedulerWithoutTheExtenderPlacesNoMarkedPod(t *testing.T) {
	c := withoutScheduler(t)
	c.publish(t, c.node(t, "a", 10*gi), 10*gi)
	c.startStock(t, "unaware")
	c.installMarker(t, "unaware")
	c.create(t, c.pod("marked", by("unaware"), c.withClaims(t, 1, gi)))
	c.create(t, c.pod("plain", by("unaware")))
	_, waiting := c.settle(t, 1)
	if got := names(waiting); got != "marked" {
		t.Fatalf("%s wait, want the marked one", got)
	}
	wantReason(t, waiting, "Insufficient berth.dev/volumes")
}
