package poold

import (
	"strings"

	"berth.dev/berth/internal/poold/pb"
	"berth.dev/berth/internal/provision"
)

func refToWire(r provision.PoolRef) *pb.PoolRef { return &pb.PoolRef{Type: r.Type, Name: r.Name} }

func refFromWire(r *pb.PoolRef) provision.PoolRef {
	return provision.PoolRef{Type: r.GetType(), Name: r.GetName()}
}

func volumeToWire(v provision.Volume) *pb.Volume {
	return &pb.Volume{
		Id: v.ID, Pool: refToWire(v.Pool), Size: v.Size,
		Device: v.Content.Source, Identity: string(v.Content.Identity), Tree: v.Content.Tree,
		Filesystem: v.Filesystem, Problem: v.Problem, Inline: inlineToWire(v.Inline), Source: sourceToWire(v.Source), Copying: v.Copying, Claim: v.Claim,
	}
}

func volumeFromWire(v *pb.Volume) provision.Volume {
	return provision.Volume{
		ID: v.GetId(), Pool: refFromWire(v.GetPool()), Size: v.GetSize(), Content: contentFromWire(v),
		Filesystem: v.GetFilesystem(), Problem: v.GetProblem(), Inline: inlineFromWire(v.GetInline()),
		Source: sourceFromWire(v.GetSource()), Copying: v.GetCopying(), Claim: v.GetClaim(),
	}
}

// contentFromWire reads the content that a message names. A program of before Content sends no
// tree, and a dataset as the one device that has no path.
func contentFromWire(m interface {
	GetDevice() string
	GetIdentity() string
	GetTree() string
}) provision.Content {
	c := provision.Content{Source: m.GetDevice(), Identity: provision.Identity(m.GetIdentity()), Tree: m.GetTree()}
	if c.Tree == "" && c.Source != "" && !strings.HasPrefix(c.Source, "/") {
		c.Tree = provision.Dataset
	}
	return c
}

func createToWire(r provision.CreateRequest) *pb.CreateRequest {
	return &pb.CreateRequest{
		Id: r.ID, Pool: refToWire(r.Pool), Size: r.Size, Limits: limitsToWire(r.Limits), Labels: r.Labels,
		Inline: inlineToWire(r.Inline), Source: sourceToWire(r.Source), Wipe: string(r.Wipe),
		Filesystem: r.Tree, Tuning: tuningToWire(r.Tuning),
	}
}

func createFromWire(r *pb.CreateRequest) provision.CreateRequest {
	return provision.CreateRequest{
		ID: r.GetId(), Pool: refFromWire(r.GetPool()), Size: r.GetSize(), Limits: limitsFromWire(r.GetLimits()), Labels: r.GetLabels(),
		Inline: inlineFromWire(r.GetInline()), Source: sourceFromWire(r.GetSource()), Wipe: provision.Wipe(r.GetWipe()),
		Tree: r.GetFilesystem(), Tuning: tuningFromWire(r.GetTuning()),
	}
}

// tuningToWire sends no message for the zero value.
func tuningToWire(o provision.Tuning) *pb.Tuning {
	if o == (provision.Tuning{}) {
		return nil
	}
	return &pb.Tuning{BlockSize: o.BlockSize, Compression: o.Compression, RecordSize: o.RecordSize}
}

func tuningFromWire(o *pb.Tuning) provision.Tuning {
	return provision.Tuning{BlockSize: o.GetBlockSize(), Compression: o.GetCompression(), RecordSize: o.GetRecordSize()}
}

func limitsToWire(l provision.Limits) *pb.Limits {
	return &pb.Limits{
		Spare: l.Spare, SparePercent: int32(l.SparePercent), //nolint:gosec // the server checks that they are percentages
		Overprovision: int32(l.Overprovision), MaxFill: int32(l.MaxFill), //nolint:gosec // likewise
	}
}

func limitsFromWire(l *pb.Limits) provision.Limits {
	return provision.Limits{
		Spare: l.GetSpare(), SparePercent: int(l.GetSparePercent()),
		Overprovision: int(l.GetOverprovision()), MaxFill: int(l.GetMaxFill()),
	}
}

// inlineToWire sends no message for a volume that is not inline.
func inlineToWire(i provision.Inline) *pb.Inline {
	if i == (provision.Inline{}) {
		return nil
	}
	return &pb.Inline{PodUid: i.PodUID, Name: i.Name}
}

func inlineFromWire(i *pb.Inline) provision.Inline {
	return provision.Inline{PodUID: i.GetPodUid(), Name: i.GetName()}
}

func poolToWire(p provision.Pool) *pb.Pool {
	wire := &pb.Pool{
		Ref: refToWire(p.PoolRef), Total: p.Total, Foreign: p.Foreign, Free: p.Free, Unit: p.Unit, Problem: p.Problem,
		Filled: p.Fill.Data, MetadataFilled: int32(p.Fill.Metadata), Media: p.Media, Paths: p.Paths, //nolint:gosec // a percentage
	}
	for _, v := range p.Volumes {
		wire.Volumes = append(wire.Volumes, volumeToWire(v))
	}
	for _, s := range p.Snapshots {
		wire.Snapshots = append(wire.Snapshots, snapshotToWire(s))
	}
	for _, v := range p.Wiping {
		wire.Wiping = append(wire.Wiping, volumeToWire(v))
	}
	return wire
}

func poolFromWire(p *pb.Pool) provision.Pool {
	pool := provision.Pool{
		PoolRef: refFromWire(p.GetRef()), Total: p.GetTotal(), Foreign: p.GetForeign(), Free: p.GetFree(),
		Unit: p.GetUnit(), Problem: p.GetProblem(),
		Fill:  provision.Fill{Data: p.GetFilled(), Metadata: int(p.GetMetadataFilled())},
		Media: p.GetMedia(), Paths: p.GetPaths(),
	}
	for _, v := range p.GetVolumes() {
		pool.Volumes = append(pool.Volumes, volumeFromWire(v))
	}
	for _, s := range p.GetSnapshots() {
		pool.Snapshots = append(pool.Snapshots, snapshotFromWire(s))
	}
	for _, v := range p.GetWiping() {
		pool.Wiping = append(pool.Wiping, volumeFromWire(v))
	}
	return pool
}
