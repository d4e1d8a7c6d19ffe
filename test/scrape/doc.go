// Package scrape sums the metrics that a process of a bench exposes.
package scrape
