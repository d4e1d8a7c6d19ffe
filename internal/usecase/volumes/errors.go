package volumes

import "berth.dev/berth/internal/usecase"

// The classes of this package's errors that the provisioner does not have.
var (
	// ErrUnplaceable: no node that is allowed can take the volume now.
	ErrUnplaceable = usecase.ErrUnplaceable
	// ErrOutOfRange: the size cannot be had, and asking again will not help.
	ErrOutOfRange = usecase.ErrOutOfRange
	// ErrBusy: another operation on the volume is in progress; try again.
	ErrBusy = usecase.ErrBusy
	// ErrBadToken: the page token is not one of List's.
	ErrBadToken = usecase.ErrBadToken
)

func fail(class error, format string, args ...any) error { return usecase.Fail(class, format, args...) }
