package volumes

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase"
)

// unclaimed refuses to make the first Volume of a name under which a node keeps data: the
// claim had a volume before, and the API server was restored from an older backup.
func (a *attempt) unclaimed() error {
	node, pool, found := a.ledger.Orphan(ledger.Volume(a.name))
	if !found {
		return nil
	}
	return fail(provision.ErrConflict, "volume %s is not made anew: %s", a.name,
		kept(node, "it has data of that name in pool "+pool+" without a Volume", a.request.Claim, a.name))
}

// kept says that a node has the data that a claim had, and how the claim gets it back.
func kept(node, why string, claim *v1alpha1.ClaimReference, name string) string {
	option := ""
	if claim != nil {
		option = fmt.Sprintf(" --claim %s/%s", claim.Namespace, claim.Name)
	}
	return fmt.Sprintf("node %s: %s: it is kept; `kubectl berth adopt %s %s%s` gives it back to the claim as it is", node, why, node, name, option)
}

// remake replaces a reservation, or a volume that was never carved, which differs from the present
// request; d is the difference. No caller was told of it. If there may be data, the shape is final.
// Its node has to answer first, also if it is away: only a Volume under deletion can be let go of
// for a node that an administrator forgets.
func (a *attempt) remake(ctx context.Context, v *v1alpha1.Volume, d string) (*v1alpha1.Volume, error) {
	if v.Found() != "" || !v.Reserved() && Carved(v) {
		return nil, fail(provision.ErrConflict, "volume %s exists and is different: %s", a.name, d)
	}
	err := a.client.Delete(ctx, v, client.Preconditions{UID: &v.UID, ResourceVersion: &v.ResourceVersion})
	switch {
	case apierrors.IsConflict(err):
		return a.reread(ctx)
	case err != nil && !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("giving up volume %s, which has no data and is different (%s): %w", a.name, d, err)
	case err == nil:
		_, _, gone, err := a.objects.Await(ctx, a.events, v, func(v *v1alpha1.Volume) usecase.Answer { return usecase.PlacedVolume(v).Removed(a.nodes) })
		if err != nil {
			return nil, err
		}
		if !gone {
			return nil, fail(ErrBusy, "volume %s was begun in another shape and is being deleted", a.name)
		}
	}
	return a.create(ctx)
}
