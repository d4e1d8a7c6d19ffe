package provision_test

import (
	"errors"
	"fmt"
	"testing"

	"berth.dev/berth/internal/provision"
)

func TestAnErrorSaysOnceThatTheProvisionerIsUnavailable(t *testing.T) {
	cause := errors.New("the disk is gone")
	once := provision.Unavailable(cause)
	for name, err := range map[string]error{
		"marked once":         once,
		"marked twice":        provision.Unavailable(once),
		"marked by a Problem": fmt.Errorf("%w: %s", provision.ErrUnavailable, provision.Problem(once)),
	} {
		if want := "provisioner unavailable: the disk is gone"; err.Error() != want {
			t.Errorf("%s: got %q, want %q", name, err, want)
		}
		if !errors.Is(err, provision.ErrUnavailable) {
			t.Errorf("%s: %q is of another kind", name, err)
		}
	}
	if !errors.Is(once, cause) {
		t.Errorf("%q has lost its cause", once)
	}
	if got := provision.Problem(cause); got != cause.Error() {
		t.Errorf("the text of %q became %q", cause, got)
	}
}
