package volumes

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/usecase"
)

// Create makes a volume, or finishes making it, and returns it once its node
// has carved it. Asking again for what exists returns it; asking for something
// else under the same name is provision.ErrConflict. With no node that can take
// it the error is ErrUnplaceable, and nothing remains on any node.
func (s *Service) Create(ctx context.Context, r Request) (Volume, error) {
	bytes, err := r.Size.bytes(r.Mode, r.FSType)
	if err != nil {
		return Volume{}, err
	}
	if uid := claimUID(r.Name); r.Claim != nil && r.Claim.UID == "" {
		claim := *r.Claim
		claim.UID = uid
		r.Claim = &claim
	}
	name := v1alpha1.VolumeName(r.Name)
	unlock, err := s.objects.Lock(name)
	if err != nil {
		return Volume{}, err
	}
	defer unlock()
	events := s.objects.Watchers.Watch(name)
	defer events.Stop()

	a := &attempt{Service: s, request: r, bytes: bytes, name: name, events: events, refused: map[string]string{}}
	defer a.release()
	v, err := a.run(ctx)
	if err != nil {
		return Volume{}, err
	}
	return view(v), nil
}

// attempt is one call of Create.
type attempt struct {
	*Service
	request Request
	bytes   int64
	name    string
	events  *watcher
	// refused nodes have said no during this call, with their message. Each node
	// is asked once per call: figures that are wrong cannot make it ask one node
	// for ever.
	refused map[string]string
	// troubled is the node that had failed to make the volume when the call began.
	troubled string
	// origin is the source of the volume, once it was looked up.
	origin *origin
	// reserved nodes are those on which the call holds room.
	reserved []string
}

// run takes one step after the other until there is an answer. Each step leaves
// the object in a state that a later call can go on from.
func (a *attempt) run(ctx context.Context) (*v1alpha1.Volume, error) {
	v, err := a.begin(ctx)
	if err == nil {
		a.troubled = troubled(v)
	}
	for {
		if err != nil {
			return nil, err
		}
		if err := a.check(v); err != nil {
			return nil, err
		}
		if d := difference(&v.Spec, a.request); d != "" {
			v, err = a.remake(ctx, v, d)
			continue
		}
		a.request.FSType = v.Spec.FSType
		if err := a.followAll(ctx, v); err != nil {
			return nil, err
		}
		if !a.wellPlaced(v) {
			v, err = a.replace(ctx, v)
			continue
		}
		latest, answer, gone, waitErr := a.objects.Await(ctx, a.events, v, a.judge)
		switch {
		case waitErr != nil:
			return nil, waitErr
		case gone:
			return nil, a.gone()
		case answer.Outcome == done && latest.Reserved() && !a.request.Reservation:
			v, err = a.publish(ctx, latest)
			continue
		case answer.Outcome == done:
			return latest, nil
		case answer.Outcome == failed && !a.broken(latest, answer.Node):
			return nil, answer.Err()
		}
		a.refused[answer.Node] = answer.Message
		v = latest
	}
}

// begin finds the volume or creates it.
func (a *attempt) begin(ctx context.Context) (*v1alpha1.Volume, error) {
	v, err := a.objects.Find(ctx, a.name)
	if v != nil || err != nil {
		return v, err
	}
	return a.create(ctx)
}

func (a *attempt) create(ctx context.Context) (*v1alpha1.Volume, error) {
	if err := a.unclaimed(); err != nil {
		return nil, err
	}
	if err := a.resolve(ctx); err != nil {
		return nil, err
	}
	if err := a.settleFilesystem(ctx); err != nil {
		return nil, err
	}
	at, err := a.place(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.mayFormat(ctx, at); err != nil {
		return nil, err
	}
	v := object(a.request, a.bytes, at)
	err = a.client.Create(ctx, v)
	if apierrors.IsAlreadyExists(err) {
		return a.reread(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("creating volume %s: %w", a.name, err)
	}
	return v, nil
}

// mayFormat is nil if the node there makes filesystems as the request asks for, by the API
// server: the ledger may still know the agent that an older one has replaced.
func (a *attempt) mayFormat(ctx context.Context, at place) error {
	switch a.request.Feature() {
	case v1alpha1.FeatureDatasets:
		return usecase.MayMakeDatasets(ctx, a.live, at.node)
	case v1alpha1.FeatureMkfsOptions:
		return usecase.MayFormat(ctx, a.live, at.node)
	}
	return nil
}

// reread gets the volume after a write that lost against another one.
func (a *attempt) reread(ctx context.Context) (*v1alpha1.Volume, error) {
	v, err := a.objects.Get(ctx, a.name)
	if err == nil && v == nil {
		return nil, a.gone()
	}
	return v, err
}

func (a *attempt) gone() error {
	return fail(ErrBusy, "volume %s was deleted while it was being created", a.name)
}

func (a *attempt) check(v *v1alpha1.Volume) error {
	if v.DeletionTimestamp != nil {
		return fail(ErrBusy, "volume %s is being deleted", a.name)
	}
	return nil
}

// judge gives up on a node that is away and has not answered: it counts as one
// that refused, since another one may do.
func (a *attempt) judge(v *v1alpha1.Volume) verdict {
	answer := created(v)
	if answer.Outcome != waiting {
		return answer
	}
	if away := a.nodes.Away(answer.Node); away != "" {
		return verdict{Outcome: refused, Node: answer.Node, Class: ErrUnplaceable, Message: away}
	}
	return answer
}
