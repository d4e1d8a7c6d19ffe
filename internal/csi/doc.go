// Package csi is Berth's face towards Kubernetes: the Container Storage
// Interface over gRPC. It is the only package that knows CSI's messages.
//
// A server translates: request to use case, result to response, and in one
// place (status.go) error class to gRPC code. What a call does is decided
// behind the interfaces that the servers are made with.
//
// A retry must be safe after every answer. So a code that tells the sidecar
// "this is certainly not in progress" is given only for errors that are known to
// be so; everything else, an unknown error included, is Unavailable, after which
// the same call comes again.
package csi
