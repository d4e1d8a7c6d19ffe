// Package pki makes the certificates and kubeconfigs of a throw-away cluster.
//
// All files are in one directory, and existing files are kept, so that a cluster
// that is started again keeps its identity. One authority signs for servers,
// clients and the aggregation proxy; that is fit for a test cluster only.
package pki
