package cluster

import "testing"

func TestClustersOfOneNameInTwoDirectoriesHaveTwoNetworks(t *testing.T) {
	network := func(root string) string {
		p, err := newPaths(root, "default")
		if err != nil {
			t.Fatal(err)
		}
		return p.network()
	}
	if got := network(DefaultRoot); got != "default" {
		t.Errorf("in the default directory the network is %q", got)
	}
	a, b := network("/tmp/a"), network("/tmp/b")
	if a == b || a == "default" || b == "default" {
		t.Errorf("the networks are %q and %q", a, b)
	}
	if again := network("/tmp/x/../a"); again != a {
		t.Errorf("the same directory gives %q and %q", a, again)
	}
}
