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
	// Strategy is Spread (the default: more stays free where there is more free)
	// or Binpack.
	Strategy string `json:"strategy"`
	// Namespace that Berth is installed in; its agents' Leases are there.
	Namespace string `json:"namespace"`
}

const defaultNamespace = "berth-system"

var strategies = map[string]ledger.Strategy{"": ledger.Spread, "Spread": ledger.Spread, "Binpack": ledger.Binpack}

// decode reads the arguments. Unknown ones are refused: a mistyped one would
// otherwise be a default that nobody chose.
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
	if _, known := strategies[args.Strategy]; !known {
		return Args{}, fmt.Errorf("reading the arguments of %s: strategy %q is neither Spread nor Binpack", plugin.Name, args.Strategy)
	}
	return args, nil
}
