// Package figures turns measurements into what docs/benchmarks shows: quantiles,
// Markdown tables and stacked bars.
package figures
