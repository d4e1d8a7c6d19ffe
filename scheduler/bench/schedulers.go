package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"time"

	sigsyaml "sigs.k8s.io/yaml"

	"berth.dev/berth/scheduler/internal/controlplane"
	"berth.dev/berth/test/scrape"
)

// profile is a way to configure the scheduler.
type profile string

const (
	plugin   profile = "plugin"   // as the chart has it
	stock    profile = "stock"    // kube-scheduler's own
	extended profile = "extender" // the same, with the extender
)

// schedulerName that all profiles bear.
const schedulerName = "berth-scheduler"

// configuration of a scheduler. With batching, the default constraints on the
// spread of pods are off, which never let pods be treated alike.
func configuration(chart string, p profile, batching bool, extender string) (string, error) {
	content := map[string]any{
		"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
		"profiles": []any{map[string]any{"schedulerName": schedulerName}},
	}
	if p == plugin {
		content = map[string]any{}
		if err := sigsyaml.Unmarshal([]byte(chart), &content); err != nil {
			return "", fmt.Errorf("reading the chart's configuration: %w", err)
		}
	}
	if p == extended {
		content["extenders"] = []any{map[string]any{
			"urlPrefix": extender, "filterVerb": "predicate", "prioritizeVerb": "prioritize", "weight": 1, "nodeCacheCapable": false, "httpTimeout": "60s",
		}}
	}
	if batching {
		profiles, _ := content["profiles"].([]any)
		if len(profiles) != 1 {
			return "", fmt.Errorf("the configuration has %d profiles, not one", len(profiles))
		}
		only, _ := profiles[0].(map[string]any)
		configs, _ := only["pluginConfig"].([]any)
		only["pluginConfig"] = append(configs, map[string]any{"name": "PodTopologySpread", "args": map[string]any{"defaultingType": "List"}})
	}
	text, err := sigsyaml.Marshal(content)
	return string(text), err
}

// scheduler is one that runs.
type scheduler struct {
	*controlplane.Process
	url    string
	client *http.Client
}

// startScheduler starts a scheduler and waits until it has seen the cluster.
func (s *server) startScheduler(ctx context.Context, configuration string) (*scheduler, error) {
	path, err := controlplane.Connect(s.programs.Dir, configuration, s.programs.Kubeconfig)
	if err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	process, err := s.programs.Scheduler(path, "--bind-address=127.0.0.1", "--secure-port="+port, "--cert-dir="+filepath.Join(s.programs.Dir, "certificates"),
		"--authorization-always-allow-paths=/readyz,/metrics,/debug/pprof/*")
	if err != nil {
		return nil, err
	}
	c := &scheduler{Process: process, url: "https://127.0.0.1:" + port, client: &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // it signs its own certificate, and listens on loopback
	}}}
	if err := c.ready(ctx); err != nil {
		c.Kill()
		return nil, fmt.Errorf("waiting for the scheduler: %w\n%s", err, c.Tail())
	}
	return c, nil
}

func freePort(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("looking for a free port: %w", err)
	}
	defer func() { _ = listener.Close() }()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return port, err
}

func (c *scheduler) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := c.get(ctx, "/readyz")
		if err == nil {
			return nil
		}
		if c.Ended() {
			return errors.New("it ended at its start")
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// quiet waits until the scheduler uses next to nothing of the processors.
func (c *scheduler) quiet(ctx context.Context) error {
	const look, little = time.Second / 2, 2 * tick
	for {
		before, err := processorTime(c.ID())
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the scheduler to have nothing to do: %w", context.Cause(ctx))
		case <-time.After(look):
		}
		if now, err := processorTime(c.ID()); err != nil || now-before <= little {
			return err
		}
	}
}

func (c *scheduler) get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := c.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s says %s: %s", path, response.Status, body)
	}
	return body, err
}

func (c *scheduler) metrics(ctx context.Context) (scrape.Families, error) {
	raw, err := c.get(ctx, "/metrics")
	if err != nil {
		return nil, fmt.Errorf("reading the scheduler's metrics: %w", err)
	}
	return scrape.Parse(raw)
}
