// Package test goes through the life of a cluster with the lab program, as a
// person would. It needs root and takes minutes, so it stands behind the build tag lab.
package test
