package csi

import (
	"context"
	"maps"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/publish/inline"
	"berth.dev/berth/internal/publish/staging"
)

const inlineHandle = "csi-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// inlineVolumes records the latest request and answers with one result.
type inlineVolumes struct {
	published   *inline.PublishRequest
	unpublished string
	figures     staging.Figures
	err         error
}

func (i *inlineVolumes) Publish(_ context.Context, r inline.PublishRequest) error {
	i.published = &r
	return i.err
}

func (i *inlineVolumes) Unpublish(_ context.Context, handle, target string) error {
	i.unpublished = handle + " at " + target
	return i.err
}

func (i *inlineVolumes) Stats(context.Context, string, string) (staging.Figures, error) {
	return i.figures, i.err
}

// inlineContext returns the volume context that the kubelet sends for an inline volume, with
// changes; an empty value drops a key.
func inlineContext(changes map[string]string) map[string]string {
	c := map[string]string{
		"poolClass": "fast", "size": "1Gi",
		"csi.storage.k8s.io/ephemeral": "true", "csi.storage.k8s.io/pod.uid": "uid", "csi.storage.k8s.io/pod.name": "web-0",
		"csi.storage.k8s.io/pod.namespace": "shop", "csi.storage.k8s.io/serviceAccount.name": "default",
	}
	maps.Copy(c, changes)
	maps.DeleteFunc(c, func(_, v string) bool { return v == "" })
	return c
}

func TestParseInline(t *testing.T) {
	want := inline.PublishRequest{
		Handle: inlineHandle, Target: "/pod", PodUID: "uid", PodNamespace: "shop", PodName: "web-0",
		Class: "fast", Size: 1 << 30,
	}
	with := func(change func(*inline.PublishRequest)) *inline.PublishRequest { r := want; change(&r); return &r }
	xfs := with(func(r *inline.PublishRequest) { r.Filesystem = "xfs" })
	readOnly := with(func(r *inline.PublishRequest) { r.ReadOnly = true })
	for name, tc := range map[string]struct {
		change     map[string]string
		capability *csi.VolumeCapability
		readOnly   bool
		want       *inline.PublishRequest // nil: refused
	}{
		"the required attributes alone": {capability: mounted(writer, ""), want: &want},
		"options of mkfs are ext4's if no filesystem is named": {change: map[string]string{"mkfsOptions": "-i 65536"}, capability: mounted(writer, ""),
			want: with(func(r *inline.PublishRequest) { r.Filesystem, r.MkfsOptions = "ext4", "-i 65536" })},
		"a filesystem as attribute":                         {change: map[string]string{"fsType": "xfs"}, capability: mounted(writer, ""), want: xfs},
		"a filesystem as the pod's fsType":                  {capability: mounted(writer, "xfs"), want: xfs},
		"the same filesystem in attribute and capability":   {change: map[string]string{"fsType": "xfs"}, capability: mounted(writer, "xfs"), want: xfs},
		"different filesystems in attribute and capability": {change: map[string]string{"fsType": "xfs"}, capability: mounted(writer, "ext4")},
		"options of mkfs": {change: map[string]string{"mkfsOptions": "-m reflink=0", "fsType": "xfs"}, capability: mounted(writer, ""),
			want: with(func(r *inline.PublishRequest) { r.Filesystem, r.MkfsOptions = "xfs", "-m reflink=0" })},
		"options of mkfs for another filesystem": {change: map[string]string{"mkfsOptions": "-m reflink=0"}, capability: mounted(writer, "")},
		"read-only":                              {capability: mounted(writer, ""), readOnly: true, want: readOnly},
		"a raw block device":                     {capability: raw(writer)},
		"a mode for many nodes":                  {capability: mounted(multi, "")},
		"no capability":                          {},
		"an unknown attribute":                   {change: map[string]string{"colour": "blue"}, capability: mounted(writer, "")},
		"no class":                               {change: map[string]string{"poolClass": ""}, capability: mounted(writer, "")},
		"no size":                                {change: map[string]string{"size": ""}, capability: mounted(writer, "")},
		"a size that is no number":               {change: map[string]string{"size": "large"}, capability: mounted(writer, "")},
		"an unknown filesystem":                  {change: map[string]string{"fsType": "ntfs"}, capability: mounted(writer, "")},
		"no attribute with the pod's UID":        {change: map[string]string{"csi.storage.k8s.io/pod.uid": ""}, capability: mounted(writer, "")},
	} {
		t.Run(name, func(t *testing.T) {
			volumes, v := &nodeVolumes{}, &inlineVolumes{}
			_, err := NewNode(driver.Local(), "n1", volumes, v).NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{
				VolumeId: inlineHandle, TargetPath: "/pod", VolumeContext: inlineContext(tc.change),
				VolumeCapability: tc.capability, Readonly: tc.readOnly,
			})
			if tc.want == nil && status.Code(toStatus(err)) != codes.InvalidArgument {
				t.Errorf("error %v; want %s", err, codes.InvalidArgument)
			}
			if v.published != nil && len(v.published.Options) == 0 {
				v.published.Options = nil
			}
			if diff := cmp.Diff(tc.want, v.published); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(staging.PublishRequest{}, volumes.published); diff != "" {
				t.Errorf("the volume of a claim was published: %s", diff)
			}
		})
	}
}

func TestAPodsOwnVolumesAreToldFromThoseOfClaims(t *testing.T) {
	for handle, isInline := range map[string]bool{inlineHandle: true, nodeVolume: false} {
		v := &inlineVolumes{figures: staging.Figures{Block: true}}
		n := NewNode(driver.Local(), "n1", &nodeVolumes{}, v)
		if _, err := n.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: handle, TargetPath: "/pod"}); err != nil {
			t.Error(err)
		}
		if got := v.unpublished == handle+" at /pod"; got != isInline {
			t.Errorf("%s: unpublished as inline: %v", handle, got)
		}
		stats, err := n.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: handle, VolumePath: "/pod"})
		if err != nil || (len(stats.GetUsage()) == 1) != isInline {
			t.Errorf("%s: %v, %v", handle, stats, err)
		}
	}
}

func TestAnInlineVolumeThatFindsNoRoomExhaustsTheNode(t *testing.T) {
	n := NewNode(driver.Local(), "n1", &nodeVolumes{}, &inlineVolumes{err: provision.ErrNoSpace})
	_, err := n.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{
		VolumeId: inlineHandle, TargetPath: "/pod", VolumeContext: inlineContext(nil), VolumeCapability: mounted(writer, "")})
	if got := status.Code(toStatus(err)); got != codes.ResourceExhausted {
		t.Errorf("code %s; want %s", got, codes.ResourceExhausted)
	}
}
