package controller

import (
	"net"
	"testing"
)

// listening is a listener that only has an address.
type listening struct {
	net.Listener
	address net.Addr
}

func (l listening) Addr() net.Addr { return l.address }

func TestTheExtenderIsNotServedToStrangers(t *testing.T) {
	on := func(ip string) net.Listener { return listening{address: &net.TCPAddr{IP: net.ParseIP(ip), Port: 1}} }
	tests := map[string]struct {
		extender Extender
		allowed  bool
	}{
		"plain HTTP on loopback":                                     {Extender{Listener: on("127.0.0.1")}, true},
		"plain HTTP on loopback over IPv6":                           {Extender{Listener: on("::1")}, true},
		"plain HTTP on every address":                                {Extender{Listener: on("0.0.0.0")}, false},
		"plain HTTP on the address of a pod":                         {Extender{Listener: on("10.0.0.7")}, false},
		"plain HTTP on a Unix socket":                                {Extender{Listener: listening{address: &net.UnixAddr{Name: "x"}}}, false},
		"a certificate without an authority for clients":             {Extender{Listener: on("0.0.0.0"), CertFile: "c", KeyFile: "k"}, false},
		"a certificate without an authority for clients on loopback": {Extender{Listener: on("127.0.0.1"), CertFile: "c", KeyFile: "k"}, false},
		"a certificate without a key":                                {Extender{Listener: on("127.0.0.1"), CertFile: "c"}, false},
		"a key without a certificate":                                {Extender{Listener: on("127.0.0.1"), KeyFile: "k"}, false},
		"an authority for clients without a certificate":             {Extender{Listener: on("127.0.0.1"), ClientCAFile: "ca"}, false},
		"an authority for clients and a certificate":                 {Extender{Listener: on("0.0.0.0"), CertFile: "c", KeyFile: "k", ClientCAFile: "ca"}, true},
	}
	for name, test := range tests {
		if err := test.extender.check(); (err == nil) != test.allowed {
			t.Errorf("%s: %v", name, err)
		}
	}
}
