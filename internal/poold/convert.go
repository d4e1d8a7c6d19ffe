package poold

import (
	"berth.dev/berth/internal/poold/pb"
	"berth.dev/berth/internal/provision"
)

func refToWire(r provision.PoolRef) *pb.PoolRef { return &pb.PoolRef{Type: r.Type, Name: r.Name} }

func refFromWire(r *pb.PoolRef) provision.PoolRef {
	return provision.PoolRef{Type: r.GetType(), Name: r.GetName()}
}

func volumeToWire(v provision.Volume) *pb.Volume {
	return &pb.Volume{
		Id: v.ID, Pool: refToWire(v.Pool), Size: v.Size, Device: v.Device, Filesystem: v.Filesystem, Problem: v.Problem,
		Inline: inlineToWire(v.Inline),
	}
}

func volumeFromWire(v *pb.Volume) provision.Volume {
	return provision.Volume{
		ID: v.GetId(), Pool: refFromWire(v.GetPool()), Size: v.GetSize(), Device: v.GetDevice(),
		Filesystem: v.GetFilesystem(), Problem: v.GetProblem(), Inline: inlineFromWire(v.GetInline()),
	}
}

func spareToWire(s provision.Spare) *pb.Spare {
	return &pb.Spare{Bytes: s.Bytes, Percent: int32(s.Percent)} //nolint:gosec // the server checks that it is a percentage
}

func spareFromWire(s *pb.Spare) provision.Spare {
	return provision.Spare{Bytes: s.GetBytes(), Percent: int(s.GetPercent())}
}

// inlineToWire leaves out what is no inline volume.
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
	}
	for _, v := range p.Volumes {
		wire.Volumes = append(wire.Volumes, volumeToWire(v))
	}
	return wire
}

func poolFromWire(p *pb.Pool) provision.Pool {
	pool := provision.Pool{
		PoolRef: refFromWire(p.GetRef()), Total: p.GetTotal(), Foreign: p.GetForeign(), Free: p.GetFree(),
		Unit: p.GetUnit(), Problem: p.GetProblem(),
	}
	for _, v := range p.GetVolumes() {
		pool.Volumes = append(pool.Volumes, volumeFromWire(v))
	}
	return pool
}
