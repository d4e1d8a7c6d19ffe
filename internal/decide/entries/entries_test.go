package entries

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/internal/provision"
)

func TestAnErrorBecomesAReason(t *testing.T) {
	for name, tc := range map[string]struct {
		err     error
		reason  string
		retried bool
	}{
		"no room":                    {provision.ErrNoSpace, "NoSpace", false},
		"no pool":                    {provision.ErrPoolMissing, "PoolMissing", false},
		"no class":                   {ErrNoClass, "PoolMissing", false},
		"a pool of no class":         {ErrWrongPool, "PoolMissing", false},
		"an impossible wish":         {provision.ErrInvalid, "Invalid", false},
		"a pool without copies":      {provision.ErrUnsupported, "Unsupported", false},
		"other data bears the name":  {provision.ErrConflict, "Conflict", false},
		"an open device":             {provision.ErrInUse, "InUse", true},
		"a source that is not there": {fmt.Errorf("%w: %w", ErrNoSource, provision.ErrNotFound), "SourceMissing", true},
		"a volume that is not there": {provision.ErrNotFound, "ProvisionerError", true},
		"a provisioner that is away": {provision.ErrUnavailable, "ProvisionerError", true},
		"a provisioner that hangs":   {context.DeadlineExceeded, "ProvisionerError", true},
		"an error without a class":   {errors.New("exit status 5"), "ProvisionerError", true},
	} {
		t.Run(name, func(t *testing.T) {
			err := fmt.Errorf("doing it: %w", tc.err)
			if got := Reason(err); got != tc.reason || Retried(got) != tc.retried {
				t.Errorf("reason %s, retried %v; want %s, %v", got, Retried(got), tc.reason, tc.retried)
			}
		})
	}
}

func TestALongMessageIsCutAtARune(t *testing.T) {
	got := Clip(strings.Repeat("a", maxMessage-1) + "äöü")
	if len(got) > maxMessage || !utf8.ValidString(got) {
		t.Errorf("%d bytes, valid: %v", len(got), utf8.ValidString(got))
	}
}

func TestAFieldManagersNameFitsForEveryNode(t *testing.T) {
	long := strings.Repeat("n", 253)
	if got := FieldManager(long); len(got) > maxFieldManager || got == FieldManager(long[1:]) {
		t.Errorf("name %q", got)
	}
	if got := FieldManager("n1"); got != "agent-n1" {
		t.Errorf("name %q", got)
	}
}

func TestQuantitiesAreComparedByValue(t *testing.T) {
	a, b := resource.MustParse("1Gi"), resource.MustParse("1024Mi")
	if !SameQuantity(&a, &b) || !SameQuantity(nil, nil) || SameQuantity(&a, nil) || SameQuantity(&a, Bytes(1)) {
		t.Error("quantities are not compared by value")
	}
}
