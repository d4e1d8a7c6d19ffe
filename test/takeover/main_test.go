//go:build platform

package takeover

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"berth.dev/berth/internal/apitest"
)

var (
	roundsToPlay = flag.Int("rounds", 2, "rounds of failover")
	seed         = flag.Uint64("seed", 1, "from which the dice of the rounds are thrown")
	results      = flag.String("results", os.DevNull, "file to which each round appends a line")
	requests     = flag.String("requests", os.DevNull, "file to which counts of requests at rest are appended")
	berth        = flag.String("berth", "", "path of the program berth")
	writer       = flag.String("writer", "", "path of the program of test/writes/writer")
	site         = flag.String("site", "/var/tmp/berth-takeover", "directory of the disks, the nodes and their logs; what it has is removed first")
	cloud        = flag.Bool("cloud", false, "the disk is one of a simulated cloud, which a controller attaches in 13 s")
	logLevel     = flag.String("berth-log", "info", "how much the processes log")
)

// The network of the nodes. The test has a network namespace of its own, so nothing else has these addresses.
const (
	bridge     = "berth0"
	serverAt   = "10.88.0.1"
	serverPort = "6443"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "preparing this machine:", err)
		os.Exit(1)
	}
	apitest.Main(m, func(s *envtest.APIServer) {
		s.SecureServing.Address, s.SecureServing.Port = serverAt, serverPort
		// At its end the server waits for requests of lost nodes, as long as a request may take.
		s.Configure().Set("request-timeout", "20s")
	})
}
