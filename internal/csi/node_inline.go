package csi

import (
	"cmp"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/publish/inline"
	"berth.dev/berth/internal/storageclass"
)

// The keys of the kubelet's data about the pod (podInfoOnMount of the CSIDriver).
const (
	ephemeralKey    = "csi.storage.k8s.io/ephemeral"
	podUIDKey       = "csi.storage.k8s.io/pod.uid"
	podNameKey      = "csi.storage.k8s.io/pod.name"
	podNamespaceKey = "csi.storage.k8s.io/pod.namespace"
)

// isInline says whether a volume is described in a pod's spec.
func isInline(r *csi.NodePublishVolumeRequest) bool {
	return r.GetVolumeContext()[ephemeralKey] == "true"
}

func parseInline(d driver.Driver, r *csi.NodePublishVolumeRequest) (inline.PublishRequest, error) {
	if err := checkNodeCall(r.GetVolumeId(), "target path", r.GetTargetPath()); err != nil {
		return inline.PublishRequest{}, err
	}
	if !d.Inline {
		return inline.PublishRequest{}, invalid("driver %s has no inline volumes: use a claim, or a generic ephemeral volume", d.Name)
	}
	use, err := parseUse(d, r.GetVolumeCapability())
	if err != nil {
		return inline.PublishRequest{}, err
	}
	if use.mode == v1alpha1.Block {
		return inline.PublishRequest{}, invalid("an inline volume cannot be a raw block device: use a claim, or a generic ephemeral volume")
	}
	asked, err := storageclass.ParseInline(r.GetVolumeContext())
	if err != nil {
		return inline.PublishRequest{}, err
	}
	if asked.FSType != "" && use.fsType != "" && asked.FSType != use.fsType {
		return inline.PublishRequest{}, invalid("the volume's fsType is %s and its volumeAttribute %s is %s: say it once",
			use.fsType, storageclass.InlineFSTypeKey, asked.FSType)
	}
	context := r.GetVolumeContext()
	if context[podUIDKey] == "" {
		return inline.PublishRequest{}, invalid("the kubelet does not say which pod the volume is for: the CSIDriver object needs podInfoOnMount")
	}
	fsType := cmp.Or(asked.FSType, use.fsType)
	if asked.MkfsOptions != "" {
		fsType = cmp.Or(fsType, storageclass.DefaultFSType)
		if err := storageclass.CheckMkfsOptions(fsType, asked.MkfsOptions); err != nil {
			return inline.PublishRequest{}, err
		}
	}
	options, readOnly := parseFlags(r.GetVolumeCapability())
	return inline.PublishRequest{
		Handle: r.GetVolumeId(), Target: r.GetTargetPath(),
		PodUID: context[podUIDKey], PodNamespace: context[podNamespaceKey], PodName: context[podNameKey],
		Class: asked.PoolClass, Size: asked.Size,
		Filesystem: string(fsType), MkfsOptions: asked.MkfsOptions,
		Options: options, ReadOnly: readOnly || r.GetReadonly(),
	}, nil
}
