package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"berth.dev/berth/lab/internal/guest"
	"berth.dev/berth/lab/internal/network"
	"berth.dev/berth/lab/internal/progress"
	"berth.dev/berth/lab/internal/san"
)

// SANSpec describes a SAN to be made.
type SANSpec struct {
	san.Settings
	LUNs int
	Size int64 // bytes of each logical unit
}

// SAN is the storage target of a cluster, made or not. Each change of it holds the cluster's lock.
type SAN struct{ cluster *Cluster }

// Make makes the SAN and starts it, or completes an interrupted start.
func (s SAN) Make(ctx context.Context, spec SANSpec) (*san.SAN, error) {
	if err := errors.Join(needRoot(), spec.Validate()); err != nil {
		return nil, err
	}
	var target *san.SAN
	err := s.cluster.change(func() error {
		var err error
		if target, err = s.openOrCreate(ctx, spec); err != nil {
			return err
		}
		return s.cluster.step("SAN", func(step progress.Step) error { return s.start(ctx, target, spec, step) })
	})
	return target, err
}

// openOrCreate returns the SAN that exists, if it has the settings of spec, or a new one.
func (s SAN) openOrCreate(ctx context.Context, spec SANSpec) (*san.SAN, error) {
	place, err := s.place(ctx)
	if err != nil {
		return nil, err
	}
	target, err := san.Open(place)
	switch {
	case errors.Is(err, san.ErrNotExist):
		return san.Create(place, spec.Settings)
	case err == nil && target.Settings() != spec.Settings:
		return nil, errors.New("the cluster has a SAN of another kind: remove it first with `lab san down`")
	default:
		return target, err
	}
}

func (s SAN) start(ctx context.Context, target *san.SAN, spec SANSpec, step progress.Step) error {
	net, err := s.cluster.network(ctx)
	if err != nil {
		return err
	}
	if spec.Kind == san.LIO {
		err = s.makeGuest(ctx, target, net)
	} else {
		err = s.prepareTGT(ctx, net)
	}
	if err != nil {
		return err
	}
	for len(target.LUNs()) < spec.LUNs {
		if _, err := target.Add(ctx, spec.Size); err != nil {
			return err
		}
	}
	step.Note("starting the target")
	return target.On(ctx)
}

func (s SAN) prepareTGT(ctx context.Context, net *network.Network) error {
	if err := guest.InstallPackages(ctx, s.cluster.lab.Report, guest.Missing(san.TGTPackages)); err != nil {
		return err
	}
	return net.HoldSAN(ctx, true)
}

func (s SAN) makeGuest(ctx context.Context, target *san.SAN, net *network.Network) error {
	if target.HasGuest() {
		return nil
	}
	if err := guest.InstallPackages(ctx, s.cluster.lab.Report, guest.MissingPackages()); err != nil {
		return err
	}
	image, err := guest.GetImage(ctx, s.cluster.lab.Store)
	if err != nil {
		return err
	}
	tap, err := net.Tap(ctx, san.Machine)
	if err != nil {
		return err
	}
	return target.MakeGuest(ctx, image, tap)
}

func (s SAN) place(ctx context.Context) (san.Place, error) {
	net, err := s.cluster.network(ctx)
	if err != nil {
		return san.Place{}, err
	}
	return san.Place{Dir: s.cluster.paths.san(), NetNS: net.Path()}, nil
}

// open returns the target, or [san.ErrNotExist].
func (s SAN) open(ctx context.Context) (*san.SAN, error) {
	place, err := s.place(ctx)
	if err != nil {
		return nil, err
	}
	return san.Open(place)
}

// change runs f with the target while no other command changes the cluster.
func (s SAN) change(ctx context.Context, what string, f func(*san.SAN) error) error {
	if err := needRoot(); err != nil {
		return err
	}
	return s.cluster.change(func() error {
		target, err := s.open(ctx)
		if err != nil {
			return err
		}
		return s.cluster.step("SAN: "+what, func(progress.Step) error { return f(target) })
	})
}

// Remove ends the SAN and deletes all its logical units. Without a SAN it does nothing.
func (s SAN) Remove(ctx context.Context) error {
	err := s.change(ctx, "removing", func(target *san.SAN) error {
		net, err := s.cluster.network(ctx)
		if err != nil {
			return err
		}
		return errors.Join(target.Down(ctx), net.HoldSAN(ctx, false), net.Unplug(ctx, san.Machine))
	})
	if errors.Is(err, san.ErrNotExist) {
		return nil
	}
	return err
}

// off ends the SAN, for [Lab.Down], which holds the lock. The SAN's files go with the cluster's.
func (s SAN) off(ctx context.Context) error {
	target, err := s.open(ctx)
	if errors.Is(err, san.ErrNotExist) || errors.Is(err, network.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return target.Off(ctx)
}

// SANStatus is the state of the SAN.
type SANStatus struct {
	Kind    string        `json:"kind"`
	Persist bool          `json:"persist"` // reservations survive a restart
	Power   string        `json:"power"`
	Portal  string        `json:"portal"`
	Target  string        `json:"target"`
	Latency time.Duration `json:"latency,omitempty"` // nanoseconds
	LUNs    []san.LUN     `json:"luns"`
}

func (s SAN) status(ctx context.Context) (*SANStatus, error) {
	target, err := s.open(ctx)
	if errors.Is(err, san.ErrNotExist) || errors.Is(err, network.ErrNotExist) {
		return nil, nil //nolint:nilnil // a cluster need not have a SAN
	}
	if err != nil {
		return nil, err
	}
	return &SANStatus{
		Kind: target.Settings().Kind, Persist: target.Settings().Persist, Power: string(target.Power()), Latency: target.Latency(),
		Portal: fmt.Sprintf("%s:%d", network.SANAddress, san.Port), Target: san.Target, LUNs: target.LUNs(),
	}, nil
}

// Start starts the target again after [SAN.Stop].
func (s SAN) Start(ctx context.Context) error {
	return s.change(ctx, "starting", func(target *san.SAN) error { return target.On(ctx) })
}

// Stop ends the target at once.
func (s SAN) Stop(ctx context.Context) error {
	return s.change(ctx, "ending", func(target *san.SAN) error { return target.Off(ctx) })
}

// Restart ends the target at once and starts it again.
func (s SAN) Restart(ctx context.Context) error {
	return s.change(ctx, "restarting", func(target *san.SAN) error { return target.Restart(ctx) })
}

// AddLUN adds an empty logical unit.
func (s SAN) AddLUN(ctx context.Context, size int64) (l san.LUN, err error) {
	err = s.change(ctx, "adding a logical unit", func(target *san.SAN) error {
		l, err = target.Add(ctx, size)
		return err
	})
	return l, err
}

// RemoveLUN takes a logical unit away and deletes it.
func (s SAN) RemoveLUN(ctx context.Context, number int) error {
	return s.change(ctx, "removing a logical unit", func(target *san.SAN) error { return target.Remove(ctx, number) })
}

// Delay delays each answer of the target; 0 ends that.
func (s SAN) Delay(ctx context.Context, d time.Duration) error {
	return s.change(ctx, "latency", func(target *san.SAN) error { return target.Delay(ctx, d) })
}
