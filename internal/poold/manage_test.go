package poold

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/provision"
)

func TestEveryFieldOfAWishCrossesTheWire(t *testing.T) {
	wish := filled[provision.PoolWish]()
	if diff := cmp.Diff(wish, wishFromWire(wishToWire(wish))); diff != "" {
		t.Errorf("a wish (-sent +received):\n%s", diff)
	}
}
