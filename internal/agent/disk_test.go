package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/provision"
)

func inMemory(t *testing.T, change ...func(*v1alpha1.Volume)) (*scene, *medium) {
	t.Helper()
	m := newMedium()
	return newShared(t, m.machinery, change...), m
}

func TestASharedDiskMovesFromNodeToNodeWithItsData(t *testing.T) {
	s, _ := inMemory(t)
	movesWithItsData(s)
}

// movesWithItsData is one life of a volume, on disks of any make.
func movesWithItsData(s *scene) {
	t, a, b := s.t, s.nodes[alpha], s.nodes[beta]
	t.Helper()
	s.begins(alpha)
	if err := s.says("Active alpha")(); err != nil {
		t.Error(err)
	}
	if err := a.made.write(a.pod(), "of alpha"); err != nil {
		t.Fatal(err)
	}
	s.wanted = []string{alpha, beta}
	s.until("an attachment on beta", func() error {
		for _, e := range s.volume().Status.Ownership.Replicas {
			if e.Node == b.name && e.State == v1alpha1.OwnedReady {
				return nil
			}
		}
		return errors.New("not yet")
	})
	if err := b.stages(); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), a.name) {
		t.Errorf("a second node stages the volume: %v", err)
	}
	s.ends(alpha)
	if v := s.volume().Status.Ownership; v.Primary.Phase != v1alpha1.PrimaryReleased || !v.Clean {
		t.Errorf("after the end of the pod the record says %s, clean %v", v.Primary.Phase, v.Clean)
	}
	s.begins(beta)
	if got, err := b.made.read(b.pod()); err != nil || got != "of alpha" {
		t.Errorf("beta reads %q, %v", got, err)
	}
	if err := b.made.write(b.pod(), "of beta"); err != nil {
		t.Error(err)
	}
	s.ends(beta)
	s.begins(alpha)
	if got, err := a.made.read(a.pod()); err != nil || got != "of beta" {
		t.Errorf("alpha reads %q, %v", got, err)
	}
	s.ends(alpha)
}

func TestARawBlockVolumeMovesFromNodeToNode(t *testing.T) {
	s, _ := inMemory(t, func(v *v1alpha1.Volume) { v.Spec.VolumeMode, v.Spec.FSType = v1alpha1.Block, "" })
	movesWithItsData(s)
}

// The machine of the owner is lost, and no one says that it is off. The disk itself shuts it out.
func TestAStandbyTakesTheDiskOfANodeThatIsLost(t *testing.T) {
	s, m := inMemory(t)
	a, b := s.nodes[alpha], s.nodes[beta]
	s.begins(alpha)
	if err := a.made.write(a.pod(), "before"); err != nil {
		t.Fatal(err)
	}
	s.standsBy()
	if err := b.stages(); err == nil {
		t.Fatal("a second node stages the volume while the first one lives")
	}
	a.traffic.cut() // its machine lives on, and its pod writes
	s.lost, s.wanted = []string{a.name}, []string{beta}
	s.until("staged on beta", b.stages)
	if err := a.made.write(a.pod(), "after"); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("a write of the old owner: %v", err)
	}
	s.until("published on beta", b.publishes)
	if got, err := b.made.read(b.pod()); err != nil || got != "before" {
		t.Errorf("beta reads %q, %v", got, err)
	}
	if err := b.made.write(b.pod(), "of beta"); err != nil {
		t.Error(err)
	}
	log, err := m.target.Log()
	if err != nil || len(log) != 2 {
		t.Errorf("the disk executed %v, %v", log, err)
	}
	a.traffic.mend()
	s.lost = nil
	s.until("the old owner gives the volume up", func() error {
		if paths, err := a.made.mounts(provision.Volume{Content: provision.Content{Source: simulated}}); err != nil || len(paths) > 1 {
			return errors.New("it is still mounted")
		}
		return nil
	})
	s.until("the path of its pod is covered", func() error {
		if !slices.Contains(a.made.covered(), a.pod()) {
			return fmt.Errorf("covered are %v", a.made.covered())
		}
		return nil
	})
	if err := s.says("Active beta")(); err != nil {
		t.Error(err)
	}
}

func TestANodeWhoseGuardIsFencedGivesTheVolumeUpAndThenItsWord(t *testing.T) {
	s, _ := inMemory(t)
	a, b := s.nodes[alpha], s.nodes[beta]
	s.begins(alpha)
	// The guard has stopped the writers: the pod is gone, and nothing is mounted.
	if err := errors.Join(a.made.Mounter.Unmount(t.Context(), a.pod()), a.made.Mounter.Unmount(t.Context(), a.staging()),
		a.guard.with(func() error { a.guard.fenced = true; return nil })); err != nil {
		t.Fatal(err)
	}
	s.wanted = []string{beta}
	await(t, "the agent's word", func() bool {
		status, err := a.guard.Status(t.Context())
		return err == nil && !status.Fenced
	})
	if err := a.publishes(); err == nil {
		t.Error("a pod gets a volume of an epoch that was stopped")
	}
	s.until("staged on beta", b.stages)
	if err := s.says("Active beta")(); err != nil {
		t.Error(err)
	}
}

