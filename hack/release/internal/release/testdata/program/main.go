// Command program stands in for Berth's programs: it contains one module of others.
package main

import "golang.org/x/mod/semver"

func main() { _ = semver.IsValid("") }
