package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	csimetrics "github.com/kubernetes-csi/csi-lib-utils/metrics"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/csi"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/keyed"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/publish/staging"
)

const statsRounds = 5

// measureStats asks for the statistics of a volume that is mounted, by CSI, as the
// kubelet does: with poold in the agent and with poold behind its socket, in turn.
func measureStats(ctx context.Context, o options, d disksOf) (all []asked, err error) {
	id := v1alpha1.VolumeName("stats")
	_, err = d.local.Create(ctx, provision.CreateRequest{ID: id, Pool: poolOf(thick, socketSide), Size: 64 << 20, Wipe: provision.WipeNone})
	if err != nil {
		return nil, err
	}
	kubelet, err := os.MkdirTemp("", "bench-local-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(kubelet)
	volume, stage := filepath.Join(kubelet, "target"), filepath.Join(kubelet, "stage")
	faces := map[string]*staging.Service{}
	for name, disks := range map[string]staging.Disks{"embedded": d.local, "separate": d.remote} {
		locks := &keyed.Locks[string]{}
		faces[name] = staging.New(staging.Config{
			Node: node, KubeletDir: kubelet, Disks: disks, Wishes: filesystem{}, Mounts: staging.KernelMounts,
			Locks: locks, Owner: staging.OneCopy{Locks: locks},
		})
	}
	service := faces["embedded"]
	if err := service.Stage(ctx, staging.StageRequest{ID: id, Path: stage}); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, service.Unstage(ctx, id, stage)) }()
	if err := service.Publish(ctx, staging.PublishRequest{ID: id, StagingPath: stage, Target: volume}); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, service.Unpublish(ctx, id, volume)) }()

	request := &csipb.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: volume}
	for _, name := range []string{"embedded", "separate"} {
		for _, atOnce := range []int{1, o.atOnce} {
			a := asked{Poold: name, AtOnce: atOnce}
			d.counter.Take()
			err := withFace(ctx, filepath.Join(kubelet, "csi.sock"), faces[name], func(ctx context.Context, c csipb.NodeClient) (err error) {
				a.PerSecond, err = ask(ctx, c, request, atOnce, o.statsFor)
				return err
			})
			if err != nil {
				return nil, fmt.Errorf("poold %s: %w", name, err)
			}
			for _, n := range d.counter.Take() {
				a.Processes += n
			}
			all = append(all, a)
		}
	}
	return all, nil
}

// node is the name of this machine.
const node = "bench"

// filesystem wishes for ext4 on every volume.
type filesystem struct{}

// Spec implements staging.Wishes.
func (filesystem) Spec(context.Context, string) *v1alpha1.VolumeSpec {
	return &v1alpha1.VolumeSpec{
		VolumeMode: v1alpha1.Filesystem, FSType: v1alpha1.Ext4,
		Replicas: []v1alpha1.ReplicaSpec{{Node: node, Pool: poolOf(thick, socketSide).Name}},
	}
}

// withFace calls do while it serves CSI on a socket.
func withFace(ctx context.Context, socket string, volumes csi.NodeVolumes, do func(context.Context, csipb.NodeClient) error) error {
	listener, err := csi.Listen(ctx, socket)
	if err != nil {
		return err
	}
	server := &csi.Server{
		Services: []csi.Service{csi.NewNode(driver.Local(), node, volumes, nil)},
		Log:      logr.Discard(), Metrics: csimetrics.NewCSIMetricsManagerForPlugin(v1alpha1.LocalDriverName),
	}
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { return server.Serve(ctx, listener) })
	work.Go(func() error {
		defer stop()
		return errors.Join(do(ctx, csipb.NewNodeClient(conn)), conn.Close())
	})
	return work.Wait()
}

// ask sends requests for the time d, atOnce at a time, and returns how many calls
// were answered in a second, by round. The first round does not count.
func ask(ctx context.Context, c csipb.NodeClient, r *csipb.NodeGetVolumeStatsRequest, atOnce int, d time.Duration) (perSecond []float64, err error) {
	for round := range statsRounds + 1 {
		progress("statistics, %d at once: round %d of %d", atOnce, round, statsRounds)
		var answered atomic.Int64
		all, ctx := errgroup.WithContext(ctx)
		begun := time.Now()
		for range atOnce {
			all.Go(func() error {
				for time.Since(begun) < d {
					if _, err := c.NodeGetVolumeStats(ctx, r); err != nil {
						return err
					}
					answered.Add(1)
				}
				return nil
			})
		}
		if err := all.Wait(); err != nil {
			return nil, err
		}
		if round > 0 {
			perSecond = append(perSecond, float64(answered.Load())/time.Since(begun).Seconds())
		}
	}
	return perSecond, nil
}
