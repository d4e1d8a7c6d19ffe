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

// MakeSAN makes the cluster's SAN and starts it, or completes an interrupted start.
func (c *Cluster) MakeSAN(ctx context.Context, spec SANSpec) (*san.SAN, error) {
	if err := errors.Join(needRoot(), spec.Validate()); err != nil {
		return nil, err
	}
	var s *san.SAN
	err := c.change(func() error {
		var err error
		if s, err = c.recordedSAN(ctx, spec); err != nil {
			return err
		}
		return c.step("SAN", func(step progress.Step) error { return c.startSAN(ctx, s, spec, step) })
	})
	return s, err
}

// recordedSAN returns the SAN that exists, if it has the settings of spec, or a new one.
func (c *Cluster) recordedSAN(ctx context.Context, spec SANSpec) (*san.SAN, error) {
	place, err := c.sanPlace(ctx)
	if err != nil {
		return nil, err
	}
	s, err := san.Open(place)
	switch {
	case errors.Is(err, san.ErrNotExist):
		return san.Create(place, spec.Settings)
	case err == nil && s.Settings() != spec.Settings:
		return nil, errors.New("the cluster has a SAN of another kind: remove it first with `lab san down`")
	default:
		return s, err
	}
}

func (c *Cluster) startSAN(ctx context.Context, s *san.SAN, spec SANSpec, step progress.Step) error {
	net, err := c.network(ctx)
	if err != nil {
		return err
	}
	if spec.Kind == san.LIO {
		err = c.makeSANGuest(ctx, s, net)
	} else {
		err = c.prepareTGT(ctx, net)
	}
	if err != nil {
		return err
	}
	for len(s.LUNs()) < spec.LUNs {
		if _, err := s.Add(ctx, spec.Size); err != nil {
			return err
		}
	}
	step.Note("starting the target")
	return s.On(ctx)
}

func (c *Cluster) prepareTGT(ctx context.Context, net *network.Network) error {
	if err := guest.InstallPackages(ctx, c.lab.Report, guest.Missing(san.TGTPackages)); err != nil {
		return err
	}
	return net.HoldSAN(ctx, true)
}

func (c *Cluster) makeSANGuest(ctx context.Context, s *san.SAN, net *network.Network) error {
	if s.HasGuest() {
		return nil
	}
	if err := guest.InstallPackages(ctx, c.lab.Report, guest.MissingPackages()); err != nil {
		return err
	}
	image, err := guest.GetImage(ctx, c.lab.Store)
	if err != nil {
		return err
	}
	tap, err := net.Tap(ctx, san.Machine)
	if err != nil {
		return err
	}
	return s.MakeGuest(ctx, image, tap)
}

func (c *Cluster) sanPlace(ctx context.Context) (san.Place, error) {
	net, err := c.network(ctx)
	if err != nil {
		return san.Place{}, err
	}
	return san.Place{Dir: c.paths.san(), NetNS: net.Path()}, nil
}

// SAN returns the cluster's SAN, or [san.ErrNotExist].
func (c *Cluster) SAN(ctx context.Context) (*san.SAN, error) {
	place, err := c.sanPlace(ctx)
	if err != nil {
		return nil, err
	}
	return san.Open(place)
}

// changeSAN runs f with the cluster's SAN while no other command changes the cluster.
func (c *Cluster) changeSAN(ctx context.Context, what string, f func(*san.SAN) error) error {
	if err := needRoot(); err != nil {
		return err
	}
	return c.change(func() error {
		s, err := c.SAN(ctx)
		if err != nil {
			return err
		}
		return c.step("SAN: "+what, func(progress.Step) error { return f(s) })
	})
}

// RemoveSAN ends the SAN and deletes all its logical units. Without a SAN it does nothing.
func (c *Cluster) RemoveSAN(ctx context.Context) error {
	err := c.changeSAN(ctx, "removing", func(s *san.SAN) error {
		net, err := c.network(ctx)
		if err != nil {
			return err
		}
		return errors.Join(s.Down(ctx), net.HoldSAN(ctx, false), net.Unplug(ctx, san.Machine))
	})
	if errors.Is(err, san.ErrNotExist) {
		return nil
	}
	return err
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

func (c *Cluster) sanStatus(ctx context.Context) (*SANStatus, error) {
	s, err := c.SAN(ctx)
	if errors.Is(err, san.ErrNotExist) || errors.Is(err, network.ErrNotExist) {
		return nil, nil //nolint:nilnil // a cluster need not have a SAN
	}
	if err != nil {
		return nil, err
	}
	return &SANStatus{
		Kind: s.Settings().Kind, Persist: s.Settings().Persist, Power: string(s.Power()), Latency: s.Latency(),
		Portal: fmt.Sprintf("%s:%d", network.SANAddress, san.Port), Target: san.Target, LUNs: s.LUNs(),
	}, nil
}

// StartSAN starts the target again after [Cluster.StopSAN].
func (c *Cluster) StartSAN(ctx context.Context) error {
	return c.changeSAN(ctx, "starting", func(s *san.SAN) error { return s.On(ctx) })
}

// StopSAN ends the target at once.
func (c *Cluster) StopSAN(ctx context.Context) error {
	return c.changeSAN(ctx, "ending", func(s *san.SAN) error { return s.Off(ctx) })
}

// RestartSAN ends the target at once and starts it again.
func (c *Cluster) RestartSAN(ctx context.Context) error {
	return c.changeSAN(ctx, "restarting", func(s *san.SAN) error { return s.Restart(ctx) })
}

// AddLUN adds an empty logical unit.
func (c *Cluster) AddLUN(ctx context.Context, size int64) (l san.LUN, err error) {
	err = c.changeSAN(ctx, "adding a logical unit", func(s *san.SAN) error {
		l, err = s.Add(ctx, size)
		return err
	})
	return l, err
}

// RemoveLUN takes a logical unit away and deletes it.
func (c *Cluster) RemoveLUN(ctx context.Context, number int) error {
	return c.changeSAN(ctx, "removing a logical unit", func(s *san.SAN) error { return s.Remove(ctx, number) })
}

// DelaySAN delays each answer of the target; 0 ends that.
func (c *Cluster) DelaySAN(ctx context.Context, d time.Duration) error {
	return c.changeSAN(ctx, "latency", func(s *san.SAN) error { return s.Delay(ctx, d) })
}
