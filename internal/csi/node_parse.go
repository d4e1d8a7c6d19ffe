package csi

import (
	"errors"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/publish/staging"
)

// nodeStatus gives a code to the error classes that only the node service knows. toStatus
// handles all others.
func nodeStatus(err error) error {
	switch {
	case errors.Is(err, staging.ErrNotStaged):
		return status.Error(codes.FailedPrecondition, err.Error())
	case errors.Is(err, mount.ErrCorrupt):
		return status.Error(codes.Internal, err.Error())
	}
	return err
}

func parseStage(d driver.Driver, r *csi.NodeStageVolumeRequest) (staging.StageRequest, error) {
	if err := checkNodeCall(r.GetVolumeId(), "staging target path", r.GetStagingTargetPath()); err != nil {
		return staging.StageRequest{}, err
	}
	use, err := parseUse(d, r.GetVolumeCapability())
	if err != nil {
		return staging.StageRequest{}, err
	}
	options, readOnly := parseFlags(r.GetVolumeCapability())
	return staging.StageRequest{
		ID:         r.GetVolumeId(),
		Path:       r.GetStagingTargetPath(),
		Block:      use.mode == v1alpha1.Block,
		Filesystem: string(use.fsType),
		Options:    options,
		ReadOnly:   readOnly,
	}, nil
}

func parsePublish(d driver.Driver, r *csi.NodePublishVolumeRequest) (staging.PublishRequest, error) {
	if err := checkNodeCall(r.GetVolumeId(), "target path", r.GetTargetPath()); err != nil {
		return staging.PublishRequest{}, err
	}
	use, err := parseUse(d, r.GetVolumeCapability())
	if err != nil {
		return staging.PublishRequest{}, err
	}
	block := use.mode == v1alpha1.Block
	if r.GetStagingTargetPath() == "" && !block {
		return staging.PublishRequest{}, invalid("staging target path is missing")
	}
	_, readOnly := parseFlags(r.GetVolumeCapability())
	context, err := seLinuxContext(r.GetVolumeCapability())
	if err != nil {
		return staging.PublishRequest{}, err
	}
	return staging.PublishRequest{
		ID:          r.GetVolumeId(),
		StagingPath: r.GetStagingTargetPath(),
		Target:      r.GetTargetPath(),
		Block:       block,
		ReadOnly:    readOnly || r.GetReadonly(),
		Context:     context,
		Exclusive:   r.GetVolumeCapability().GetAccessMode().GetMode() == csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER,
	}, nil
}

func parseUse(d driver.Driver, capability *csi.VolumeCapability) (use, error) {
	if capability == nil {
		return use{}, invalid("volume capability is missing")
	}
	return parseCapability(d, capability)
}

func checkNodeCall(id, what, path string) error {
	if err := checkID(id); err != nil {
		return err
	}
	if path == "" {
		return invalid("%s is missing", what)
	}
	return nil
}

func usageOf(f staging.Figures) []*csi.VolumeUsage {
	bytes := &csi.VolumeUsage{Unit: csi.VolumeUsage_BYTES, Total: f.Total, Available: f.Available, Used: f.Used}
	if f.Block {
		return []*csi.VolumeUsage{bytes}
	}
	return []*csi.VolumeUsage{bytes, {
		Unit: csi.VolumeUsage_INODES, Total: f.Inodes, Available: f.InodesAvailable, Used: f.InodesUsed,
	}}
}
