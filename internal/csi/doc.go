// Package csi is Berth's interface to Kubernetes: the Container Storage
// Interface over gRPC. It is the only package that knows CSI's messages.
//
// A server translates: request to use case, result to response, and in one
// place (status.go) error class to gRPC code. Each server is made with an interface,
// and the use cases behind it decide the result of a call.
//
// A retry must be safe after every answer. Some codes tell the sidecar "this is
// certainly not in progress". Berth returns these only for errors of which it is
// sure. Every other error, an unknown one included, is Unavailable, after which the
// sidecar repeats the call.
package csi
