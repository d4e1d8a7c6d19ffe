package volumes

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/usecase"
)

// Create makes a volume, or finishes making it, and returns it once its node has
// carved it. A repeated call returns the volume. A different request under the same
// name is provision.ErrConflict. If no node can take the volume the error is
// ErrUnplaceable, and nothing remains on any node.
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

	c := &call{Service: s, request: r, bytes: bytes, name: name, refused: map[string]string{}}
	a := &attempt{call: c, rooms: &placing{call: c}, events: events}
	defer a.rooms.release()
	v, err := a.run(ctx)
	if err != nil {
		return Volume{}, err
	}
	return View(v), nil
}

// call is what one call of Create knows.
type call struct {
	*Service
	request Request
	bytes   int64
	name    string
	// refused holds the nodes that have refused during this call, with their messages.
	// The call asks each node once: wrong figures cannot make it ask one node for ever.
	refused map[string]string
	// origin is the source of the volume, once it was looked up.
	origin *origin
}

// attempt takes the steps of a call on the Volume object.
type attempt struct {
	*call
	rooms  *placing
	events *watcher
	// troubled is the node that had failed to make the volume when the call began.
	troubled string
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
		if d := Difference(&v.Spec, a.request); d != "" {
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
		case answer.State == usecase.Done && latest.Reserved() && !a.request.Reservation:
			v, err = a.publish(ctx, latest)
			continue
		case answer.State == usecase.Done:
			return latest, nil
		case answer.State == usecase.Failed && !a.broken(latest, answer.Node):
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
	at, err := a.rooms.place(ctx)
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

// mayFormat returns nil if the node makes filesystems as the request asks, by its report
// at the API server: the ledger may still know an agent that an older one has replaced.
func (c *call) mayFormat(ctx context.Context, at place) error {
	return usecase.May(ctx, c.live, at.node, c.request.Feature())
}

// reread gets the volume after another process has written it first.
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

// judge gives up on a node that is away and has not answered, or has carved nothing but a
// reservation: no caller was told of that, so nothing binds the claim to the node. The node counts
// as one that refused, since another node may take the volume.
func (a *attempt) judge(v *v1alpha1.Volume) usecase.Answer {
	answer := created(v)
	for _, replica := range v.Spec.Replicas {
		open := answer.State == usecase.Waiting && answer.Node == replica.Node || answer.State == usecase.Done && v.Reserved()
		if away := a.nodes.Away(replica.Node); open && away != "" {
			return usecase.Answer{State: usecase.Refused, Node: replica.Node, Class: ErrUnplaceable, Message: away}
		}
	}
	return answer
}
