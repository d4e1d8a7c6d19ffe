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
	}
}

func volumeFromWire(v *pb.Volume) provision.Volume {
	return provision.Volume{
		ID: v.GetId(), Pool: refFromWire(v.GetPool()), Size: v.GetSize(), Device: v.GetDevice(),
		Filesystem: v.GetFilesystem(), Problem: v.GetProblem(),
	}
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
