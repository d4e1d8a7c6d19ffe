package main

import (
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// An API server that loses its power closes no connection, and each request on one waits until the caller gives up. So a
// client that has read nothing for readIdleTimeout sends a ping, and closes the connection if no answer comes within
// pingTimeout, both in seconds. The client then sends the next request on a new connection, which may lead to another API
// server. Kubernetes' own 30 and 15 are too long: a guard that has not renewed its lease for 20 s stops its node's pods.
const (
	readIdleTimeout = "4"
	pingTimeout     = "4"
)

// clusterConfig finds the API server.
func clusterConfig(kubeconfig string) (*rest.Config, error) {
	// Kubernetes' libraries take both from the environment alone.
	for name, seconds := range map[string]string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS": readIdleTimeout, "HTTP2_PING_TIMEOUT_SECONDS": pingTimeout} {
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
