// Package figures turns measurements into what docs/benchmarks shows: quantiles,
// ratios with their intervals, Markdown tables and stacked bars.
package figures
