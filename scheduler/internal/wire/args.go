package wire

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/scheduler/internal/plugin"
)

// Args are the plugin's arguments in the scheduler's configuration.
type Args struct {
	// Strategy is the name of one of the ledger's; empty is the default.
	Strategy string `json:"strategy"`
	// Namespace that Berth is installed in; its agents' Leases are there.
	Namespace string `json:"namespace"`
}

const defaultNamespace = "berth-system"

// decode reads the arguments. Unknown ones are refused: a mistyped one would
// otherwise silently give the default.
func decode(arguments runtime.Object) (Args, error) {
	var args Args
	switch given := arguments.(type) {
	case nil:
	case *runtime.Unknown:
		if err := yaml.UnmarshalStrict(given.Raw, &args); err != nil {
			return Args{}, fmt.Errorf("reading the arguments of %s: %w", plugin.Name, err)
		}
	default:
		return Args{}, fmt.Errorf("reading the arguments of %s: they are a %T", plugin.Name, arguments)
	}
	if args.Namespace == "" {
		args.Namespace = defaultNamespace
	}
	if _, known := ledger.StrategyNamed(args.Strategy); !known {
		return Args{}, fmt.Errorf("reading the arguments of %s: strategy %q is none of Spread, SpreadPercent and Binpack", plugin.Name, args.Strategy)
	}
	return args, nil
}
