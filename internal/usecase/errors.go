package usecase

import (
	"errors"
	"fmt"
)

// The classes of errors that the provisioner does not have. Errors of use cases wrap
// one of these, a class of package provision, a context error or an error of the API
// server.
var (
	// ErrUnplaceable: no node that is allowed can take the volume now.
	ErrUnplaceable = errors.New("no place for the volume")
	// ErrOutOfRange: the size cannot be had, and asking again will not help.
	ErrOutOfRange = errors.New("size out of range")
	// ErrBusy: another operation on the object is in progress; try again.
	ErrBusy = errors.New("another operation on it is in progress")
	// ErrBadToken: the page token is not one of List's.
	ErrBadToken = errors.New("invalid page token")
)

// failure is an error of a class whose message is made for people: the class is
// found by errors.Is and not repeated in the text.
type failure struct {
	class   error
	message string
}

func (f *failure) Error() string { return f.message }
func (f *failure) Unwrap() error { return f.class }

// Fail is an error of a class with a message of its own.
func Fail(class error, format string, args ...any) error {
	return &failure{class: class, message: fmt.Sprintf(format, args...)}
}
