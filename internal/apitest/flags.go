package apitest

import "sigs.k8s.io/controller-runtime/pkg/envtest"

// Option changes the API server of a package's tests.
type Option func(*envtest.APIServer)

// WithFlag gives the API server another flag.
func WithFlag(name, value string) Option {
	return func(s *envtest.APIServer) { s.Configure().Append(name, value) }
}
