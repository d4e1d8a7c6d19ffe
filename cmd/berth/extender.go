package main

import (
	"context"
	"fmt"
	"net"

	"github.com/spf13/pflag"

	"berth.dev/berth/internal/controller"
	"berth.dev/berth/internal/ledger"
)

// extenderFlags say how a stock scheduler is served.
type extenderFlags struct {
	address, certFile, keyFile, clientCAFile, clientName, strategy string
}

func (f *extenderFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.address, "extender-address", "", "address on which the scheduler extender is served while this process leads; empty means not at all")
	flags.StringVar(&f.certFile, "extender-cert-file", "", "the extender's certificate; without one the address must be a loopback address")
	flags.StringVar(&f.keyFile, "extender-key-file", "", "the key of the extender's certificate")
	flags.StringVar(&f.clientCAFile, "extender-client-ca-file", "", "certificates of those who sign the scheduler's; required with a certificate")
	flags.StringVar(&f.clientName, "extender-client-name", controller.SchedulerName, "common name in the scheduler's certificate; no other client is answered")
	flags.StringVar(&f.strategy, "extender-strategy", "spread", "which of several nodes is better: spread (more bytes stay free), spreadPercent (a larger share does) or binpack (a smaller share does)")
}

// open turns the flags into the extender that the controller serves, and opens its listener.
func (f *extenderFlags) open(ctx context.Context) (controller.Extender, error) {
	if f.address == "" {
		return controller.Extender{}, nil
	}
	e := controller.Extender{CertFile: f.certFile, KeyFile: f.keyFile, ClientCAFile: f.clientCAFile, ClientName: f.clientName}
	var known bool
	if e.Strategy, known = ledger.StrategyNamed(f.strategy); !known {
		return controller.Extender{}, fmt.Errorf("--extender-strategy is %q: it must be spread, spreadPercent or binpack", f.strategy)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.address)
	if err != nil {
		return controller.Extender{}, fmt.Errorf("opening --extender-address: %w", err)
	}
	e.Listener = listener
	return e, nil
}
