// Package figures turns measurements into the figures of docs/benchmarks: quantiles,
// ratios with their intervals, Markdown tables and stacked bars.
package figures
