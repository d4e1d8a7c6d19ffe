// Package userland makes the root filesystem of images that need Debian's
// storage tools: the packages and their dependencies, unpacked, without parts that
// a container does not need (documentation, translations, the package manager,
// interpreters). It needs no root and runs no script of a package.
package userland
