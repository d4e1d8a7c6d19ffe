// Package chart turns the directory of a Helm chart into what is released: an archive whose
// values name the images of the release, and an artefact of registries that Helm can install.
package chart
