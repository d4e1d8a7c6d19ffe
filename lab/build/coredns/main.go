// Command coredns is the DNS server of a cluster, with the plugins that the lab's configuration
// names. The upstream program has forty more, with the clients of three clouds, and takes several
// times as long to build.
package main

import (
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/template"
)

func main() { coremain.Run() }