func TestAnAgentThatBeginsAnewGoesOnWithAMountAndGivesUpTheRest(t *testing.T) {
	s, _ := inMemory(t)
	a := s.nodes[alpha]
	s.begins(alpha)
	epoch := s.volume().Status.Ownership.Epoch
	a.stop()
	if err := a.made.write(a.pod(), "meanwhile"); err != nil {
		t.Errorf("a pod writes while no agent runs: %v", err)
	}
	a.start()
	s.until("staged again", a.stages)
	if err := a.publishes(); err != nil {
		t.Error(err)
	}
	if now := s.volume().Status.Ownership; now.Epoch != epoch || now.Primary.Phase != v1alpha1.PrimaryActive {
		t.Errorf("the record says %s in epoch %v, and it was %v", now.Primary.Phase, now.Epoch, epoch)
	}
	s.ends(alpha)
	if err := s.says("Released alpha")(); err != nil {
		t.Error(err)
	}
}

// The agent ends before, and after, each of its effects on the disk and at the guard.
func TestAnAgentThatEndsAtAnyStepGoesOnInTheNextLife(t *testing.T) {
	for _, call := range []string{"attach", "register", "reserve", "flush"} {
		for _, done := range []bool{false, true} {
			name := call + " before"
			if done {
				name = call + " after"
			}
			t.Run(name, func(t *testing.T) {
				s, m := inMemory(t)
				a := s.nodes[alpha]
				var dead, hit atomic.Bool
				m.nodes[alpha].Fail(func(c string, after bool) error {
					if c == call && after == done && hit.CompareAndSwap(false, true) {
						dead.Store(true)
					}
					if dead.Load() {
						return errors.New("the agent has ended")
					}
					return nil
				})
				dies := func() {
					if dead.Load() {
						a.stop()
						dead.Store(false)
						a.start()
					}
				}
				s.wanted = []string{alpha}
				s.until("staged", func() error { dies(); return a.stages() })
				s.until("published", a.publishes)
				if err := a.made.write(a.pod(), "text"); err != nil {
					t.Fatal(err)
				}
				s.wanted = nil
				if err := a.unpublishes(); err != nil {
					t.Fatal(err)
				}
				s.until("unstaged", func() error { dies(); return a.unstages() })
				if !hit.Load() {
					t.Error("the agent did not come to this step")
				}
				s.begins(beta)
				if got, err := s.nodes[beta].made.read(s.nodes[beta].pod()); err != nil || got != "text" {
					t.Errorf("beta reads %q, %v", got, err)
				}
			})
		}
	}
}

func TestADeviceOfAnotherIdentityIsNotUsed(t *testing.T) {
	s, m := inMemory(t)
	if err := m.target.Replace("wwn:other"); err != nil {
		t.Fatal(err)
	}
	s.wanted = []string{alpha}
	var said error
	s.until("a clear refusal", func() error {
		if said = s.nodes[alpha].stages(); said == nil {
			t.Fatal("the volume is staged on another disk")
		}
		if !strings.Contains(said.Error(), "wwn:other") {
			return said
		}
		return nil
	})
	if status.Code(said) != codes.Unavailable {
		t.Errorf("the kubelet is told %v", said)
	}
}

func TestADiskOfAnUnknownProvisionerIsRefusedWithTheNamesOfTheKnown(t *testing.T) {
	s, _ := inMemory(t, func(v *v1alpha1.Volume) { v.Spec.Replication.Attachments.Disk.Handle = "iscsi://portal/iqn.x/1" })
	s.wanted = []string{alpha}
	s.until("a clear refusal", func() error {
		err := s.nodes[alpha].stages()
		if err == nil {
			t.Fatal("it is staged")
		}
		if !strings.Contains(err.Error(), "it has: sim") {
			return err
		}
		return nil
	})
}

func TestAVolumeThatIsNoSharedDiskIsRefused(t *testing.T) {
	s, _ := inMemory(t)
	local := s.nodes[alpha]
	for name, change := range map[string]func(*v1alpha1.Volume){
		"one copy":       func(v *v1alpha1.Volume) { v.Spec.Replication = v1alpha1.Replication{Factor: 1} },
		"other driver's": func(v *v1alpha1.Volume) { v.Spec.Driver = "" },
	} {
		v := s.volume().DeepCopy()
		v.ObjectMeta.Name, v.ResourceVersion, v.UID = v1alpha1.VolumeName(t.Name()+name), "", ""
		change(v)
		if err := s.Client.Create(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Client.Delete(context.WithoutCancel(t.Context()), v) })
		original := s.id
		s.id = v.Name
		if err := local.stages(); err == nil {
			t.Errorf("%s is staged", name)
		}
		s.id = original
	}
}

func TestAPeerWithoutAReplicaIsToldNothing(t *testing.T) {
	s, _ := inMemory(t)
	s.begins(alpha)
	copies := s.nodes[alpha].agent.Load().Copies()
	if p, may, err := copies.Peer(t.Context(), s.id, "stranger"); err != nil || may || p.Node != "" {
		t.Errorf("a stranger is told %+v, %v, %v", p, may, err)
	}
	if p, may, err := copies.Peer(t.Context(), s.id, s.nodes[alpha].name); err != nil || !may || int64(p.Copy.Opened.Number) != s.volume().Status.Ownership.Epoch.Number {
		t.Errorf("a node of the record is told %+v, %v, %v", p, may, err)
	}
}

func TestAnAgentOfSharedDisksNeedsTheGuardAndSaysWhetherItAnswers(t *testing.T) {
	s, _ := inMemory(t)
	a := s.nodes[alpha]
	if _, err := NewDisk(t.Context(), Options{Driver: driver.Disk()}, SharedDisks{}); !errors.Is(err, provision.ErrInvalid) || !strings.Contains(err.Error(), "guard") {
		t.Errorf("without a guard: %v", err)
	}
	await(t, "health", (&agent{http: a.http}).answers(t, "/healthz", http.StatusOK))
	await(t, "readiness", (&agent{http: a.http}).answers(t, "/readyz", http.StatusOK))
}
