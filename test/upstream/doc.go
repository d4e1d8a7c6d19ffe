// Command upstream runs Kubernetes' own storage suite, the part for external drivers of CSI, on pools of
// Berth's, and writes docs/upstream.md.
//
// Usage, from the repository's root, on a lab with Berth:
//
//	go run ./test/upstream [-procs N] [-focus REGEXP] POOLS
//
// POOLS names a row of the table variants: which pools are made, and the file below drivers that says what the
// driver can do with them. The suite chooses its specs by that file. What it chooses is run, but for the specs
// of skipped.txt, which has the reason of each.
//
// The suite and the program of its pods are built by the lab (module upstream), for the Kubernetes that the lab
// runs. Its pods have images that the command makes: the lab has no registry.
package main
