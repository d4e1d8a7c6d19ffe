// Package release writes everything that a release of Berth consists of into one folder:
//
//	oci/                  images for each architecture, the chart and the other files, as a registry takes them
//	berth-VERSION.tgz     the chart
//	kubectl-berth_*.tar.gz the plugin for each platform, with licences
//	berth.yaml            the plugin as krew installs it
//	sbom/                 what is inside each of them, in the format CycloneDX
//	SHA256SUMS            checksums of all files
//
// The same programs, packages and chart give the same folder, byte by byte.
package release
