package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"regexp"
)

// DefaultRoot is where the state of all clusters is kept.
const DefaultRoot = "/var/lib/berth-lab"

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?$`)

// paths are the files of one cluster.
type paths struct{ root, name string }

func newPaths(root, name string) (paths, error) {
	if !validName.MatchString(name) {
		return paths{}, fmt.Errorf("cluster name %q: use up to 22 lower-case letters, digits and dashes", name)
	}
	root, err := filepath.Abs(root)
	return paths{root: root, name: name}, err
}

// network returns the name of the cluster's network. Network names belong to the machine, not
// to a state directory: two clusters of one name in two directories have two networks.
func (p paths) network() string {
	if p.root == DefaultRoot {
		return p.name
	}
	sum := sha256.Sum256([]byte(p.root))
	return p.name + "-" + hex.EncodeToString(sum[:4])
}

// cgroup returns the name of a node's cgroup. It contains the network's name: no two
// clusters of a machine share either.
func (p paths) cgroup(node string) string { return "/berth-lab-" + p.network() + "/" + node }

func (p paths) lock() string         { return filepath.Join(p.root, p.name+".lock") }
func (p paths) dir() string          { return filepath.Join(p.root, p.name) }
func (p paths) state() string        { return filepath.Join(p.dir(), "cluster.json") }
func (p paths) certificates() string { return filepath.Join(p.dir(), "pki") }
func (p paths) controlPlane() string { return filepath.Join(p.dir(), "controlplane") }
func (p paths) kubeconfig() string   { return filepath.Join(p.dir(), "kubeconfig") }
func (p paths) node(n string) string { return filepath.Join(p.dir(), "nodes", n) }
func (p paths) san() string          { return filepath.Join(p.dir(), "san") }
func (p paths) shared(disk string) string {
	return filepath.Join(p.dir(), "shared", disk+".raw")
}
func (p paths) images() string       { return filepath.Join(p.dir(), "images.img") }
func (p paths) imagesLog() string    { return filepath.Join(p.dir(), "log", "images.log") }
func (p paths) forwarderLog() string { return filepath.Join(p.dir(), "log", "forwarder.log") }
