package csi

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"berth.dev/berth/internal/keyed"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/storageclass"
	"berth.dev/berth/internal/usecase/volumes"
)

func TestEveryClassOfErrorHasItsCode(t *testing.T) {
	_, badClass := storageclass.Parse(nil)
	tests := map[string]struct {
		err  error
		code codes.Code
	}{
		"no error":                                  {nil, codes.OK},
		"a malformed request":                       {invalid("x"), codes.InvalidArgument},
		"a malformed StorageClass":                  {badClass, codes.InvalidArgument},
		"an invalid wish":                           {provision.ErrInvalid, codes.InvalidArgument},
		"the provisioner does not support the wish": {provision.ErrUnsupported, codes.InvalidArgument},
		"a size out of range":                       {volumes.ErrOutOfRange, codes.OutOfRange},
		"an unknown volume":                         {provision.ErrNotFound, codes.NotFound},
		"a different volume of the same name":       {provision.ErrConflict, codes.AlreadyExists},
		"no node has room":                          {volumes.ErrUnplaceable, codes.ResourceExhausted},
		"the node has no room":                      {provision.ErrNoSpace, codes.ResourceExhausted},
		"the device is open":                        {provision.ErrInUse, codes.FailedPrecondition},
		"a second call for the same volume":         {volumes.ErrBusy, codes.Aborted},
		"the volume is locked":                      {keyed.ErrLocked, codes.Aborted},
		"a strange page token":                      {volumes.ErrBadToken, codes.Aborted},
		"the provisioner cannot be reached":         {provision.ErrUnavailable, codes.Unavailable},
		"the pool is not there":                     {provision.ErrPoolMissing, codes.Unavailable},
		"the caller gave up":                        {context.Canceled, codes.Canceled},
		"the caller's time is up":                   {context.DeadlineExceeded, codes.DeadlineExceeded},
		"an error without a class":                  {errors.New("connection refused"), codes.Unavailable},
		"an error that is a status already":         {status.Error(codes.Unimplemented, "x"), codes.Unimplemented},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := status.Code(toStatus(test.err)); got != test.code {
				t.Errorf("got %s, want %s", got, test.code)
			}
			if test.err == nil || test.code == codes.Unimplemented {
				return
			}
			wrapped := fmt.Errorf("creating volume: %w", test.err)
			if got := toStatus(wrapped); status.Code(got) != test.code || status.Convert(got).Message() != wrapped.Error() {
				t.Errorf("wrapped: got %v, want %s", got, test.code)
			}
		})
	}
}

func TestATimeOutThatHasAClassTooIsATimeOut(t *testing.T) {
	err := fmt.Errorf("%w: %w", provision.ErrInvalid, context.DeadlineExceeded)
	if got := status.Code(toStatus(err)); got != codes.DeadlineExceeded {
		t.Errorf("got %s: a call that may be in progress was given a final code", got)
	}
}
