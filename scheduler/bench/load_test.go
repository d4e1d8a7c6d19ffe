package main

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func boundPod(name, node string) *corev1.Pod {
	pod := kind{}.pod(name)
	pod.Spec.NodeName = node
	return pod
}

func TestPodsAreAwaitedUntilTheLastIsBound(t *testing.T) {
	times := newTimes()
	handler := times.handler()
	for _, name := range []string{"a", "b"} {
		times.create(name)
		handler.OnAdd(boundPod(name, ""), false)
	}
	go func() {
		handler.OnUpdate(nil, boundPod("a", "n"))
		handler.OnUpdate(nil, boundPod("a", "n"))
		handler.OnUpdate(nil, boundPod("b", "n"))
	}()
	created, bound, err := times.await(t.Context(), []string{"a", "b"}, time.Minute)
	if err != nil || len(created) != 2 || len(bound) != 2 {
		t.Fatalf("created %v, bound %v, %v", created, bound, err)
	}
	for i := range bound {
		if bound[i].Before(created[i]) {
			t.Errorf("pod %d was bound before it was created", i)
		}
	}
}

func TestPodsThatAreNeverBoundAreStuck(t *testing.T) {
	times := newTimes()
	times.handler().OnAdd(boundPod("a", "n"), false)
	_, bound, err := times.await(t.Context(), []string{"a", "b"}, time.Millisecond)
	if !errors.Is(err, errStuck) || len(bound) != 1 {
		t.Errorf("%d are bound, %v", len(bound), err)
	}
}

func TestAFailureElsewhereEndsTheWait(t *testing.T) {
	cause := errors.New("an agent failed")
	ctx, fail := context.WithCancelCause(t.Context())
	fail(cause)
	if _, _, err := newTimes().await(ctx, []string{"a"}, time.Minute); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

func TestAPodIsAnnotatedWithTheCapacityOfItsClaims(t *testing.T) {
	pod := kind{claims: 3}.pod("p")
	if got := capacity(pod.Annotations); got != 3*volumeBytes || len(pod.Spec.Volumes) != 3 {
		t.Errorf("%d volumes need %d", len(pod.Spec.Volumes), got)
	}
	if plain := (kind{}).pod("p"); len(plain.Spec.Volumes)+len(plain.Annotations) > 0 {
		t.Errorf("a pod without volumes has %v", plain)
	}
	if inline := (kind{inline: true}).pod("p"); inline.Spec.Volumes[0].CSI == nil {
		t.Errorf("a pod with an inline volume has %v", inline.Spec.Volumes)
	}
}
