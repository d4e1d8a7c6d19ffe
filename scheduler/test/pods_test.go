package test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

// pod makes a pod for berth-scheduler, which only goes to the test's nodes.
func (b *bench) pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.class, Name: name},
		Spec: corev1.PodSpec{
			SchedulerName: "berth-scheduler",
			NodeSelector:  map[string]string{"test": b.class},
			Containers:    []corev1.Container{{Name: "main", Image: "pause"}},
		},
	}
	for _, f := range change {
		f(pod)
	}
	return pod
}

// withClaims gives a pod claims of this size, which are made first.
func (b *bench) withClaims(t *testing.T, count int, bytes int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		for i := range count {
			name := fmt.Sprintf("%s-%d", pod.Name, i)
			b.create(t, &corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: b.class, Name: name},
				Spec: corev1.PersistentVolumeClaimSpec{
					StorageClassName: &b.class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(bytes, resource.BinarySI)}},
				},
			})
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
			}})
		}
	}
}

func (b *bench) withInline(bytes int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
			Driver: v1alpha1.LocalDriverName, VolumeAttributes: map[string]string{"poolClass": b.class, "size": fmt.Sprint(bytes)},
		}}}}
	}
}

// inline is how many bytes the inline volume of a pod of withInline takes, and 0 for other pods.
func inline(pod *corev1.Pod) int64 {
	for _, volume := range pod.Spec.Volumes {
		if volume.CSI != nil {
			size := resource.MustParse(volume.CSI.VolumeAttributes["size"])
			return size.Value()
		}
	}
	return 0
}

// pods are the test's, as they are now: bound and unbound.
func (b *bench) pods(ctx context.Context) (bound, waiting []corev1.Pod, err error) {
	var list corev1.PodList
	if err := b.Client.List(ctx, &list, client.InNamespace(b.class)); err != nil {
		return nil, nil, err
	}
	for _, pod := range list.Items {
		if pod.Spec.NodeName != "" {
			bound = append(bound, pod)
		} else {
			waiting = append(waiting, pod)
		}
	}
	return bound, waiting, nil
}

// refused is the message with which the scheduler gave a pod up, or empty. One
// that has just started knows too little to give up.
func refused(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse &&
			!strings.Contains(condition.Message, "not complete yet") {
			return condition.Message
		}
	}
	return ""
}

// settle waits until so many pods are bound and all others were refused.
func (b *bench) settle(t *testing.T, want int) (bound, waiting []corev1.Pod) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (done bool, err error) {
		now, still, err := b.pods(ctx)
		if err != nil {
			return false, err // and the pods seen last are told
		}
		bound, waiting = now, still
		unseen := slices.ContainsFunc(waiting, func(pod corev1.Pod) bool { return refused(&pod) == "" })
		return len(bound) >= want && !unseen, nil
	})
	if err != nil {
		for _, pod := range waiting {
			t.Logf("pod %s waits: %s", pod.Name, refused(&pod))
		}
		t.Fatalf("%d pods are bound and %d wait, want %d bound and a reason for the others: %v", len(bound), len(waiting), want, err)
	}
	if len(bound) > want {
		t.Fatalf("%d pods are bound, want %d", len(bound), want)
	}
	return bound, waiting
}

// listVolumes are those of the test's class.
func (b *bench) listVolumes(ctx context.Context) ([]v1alpha1.Volume, error) {
	var list v1alpha1.VolumeList
	err := b.Client.List(ctx, &list)
	return slices.DeleteFunc(list.Items, func(v v1alpha1.Volume) bool { return v.Spec.PoolClass != b.class }), err
}

// provisioningFailures are the events that tell of a CreateVolume that failed.
func (b *bench) provisioningFailures(t *testing.T) []string {
	t.Helper()
	var list corev1.EventList
	if err := b.Client.List(t.Context(), &list, client.InNamespace(b.class)); err != nil {
		t.Fatal(err)
	}
	var failures []string
	for _, event := range list.Items {
		if event.Reason == "ProvisioningFailed" {
			failures = append(failures, event.Message)
		}
	}
	return failures
}
