package volumes_test

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase/volumes"
	"berth.dev/berth/internal/usecase/volumetest"
)

// A node that fails once keeps the claim. A node that still fails in the next call loses
// it: there is no data on it to lose.
func TestAVolumeLeavesANodeThatFailsAgain(t *testing.T) {
	const broken, reason = v1alpha1.ReplicaFailed, v1alpha1.ReasonProvisionerError
	again := says("n", broken, reason, 0, gi)
	for name, test := range map[string]struct {
		said    volumetest.Option
		says    agent
		allowed []string
		class   error
		on      string
	}{
		"the volume goes to another node":                               {again, nil, []string{"n", "m"}, nil, "m"},
		"the volume goes to no node if no other node is allowed":        {again, nil, []string{"n"}, volumes.ErrUnplaceable, ""},
		"the volume stays on a node that may have data":                 {says("n", broken, reason, gi, gi), nil, []string{"n", "m"}, provision.ErrUnavailable, "n"},
		"the volume stays after a refusal for good":                     {says("n", broken, v1alpha1.ReasonUnsupported, 0, gi), nil, []string{"n", "m"}, provision.ErrUnsupported, "n"},
		"the volume stays when the node fails for another reason now":   {says("n", broken, reason, 0, gi/2), refuses(v1alpha1.ReasonInvalid), []string{"n", "m"}, provision.ErrInvalid, "n"},
		"the volume stays when the node had not failed before the call": {says("n", v1alpha1.ReplicaCopying, reason, 0, gi), refuses(reason), []string{"n", "m"}, provision.ErrUnavailable, "n"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.agents["n"] = nil
				if test.says != nil {
					later(func() { s.agents["n"] = test.says; s.answer() })
				}
				_, err := s.Create(within(t), request(test.allowed...))
				expect(t, err, test.class)
				s.on(test.on)
			}, existing(wanted("n"), test.said))
		})
	}
}

// full is the answer of a node without room.
func full(node string) volumetest.Option {
	return says(node, v1alpha1.ReplicaFailed, v1alpha1.ReasonNoSpace, 0, gi)
}

func TestAVolumeThatFindsNoPlaceAnyMoreIsTakenOffItsNode(t *testing.T) {
	fromVolume := v1alpha1.VolumeSource{Volume: sourceID}
	options := func(v *v1alpha1.Volume) { v.Spec.MkfsOptions = "-I 512" }
	for name, test := range map[string]struct {
		volume  *v1alpha1.Volume
		request func() volumes.Request
		prepare func(s *stage)
		class   error
		writes  []string
	}{
		"no node has room": {existing(wanted("n"), full("n")), func() volumes.Request { return request("m") },
			func(s *stage) { s.nodes["m"] = "is silent" }, volumes.ErrUnplaceable, []string{"update"}},
		"no node has room, and the volume has no node": {existing(), func() volumes.Request { return request("m") },
			func(s *stage) { s.nodes["m"] = "is silent" }, volumes.ErrUnplaceable, nil},
		"the source of the volume is gone": {existing(wanted("n"), full("n"), func(v *v1alpha1.Volume) { v.Spec.Source = &fromVolume }),
			func() volumes.Request { return copyOf(fromVolume) }, func(*stage) {}, provision.ErrNotFound, []string{"update"}},
		"only the API server shows that the other agent is too old": {existing(wanted("n"), full("n"), options), func() volumes.Request {
			r := request("m")
			r.MkfsOptions = "-I 512"
			return r
		}, func(s *stage) { s.replaceAgent("m") }, provision.ErrUnavailable, []string{"update"}},
		"only the API server shows that the other agent makes no filesystems of ZFS": {existing(wanted("n"), full("n"), func(v *v1alpha1.Volume) { v.Spec.FSType = v1alpha1.Dataset }), func() volumes.Request {
			r := request("m")
			r.FSType = ""
			return r
		}, func(s *stage) { s.replaceAgent("m") }, provision.ErrUnavailable, []string{"update"}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.agents["n"] = nil
				test.prepare(s)
				_, err := s.Create(within(t), test.request())
				expect(t, err, test.class)
				s.on("")
				s.wroteOnly(test.writes...)
			}, test.volume)
		})
	}
}

func TestAVolumeIsMovedOnlyToAnAgentThatMakesItsFilesystem(t *testing.T) {
	older := storageNode("m")
	older.Status.Features = []string{v1alpha1.FeatureCopies}
	dataset := existing(wanted("n"), full("n"), func(v *v1alpha1.Volume) { v.Spec.FSType = v1alpha1.Dataset })
	play(t, func(t *testing.T, s *stage) {
		s.agents["n"] = nil
		r := request("m")
		r.FSType = "" // the volume names its filesystem
		_, err := s.Create(within(t), r)
		expect(t, err, volumes.ErrUnplaceable)
		s.on("")
	}, dataset, older)
}

func TestAVolumeThatWentAfterAWriteThatLostIsNotReturned(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{}, id, errBroken)
	for name, test := range map[string]struct {
		meanwhile func(s *stage)
		class     error
	}{
		"another client deletes the volume": {(*stage).drop, volumes.ErrBusy},
		"the volume cannot be read":         {func(s *stage) { s.unread = &v1alpha1.Volume{} }, errBroken},
		"the volume is being deleted":       {func(s *stage) { s.must(s.Others().Delete(s.t.Context(), s.volume())) }, volumes.ErrBusy},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.Server.Before = func(lagging.Write) error { test.meanwhile(s); return conflict }
				_, err := s.Create(within(t), request("m"))
				expect(t, err, test.class)
			}, existing(wanted("n"), carved("n")))
		})
	}
}

func TestAFailedWriteIsAnErrorAndHoldsNoRoom(t *testing.T) {
	larger := request("n")
	larger.Size.Required = 2 * gi
	for name, test := range map[string]struct {
		request volumes.Request
		objects []client.Object
	}{
		"a volume that is to be made":             {request("n"), nil},
		"a volume that is to be moved":            {request("m"), []client.Object{existing(wanted("n"), carved("n"))}},
		"a volume that is to leave the only node": {request("n"), []client.Object{existing(wanted("n"), full("n"))}},
		"a reservation of another size":           {larger, []client.Object{existing(wanted("n"), carved("n"), reserved)}},
		"a reservation that is to be used":        {request("n"), []client.Object{existing(wanted("n"), carved("n"), reserved)}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				before, err := s.Capacity(within(t), "fast", nil)
				s.must(err)
				s.Server.Before = func(lagging.Write) error {
					s.Server.Before = nil // the next write succeeds
					return errBroken
				}
				_, err = s.Create(within(t), test.request)
				expect(t, err, errBroken)
				if after, err := s.Capacity(within(t), "fast", nil); err != nil || after != before {
					t.Errorf("the room is %+v, and was %+v: %v", after, before, err)
				}
			}, test.objects...)
		})
	}
}

func TestANodesOldReportIsNoAnswer(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.agents["n"] = nil
		_, err := s.Create(within(t), request("n"))
		expect(t, err, context.DeadlineExceeded)
		s.on("")
		s.wroteOnly()
	}, existing(carved("n")))
}
