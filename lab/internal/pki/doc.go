// Package pki makes the certificates and kubeconfigs of a throw-away cluster.
//
// Everything lives in one directory and what exists is kept, so that a cluster
// that is started again keeps its identity. One authority signs for servers,
// clients and the aggregation proxy; that is fit for a test cluster and for
// nothing else.
package pki
