package poold

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

// errorDomain marks the error details that poold adds.
const errorDomain = "poold.berth.dev"

// classes are the errors that keep their meaning across the socket. The client reads
// the reason; the code is for tools that inspect the traffic.
var classes = []struct {
	class  error
	reason string
	code   codes.Code
}{
	{provision.ErrNoSpace, "NO_SPACE", codes.ResourceExhausted},
	{provision.ErrNotFound, "NOT_FOUND", codes.NotFound},
	{provision.ErrPoolMissing, "POOL_MISSING", codes.NotFound},
	{provision.ErrConflict, "CONFLICT", codes.AlreadyExists},
	{provision.ErrInvalid, "INVALID", codes.InvalidArgument},
	{provision.ErrUnsupported, "UNSUPPORTED", codes.Unimplemented},
	{provision.ErrInUse, "IN_USE", codes.FailedPrecondition},
	{provision.ErrUnavailable, "UNAVAILABLE", codes.Unavailable},
	{mount.ErrCorrupt, "CORRUPT", codes.DataLoss},
	{mount.ErrNotMounted, "NOT_MOUNTED", codes.FailedPrecondition},
}

// toStatus returns the wire form of an error of a Node.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	for _, c := range classes {
		if !errors.Is(err, c.class) {
			continue
		}
		s, detailErr := status.New(c.code, err.Error()).WithDetails(&errdetails.ErrorInfo{Domain: errorDomain, Reason: c.reason})
		if detailErr != nil {
			return status.Errorf(codes.Internal, "describing error %q: %v", err, detailErr)
		}
		return s.Err()
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return status.FromContextError(err).Err()
	}
	return status.Error(codes.Unknown, err.Error())
}

// fromStatus turns an error of a call into one that a Node in this process would
// have returned.
func fromStatus(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	s := status.Convert(err)
	for _, d := range s.Details() {
		info, ok := d.(*errdetails.ErrorInfo)
		if !ok || info.GetDomain() != errorDomain {
			continue
		}
		for _, c := range classes {
			if c.reason == info.GetReason() {
				return &remoteError{text: s.Message(), class: c.class}
			}
		}
	}
	switch s.Code() {
	case codes.Canceled, codes.DeadlineExceeded:
		if ctx.Err() != nil {
			return fmt.Errorf("calling poold: %w", context.Cause(ctx))
		}
		if s.Code() == codes.DeadlineExceeded {
			return fmt.Errorf("calling poold: %w", context.DeadlineExceeded)
		}
		return fmt.Errorf("%w: poold stopped: %s", provision.ErrUnavailable, s.Message())
	case codes.Unavailable:
		return fmt.Errorf("%w: poold does not answer: %s", provision.ErrUnavailable, s.Message())
	default:
		return errors.New(s.Message())
	}
}

// remoteError has the text and the class of an error in the poold process.
type remoteError struct {
	text  string
	class error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.class }
