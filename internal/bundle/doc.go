// Package bundle collects what a person needs who looks at a cluster's troubles from afar: Berth's
// objects, those of Kubernetes that belong to them, logs and reports, in one archive with a manifest.
//
// No secret goes into it. Secrets are never read. Of other objects the archive has the fields that
// are known to be harmless, and of pods little more than their names, images and claims. Texts,
// such as logs and messages, lose whatever looks like a credential.
//
// A part that cannot be read is named in the manifest, and the others are collected all the same.
package bundle
