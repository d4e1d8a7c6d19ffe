// Package chart tests what the chart renders to. For each file of values in testdata there
// is a file with the objects that Helm makes of it; `make golden` writes these anew. The
// definitions and admission policies are left out: they are files of the chart themselves.
//
// The tests need Helm, and run with the build tag helm: `make test-release`.
package chart
