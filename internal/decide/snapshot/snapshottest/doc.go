// Package snapshottest makes Snapshots, entries and records for tests about snapshots.
package snapshottest
