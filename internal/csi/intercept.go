package csi

import (
	"context"
	"path"
	"runtime/debug"
	"slices"
	"time"

	"github.com/kubernetes-csi/csi-lib-utils/protosanitizer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// routine calls come all the time. At the default log level only their failures are logged.
var routine = []string{
	"Probe", "GetPluginInfo", "GetPluginCapabilities", "ControllerGetCapabilities",
	"NodeGetCapabilities", "NodeGetVolumeStats", "GetCapacity", "ListVolumes", "ListSnapshots",
}

// detail is the log level of requests and of routine calls.
const detail = 1

// observe logs and counts every call. It is the only place where errors of CSI
// calls are logged. Secrets are stripped.
func (s *Server) observe(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	method, start := path.Base(info.FullMethod), time.Now()
	log := s.Log.WithValues("method", method)
	log.V(detail).Info("call", "request", protosanitizer.StripSecrets(request))

	response, err := handle(ctx, request)

	elapsed := time.Since(start)
	if s.Metrics != nil {
		s.Metrics.RecordMetrics(info.FullMethod, err, elapsed)
	}
	switch {
	case err != nil:
		log.Info("call failed", "volume", volumeOf(request), "code", status.Code(err).String(), "reason", status.Convert(err).Message(), "duration", elapsed.String())
	case slices.Contains(routine, method):
		log.V(detail).Info("call done", "duration", elapsed.String())
	default:
		log.Info("call done", "volume", volumeOf(request), "duration", elapsed.String())
	}
	return response, err
}

// volumeOf returns the id of the volume that a request is about, or its name if there is no
// id yet.
func volumeOf(request any) string {
	switch r := request.(type) {
	case interface{ GetVolumeId() string }:
		return r.GetVolumeId()
	case interface{ GetSourceVolumeId() string }:
		return r.GetSourceVolumeId()
	case interface{ GetName() string }:
		return r.GetName()
	}
	return ""
}

func classify(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	response, err := handle(ctx, request)
	if err != nil {
		return nil, toStatus(err)
	}
	return response, nil
}

// recover turns a panic into the error of the call in which it happened, so that calls for
// other volumes go on.
func (s *Server) recover(_ context.Context, p any) error {
	s.Log.Error(nil, "panic in a call", "panic", p, "stack", string(debug.Stack()))
	return status.Errorf(codes.Internal, "internal error: %v (the log has the stack)", p)
}
