package main

import (
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// An API server that loses its power closes no connection, and each request on one waits for its own end. A connection on
// which nothing has come for quiet is asked whether it is alive, and given up after patience more, both in seconds: the
// next request finds another API server. Kubernetes' own 30 and 15 are too long: a guard whose lease nobody renews for
// 20 s stops the pods of its node.
const (
	quiet    = "4"
	patience = "4"
)

// clusterConfig finds the API server.
func clusterConfig(kubeconfig string) (*rest.Config, error) {
	// Kubernetes' libraries take both from the environment alone.
	for name, seconds := range map[string]string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS": quiet, "HTTP2_PING_TIMEOUT_SECONDS": patience} {
		if os.Getenv(name) != "" {
			continue // somebody has set it for this process
		}
		if err := os.Setenv(name, seconds); err != nil {
			return nil, err
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("finding the API server (outside a cluster give --kubeconfig): %w", err)
	}
	config.UserAgent = "berth/" + version
	return config, nil
}
