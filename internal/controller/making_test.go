package controller_test

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/internal/controller/controllertest"
)

// making is closed once a process with the option has made an object of that name.
func making(name string) (made <-chan struct{}, told controllertest.Option) {
	c := make(chan struct{})
	end := sync.OnceFunc(func() { close(c) })
	return c, controllertest.WithMade(func(o client.Object) {
		if o.GetName() == name {
			end()
		}
	})
}
