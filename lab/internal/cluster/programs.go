package cluster

import (
	"context"
	"os"
	"path/filepath"

	"berth.dev/berth/lab/internal/artefact"
	"berth.dev/berth/lab/internal/build"
	"berth.dev/berth/lab/internal/release"
)

// programs are the directories with the cluster's Kubernetes programs. The state file
// records them, so that a restarted component runs the same program.
type programs struct {
	Kubernetes string `json:"kubernetes"` // the control plane, kubectl, kubelet and kube-proxy
	Etcd       string `json:"etcd"`
	CoreDNS    string `json:"coreDNS,omitempty"` // empty in a cluster that was made without names
}

// findPrograms builds the programs or takes them from a release, unless the
// cluster has some already.
func findPrograms(ctx context.Context, store *artefact.Store, st *state) (programs, error) {
	if p := st.get().Programs; p.exist() {
		return p, nil
	}
	p, err := choosePrograms(ctx, store, st.get().Settings)
	if err != nil {
		return programs{}, err
	}
	if p.CoreDNS, err = build.CoreDNS.Get(ctx, store); err != nil {
		return programs{}, err
	}
	return p, st.update(func(s *contents) { s.Programs = p })
}

// choosePrograms gets Kubernetes and etcd.
func choosePrograms(ctx context.Context, store *artefact.Store, settings Settings) (programs, error) {
	location := settings.Release
	if location == "" {
		kubernetes, err := build.KubernetesOf(settings.Kubernetes)
		if err != nil {
			return programs{}, err
		}
		dir, err := kubernetes.Get(ctx, store)
		return programs{Kubernetes: dir, Etcd: dir}, err
	}
	dir, err := release.Get(ctx, store, location)
	if err != nil {
		return programs{}, err
	}
	if _, err := os.Stat(filepath.Join(dir, release.Etcd)); err == nil {
		return programs{Kubernetes: dir, Etcd: dir}, nil
	}
	built, err := build.Kubernetes.Get(ctx, store)
	return programs{Kubernetes: dir, Etcd: built}, err
}

// exist reports whether the programs were found before and the cache was not
// cleared since.
func (p programs) exist() bool {
	dirs := []string{p.Kubernetes, p.Etcd}
	if p.CoreDNS != "" {
		dirs = append(dirs, p.CoreDNS)
	}
	for _, dir := range dirs {
		if _, err := os.Stat(dir); dir == "" || err != nil {
			return false
		}
	}
	return true
}
