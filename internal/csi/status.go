package csi

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/keyed"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/storageclass"
	"berth.dev/berth/internal/usecase/volumes"
)

// errInvalid is the class of a request that is malformed whatever the state of the cluster.
var errInvalid = errors.New("invalid request")

// codeOf maps the classes of errors to codes; the first match decides. ResourceExhausted
// makes the external-provisioner give the claim back to the scheduler; OutOfRange makes
// the external-resizer let the user ask for less.
var codeOf = []struct {
	class error
	code  codes.Code
}{
	{context.Canceled, codes.Canceled},
	{context.DeadlineExceeded, codes.DeadlineExceeded},
	{errInvalid, codes.InvalidArgument},
	{storageclass.ErrInvalid, codes.InvalidArgument},
	{provision.ErrInvalid, codes.InvalidArgument},
	{provision.ErrUnsupported, codes.InvalidArgument},
	{volumes.ErrOutOfRange, codes.OutOfRange},
	{provision.ErrNotFound, codes.NotFound},
	{driver.ErrForeign, codes.NotFound}, // to the caller's driver there is no such object
	{provision.ErrConflict, codes.AlreadyExists},
	{volumes.ErrUnplaceable, codes.ResourceExhausted},
	{provision.ErrNoSpace, codes.ResourceExhausted},
	{provision.ErrInUse, codes.FailedPrecondition},
	{volumes.ErrBusy, codes.Aborted},
	{volumes.ErrBadToken, codes.Aborted},
	{keyed.ErrLocked, codes.Aborted},
	{provision.ErrPoolMissing, codes.Unavailable},
	{provision.ErrUnavailable, codes.Unavailable},
}

// toStatus gives an error its code. An error that is a status already keeps its code. An
// error without a class is Unavailable: the operation may still be in progress.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	for _, each := range codeOf {
		if errors.Is(err, each.class) {
			return status.Error(each.code, err.Error())
		}
	}
	return status.Error(codes.Unavailable, err.Error())
}
