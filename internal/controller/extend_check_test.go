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
		"in the clear on loopback":        {Extender{Listener: on("127.0.0.1")}, true},
		"in the clear on loopback, IPv6":  {Extender{Listener: on("::1")}, true},
		"in the clear on every address":   {Extender{Listener: on("0.0.0.0")}, false},
		"in the clear on a pod's address": {Extender{Listener: on("10.0.0.7")}, false},
		"on something that is no TCP":     {Extender{Listener: listening{address: &net.UnixAddr{Name: "x"}}}, false},
		"with a certificate alone":        {Extender{Listener: on("0.0.0.0"), CertFile: "c", KeyFile: "k"}, false},
		"so on loopback":                  {Extender{Listener: on("127.0.0.1"), CertFile: "c", KeyFile: "k"}, false},
		"with a certificate and no key":   {Extender{Listener: on("127.0.0.1"), CertFile: "c"}, false},
		"with a key and no certificate":   {Extender{Listener: on("127.0.0.1"), KeyFile: "k"}, false},
		"with clients and no certificate": {Extender{Listener: on("127.0.0.1"), ClientCAFile: "ca"}, false},
		"with clients and a certificate":  {Extender{Listener: on("0.0.0.0"), CertFile: "c", KeyFile: "k", ClientCAFile: "ca"}, true},
	}
	for name, test := range tests {
		if err := test.extender.check(); (err == nil) != test.allowed {
			t.Errorf("%s: %v", name, err)
		}
	}
}
