package csi

import (
	"errors"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/usecase/volumes"
)

// create returns a request as the external-provisioner sends it, changed by options.
func create(options ...func(*csi.CreateVolumeRequest)) *csi.CreateVolumeRequest {
	r := &csi.CreateVolumeRequest{
		Name:               "pvc-00000000-0000-0000-0000-000000000001",
		CapacityRange:      &csi.CapacityRange{RequiredBytes: 5, LimitBytes: 6},
		VolumeCapabilities: []*csi.VolumeCapability{mounted(writer, "")},
		Parameters:         map[string]string{"poolClass": "fast"},
	}
	for _, option := range options {
		option(r)
	}
	return r
}

func at(nodes ...string) []*csi.Topology { return topologyOf(nodes) }

func TestParseCreate(t *testing.T) {
	plain := volumes.Request{
		Name: "pvc-00000000-0000-0000-0000-000000000001", Size: volumes.Size{Required: 5, Limit: 6},
		Mode: v1alpha1.Filesystem, PoolClass: "fast",
	}
	with := func(change func(*volumes.Request)) volumes.Request { r := plain; change(&r); return r }
	tests := map[string]struct {
		request *csi.CreateVolumeRequest
		want    volumes.Request
		refused string
	}{
		"the defaults": {request: create(), want: plain},
		"no size": {
			request: create(func(r *csi.CreateVolumeRequest) { r.CapacityRange = nil }),
			want:    with(func(r *volumes.Request) { r.Size = volumes.Size{} }),
		},
		"the capability's filesystem": {
			request: create(func(r *csi.CreateVolumeRequest) {
				r.VolumeCapabilities = []*csi.VolumeCapability{mounted(writer, "xfs")}
			}),
			want: with(func(r *volumes.Request) { r.FSType = v1alpha1.XFS }),
		},
		"the class's filesystem": {
			request: create(func(r *csi.CreateVolumeRequest) { r.Parameters["csi.storage.k8s.io/fstype"] = "xfs" }),
			want:    with(func(r *volumes.Request) { r.FSType = v1alpha1.XFS }),
		},
		"a block volume has no filesystem": {
			request: create(func(r *csi.CreateVolumeRequest) {
				r.VolumeCapabilities = []*csi.VolumeCapability{raw(writer)}
				r.Parameters["csi.storage.k8s.io/fstype"] = "xfs"
			}),
			want: with(func(r *volumes.Request) { r.Mode, r.FSType = v1alpha1.Block, "" }),
		},
		"options of mkfs and mount": {
			request: create(func(r *csi.CreateVolumeRequest) {
				r.Parameters["mkfsOptions"] = "-I 512  -i 8192"
				r.VolumeCapabilities = []*csi.VolumeCapability{mounted(writer, "ext4", "noatime", "ro"), mounted(reader, "ext4", "noatime", "commit=30")}
			}),
			want: with(func(r *volumes.Request) {
				r.FSType, r.MkfsOptions, r.MountOptions = v1alpha1.Ext4, "-I 512 -i 8192", []string{"noatime", "commit=30"}
			}),
		},
		"the claim": {
			request: create(func(r *csi.CreateVolumeRequest) {
				r.Parameters["csi.storage.k8s.io/pvc/name"], r.Parameters["csi.storage.k8s.io/pvc/namespace"] = "data", "shop"
			}),
			want: with(func(r *volumes.Request) {
				r.Claim = &v1alpha1.ClaimReference{Namespace: "shop", Name: "data", UID: "00000000-0000-0000-0000-000000000001"}
			}),
		},
		"the topology": {
			request: create(func(r *csi.CreateVolumeRequest) {
				r.AccessibilityRequirements = &csi.TopologyRequirement{Requisite: at("a", "b"), Preferred: at("b", "a")}
			}),
			want: with(func(r *volumes.Request) {
				r.Topology = volumes.Topology{Allowed: []string{"a", "b"}, Preferred: []string{"b", "a"}}
			}),
		},
		"a long name with upper case and a path": {
			request: create(func(r *csi.CreateVolumeRequest) { r.Name = "../" + strings.Repeat("X", 125) }),
			want:    with(func(r *volumes.Request) { r.Name = "../" + strings.Repeat("X", 125) }),
		},
		"no name":                  {request: create(func(r *csi.CreateVolumeRequest) { r.Name = "" }), refused: "name is missing"},
		"a name that is too long":  {request: create(func(r *csi.CreateVolumeRequest) { r.Name = strings.Repeat("x", 129) }), refused: "129 bytes"},
		"a name with a line break": {request: create(func(r *csi.CreateVolumeRequest) { r.Name = "a\nb" }), refused: "control characters"},
		"no capabilities":          {request: create(func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities = nil }), refused: "capabilities are missing"},
		"no pool class":            {request: create(func(r *csi.CreateVolumeRequest) { r.Parameters = nil }), refused: `"poolClass" is required`},
		"an unknown parameter":     {request: create(func(r *csi.CreateVolumeRequest) { r.Parameters["raid"] = "1" }), refused: `unknown parameter "raid"`},
		"an unknown option of mkfs": {request: create(func(r *csi.CreateVolumeRequest) {
			r.Parameters["mkfsOptions"] = "-U clear"
		}), refused: `parameter "mkfsOptions": "-U" is not supported for ext4 (supported: -b`},
		"a dangerous mount option": {request: create(func(r *csi.CreateVolumeRequest) {
			r.VolumeCapabilities = []*csi.VolumeCapability{mounted(writer, "xfs", "norecovery")}
		}), refused: `mount option "norecovery" is not supported for xfs: it shows a filesystem`},
		"an unsupported filesystem": {request: create(func(r *csi.CreateVolumeRequest) {
			r.VolumeCapabilities = []*csi.VolumeCapability{mounted(writer, "ntfs")}
		}), refused: `"ntfs" is not supported`},
		"two filesystems": {
			request: create(func(r *csi.CreateVolumeRequest) {
				r.VolumeCapabilities = []*csi.VolumeCapability{mounted(writer, "xfs")}
				r.Parameters["csi.storage.k8s.io/fstype"] = "ext4"
			}),
			refused: "asks for xfs and parameter",
		},
		"a filesystem and a block device": {
			request: create(func(r *csi.CreateVolumeRequest) {
				r.VolumeCapabilities = []*csi.VolumeCapability{mounted(writer, ""), raw(writer)}
			}),
			refused: "capabilities disagree: Filesystem and Block",
		},
		"a capability without mount or block": {
			request: create(func(r *csi.CreateVolumeRequest) {
				r.VolumeCapabilities = []*csi.VolumeCapability{{AccessMode: &csi.VolumeCapability_AccessMode{Mode: writer}}}
			}),
			refused: "neither mount nor block",
		},
		"several nodes write": {
			request: create(func(r *csi.CreateVolumeRequest) {
				r.VolumeCapabilities = []*csi.VolumeCapability{mounted(csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER, "")}
			}),
			refused: "access mode MULTI_NODE_MULTI_WRITER is not supported",
		},
		"several nodes read": {
			request: create(func(r *csi.CreateVolumeRequest) {
				r.VolumeCapabilities = []*csi.VolumeCapability{mounted(csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY, "")}
			}),
			refused: "ReadWriteOnce",
		},
		"no access mode": {
			request: create(func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities = []*csi.VolumeCapability{mounted(0, "")} }),
			refused: "access mode UNKNOWN",
		},
		"an empty source": {
			request: create(func(r *csi.CreateVolumeRequest) { r.VolumeContentSource = &csi.VolumeContentSource{} }), refused: "neither a snapshot nor a volume",
		},
		"a VolumeAttributesClass": {
			request: create(func(r *csi.CreateVolumeRequest) { r.MutableParameters = map[string]string{"a": "b"} }), refused: "VolumeAttributesClass",
		},
		"a foreign topology key": {
			request: create(func(r *csi.CreateVolumeRequest) {
				r.AccessibilityRequirements = &csi.TopologyRequirement{Requisite: []*csi.Topology{{Segments: map[string]string{"zone": "a"}}}}
			}),
			refused: `topology key "zone" is not supported`,
		},
		"an empty topology": {
			request: create(func(r *csi.CreateVolumeRequest) {
				r.AccessibilityRequirements = &csi.TopologyRequirement{Preferred: []*csi.Topology{{}}}
			}),
			refused: "lacks the key " + v1alpha1.TopologyKey,
		},
		"a preferred node that is not requisite": {
			request: create(func(r *csi.CreateVolumeRequest) {
				r.AccessibilityRequirements = &csi.TopologyRequirement{Requisite: at("a"), Preferred: at("b")}
			}),
			refused: "node b is preferred but not among the requisite ones",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parseCreate(driver.Local(), test.request)
			if test.refused != "" {
				if err == nil || !strings.Contains(err.Error(), test.refused) {
					t.Fatalf("got %v, want an error with %q", err, test.refused)
				}
				if code := status.Code(toStatus(err)); code != codes.InvalidArgument {
					t.Errorf("code %s", code)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEveryModeOfOneNodeIsAccepted(t *testing.T) {
	for number, name := range csi.VolumeCapability_AccessMode_Mode_name {
		_, err := parseCapabilities(driver.Local(), []*csi.VolumeCapability{mounted(csi.VolumeCapability_AccessMode_Mode(number), "ext4")})
		if accepted := err == nil; accepted != strings.HasPrefix(name, "SINGLE_NODE_") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := parseCapabilities(driver.Local(), nil); !errors.Is(err, errInvalid) {
		t.Errorf("none: %v", err)
	}
}
