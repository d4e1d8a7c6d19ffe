package volumes

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/storageclass"
)

// cluster has one class and one node, or none of them.
type cluster struct {
	client.Client
	class *v1alpha1.PoolClass
	node  *v1alpha1.StorageNode
}

func (c cluster) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch o := into.(type) {
	case *v1alpha1.PoolClass:
		if c.class != nil {
			*o = *c.class
			return nil
		}
	case *v1alpha1.StorageNode:
		if c.node != nil {
			*o = *c.node
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func classOf(p v1alpha1.ProvisionerType) *v1alpha1.PoolClass {
	c := &v1alpha1.PoolClass{Spec: v1alpha1.PoolClassSpec{Provisioner: p}}
	c.Name = "fast"
	return c
}

func callAt(c cluster, r Request) *call {
	return &call{Service: &Service{client: c, live: c}, request: r}
}

func TestAClaimThatNamesNoFilesystemGetsThatOfItsClass(t *testing.T) {
	files := Request{Mode: v1alpha1.Filesystem, PoolClass: "fast"}
	with := func(change func(*Request)) Request {
		r := files
		change(&r)
		return r
	}
	for name, tc := range map[string]struct {
		class   *v1alpha1.PoolClass
		request Request
		want    v1alpha1.FSType
		refused string
	}{
		"a class of ZFS":                                   {class: classOf(v1alpha1.ProvisionerZFS), request: files, want: v1alpha1.Dataset},
		"a class of LVM":                                   {class: classOf(v1alpha1.ProvisionerLVM), request: files, want: v1alpha1.Ext4},
		"an unknown class":                                 {request: files, want: v1alpha1.Ext4},
		"a block volume of an unknown class":               {request: Request{Mode: v1alpha1.Block}, want: ""},
		"a block volume of ZFS":                            {class: classOf(v1alpha1.ProvisionerZFS), request: Request{Mode: v1alpha1.Block}, want: ""},
		"ext4 by name in a class of ZFS":                   {class: classOf(v1alpha1.ProvisionerZFS), request: with(func(r *Request) { r.FSType = v1alpha1.Ext4 }), want: v1alpha1.Ext4},
		"zfs by name in a class of ZFS":                    {class: classOf(v1alpha1.ProvisionerZFS), request: with(func(r *Request) { r.FSType = v1alpha1.Dataset }), want: v1alpha1.Dataset},
		"zfs by name in an unknown class":                  {request: with(func(r *Request) { r.FSType = v1alpha1.Dataset }), want: v1alpha1.Dataset},
		"zfs by name in a class of LVM":                    {class: classOf(v1alpha1.ProvisionerLVM), request: with(func(r *Request) { r.FSType = v1alpha1.Dataset }), refused: "PoolClass fast has LVM: use ext4 or xfs"},
		"options of ext4 in a class of ZFS":                {class: classOf(v1alpha1.ProvisionerZFS), request: with(func(r *Request) { r.MkfsOptions = "-I 512" }), refused: "no mkfs makes a filesystem of ZFS"},
		"options of ext4 in a class of LVM":                {class: classOf(v1alpha1.ProvisionerLVM), request: with(func(r *Request) { r.MkfsOptions = "-I 512" }), want: v1alpha1.Ext4},
		"a mount option of ext4 in a class of ZFS":         {class: classOf(v1alpha1.ProvisionerZFS), request: with(func(r *Request) { r.MountOptions = []string{"commit=9"} }), refused: `"commit=9" is not supported for zfs`},
		"a mount option of ext4 and zfs in a class of ZFS": {class: classOf(v1alpha1.ProvisionerZFS), request: with(func(r *Request) { r.MountOptions = []string{"noatime"} }), want: v1alpha1.Dataset},
		"a copy of a dataset":                              {class: classOf(v1alpha1.ProvisionerZFS), request: with(func(r *Request) { r.Source, r.FSType = &v1alpha1.VolumeSource{}, v1alpha1.Dataset }), want: v1alpha1.Dataset},
		"a copy of ext4 on a zvol":                         {class: classOf(v1alpha1.ProvisionerZFS), request: with(func(r *Request) { r.Source, r.FSType = &v1alpha1.VolumeSource{}, v1alpha1.Ext4 }), want: v1alpha1.Ext4},
		"a class of btrfs":                                 {class: classOf(v1alpha1.ProvisionerBtrfs), request: files, want: v1alpha1.Subvolume},
		"a block volume of btrfs":                          {class: classOf(v1alpha1.ProvisionerBtrfs), request: Request{Mode: v1alpha1.Block}, refused: "no raw block volumes: use volumeMode Filesystem"},
		"ext4 by name in a class of btrfs":                 {class: classOf(v1alpha1.ProvisionerBtrfs), request: with(func(r *Request) { r.FSType = v1alpha1.Ext4 }), refused: "PoolClass fast has Btrfs: use btrfs"},
	} {
		t.Run(name, func(t *testing.T) {
			a := callAt(cluster{class: tc.class}, tc.request)
			err := a.settleFilesystem(t.Context())
			switch {
			case tc.refused == "" && (err != nil || a.request.FSType != tc.want):
				t.Errorf("%q, %v, want %q", a.request.FSType, err, tc.want)
			case tc.refused != "" && (!errors.Is(err, storageclass.ErrInvalid) || !strings.Contains(err.Error(), tc.refused)):
				t.Errorf("got %v, want %q", err, tc.refused)
			}
		})
	}
}

func TestAClassThatWasJustMadeCountsBeforeTheWatchShowsIt(t *testing.T) {
	a := callAt(cluster{}, Request{Mode: v1alpha1.Filesystem, PoolClass: "fast"})
	a.live = cluster{class: classOf(v1alpha1.ProvisionerZFS)}
	if err := a.settleFilesystem(t.Context()); err != nil || a.request.FSType != v1alpha1.Dataset {
		t.Errorf("%q, %v", a.request.FSType, err)
	}
}

func TestADatasetIsPlacedOnlyWhereTheAgentMakesThem(t *testing.T) {
	able := &v1alpha1.StorageNode{Status: v1alpha1.StorageNodeStatus{Features: []string{v1alpha1.FeatureDatasets}}}
	old := &v1alpha1.StorageNode{Status: v1alpha1.StorageNodeStatus{Features: []string{v1alpha1.FeatureCopies, v1alpha1.FeatureMkfsOptions}}}
	for name, tc := range map[string]struct {
		node   *v1alpha1.StorageNode
		fsType v1alpha1.FSType
		want   error
	}{
		"an agent that makes datasets": {able, v1alpha1.Dataset, nil},
		"an older agent":               {old, v1alpha1.Dataset, provision.ErrUnavailable},
		"no agent":                     {nil, v1alpha1.Dataset, provision.ErrUnavailable},
		"an older agent for ext4":      {old, v1alpha1.Ext4, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := callAt(cluster{node: tc.node}, Request{Mode: v1alpha1.Filesystem, FSType: tc.fsType})
			if err := a.mayFormat(t.Context(), place{node: "n"}); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

func TestOnlyAFilesystemThatOlderAgentsCannotMakeNeedsAFeature(t *testing.T) {
	for want, r := range map[string]Request{
		"":                          {FSType: v1alpha1.Ext4},
		v1alpha1.FeatureMkfsOptions: {FSType: v1alpha1.Ext4, MkfsOptions: "-I 512"},
		v1alpha1.FeatureDatasets:    {FSType: v1alpha1.Dataset},
	} {
		if got := r.Feature(); got != want {
			t.Errorf("%+v needs %q, want %q", r, got, want)
		}
	}
}

func TestARequestWithoutAFilesystemAcceptsAny(t *testing.T) {
	spec := v1alpha1.VolumeSpec{VolumeMode: v1alpha1.Filesystem, FSType: v1alpha1.Dataset}
	if d := Difference(&spec, Request{Mode: v1alpha1.Filesystem}); d != "" {
		t.Error(d)
	}
	if d := Difference(&spec, Request{Mode: v1alpha1.Filesystem, FSType: v1alpha1.Ext4}); !strings.Contains(d, "zfs, not ext4") {
		t.Errorf("got %q", d)
	}
}
