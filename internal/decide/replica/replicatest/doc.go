// Package replicatest makes Volumes, entries and records for tests about replicas.
package replicatest
