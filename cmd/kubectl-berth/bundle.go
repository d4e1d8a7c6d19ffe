package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/bundle"
	"berth.dev/berth/internal/doctor"
	"berth.dev/berth/internal/plain"
	"berth.dev/berth/internal/quarantine"
	"berth.dev/berth/internal/survey"
)

// logsOf opens the logs of a cluster.
func logsOf(t target) (bundle.LogReader, error) {
	config, _, err := configure(t)
	if err != nil {
		return nil, err
	}
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("reaching the cluster: %w", err)
	}
	return func(ctx context.Context, pod client.ObjectKey, container string, previous bool) (io.ReadCloser, error) {
		o := &corev1.PodLogOptions{Container: container, Previous: previous, Timestamps: true, TailLines: new(int64(20000)), LimitBytes: new(int64(bundle.MaxFile + 1))}
		return c.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, o).Stream(ctx)
	}, nil
}

// newBundleCommand collects what a person needs who looks at the cluster from afar.
func newBundleCommand(t *target, connect connector, logs func(target) (bundle.LogReader, error), now clock.PassiveClock) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "bundle",
		Short: "Collect objects, logs and reports in one archive, without secrets",
		Long: `Collect objects, logs and reports in one archive, without secrets.

The archive has Berth's objects, those of Kubernetes that belong to them, the logs
of Berth's programs, and the answers of status, nodes, pools, volumes, replicas,
orphans and doctor. Its manifest.json names the parts that could not be read.

Secrets, environments, commands and foreign annotations stay out, and so does what
looks like a credential in a text. Names of objects, nodes and images are in it:
look through it before you send it to others.`,
		Example: "  kubectl berth bundle\n  kubectl berth bundle --file trouble.tar.gz",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			reader, namespace, err := connect(*t)
			if err != nil {
				return err
			}
			read, err := logs(*t)
			if err != nil {
				return err
			}
			q := question{reader: reader, system: t.system, namespace: namespace, notes: cmd.ErrOrStderr()}
			at := now.Now().UTC()
			name := "berth-bundle-" + at.Format("20060102T150405Z")
			path := cmp.Or(file, name+".tar.gz")
			m, err := writeBundle(cmd.Context(), path, bundle.Options{
				Manifest: bundle.Manifest{Made: at, Version: version, Namespace: t.system},
				Folder:   name, Reader: reader, Logs: read, Reports: reports(q), Progress: cmd.ErrOrStderr(),
			})
			if err != nil {
				return err
			}
			for _, p := range m.Missing {
				if _, err := fmt.Fprintf(cmd.ErrOrStderr(), "missing: %s: %s\n", p.Path, plain.Line(p.Reason)); err != nil {
					return err
				}
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), path)
			return err
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "archive to write, which must not exist; empty means berth-bundle-TIME.tar.gz in the working directory")
	return cmd
}

// writeBundle writes a new file that its owner alone can read. It leaves no file behind if it fails.
func writeBundle(ctx context.Context, path string, o bundle.Options) (bundle.Manifest, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the user names the file
	if errors.Is(err, os.ErrExist) {
		return bundle.Manifest{}, fmt.Errorf("%s exists: name another file with --file", path)
	}
	if err != nil {
		return bundle.Manifest{}, fmt.Errorf("making the archive: %w", err)
	}
	m, err := bundle.Write(ctx, f, o)
	if err = errors.Join(err, f.Close()); err != nil {
		return m, errors.Join(fmt.Errorf("writing %s: %w", path, err), os.Remove(path))
	}
	return m, nil
}

// reports are the answers of the other commands.
func reports(q question) []bundle.Report {
	report := func(look func(ctx context.Context, c survey.Cluster) (any, error)) func(ctx context.Context) ([]byte, error) {
		return func(ctx context.Context) ([]byte, error) {
			found, err := gather(ctx, q)
			if err != nil {
				return nil, err
			}
			answer, err := look(ctx, survey.Cluster{Lists: found.Lists, Heartbeats: found.Heartbeats})
			if err != nil {
				return nil, err
			}
			return json.MarshalIndent(answer, "", "  ")
		}
	}
	var all []bundle.Report
	for _, v := range views {
		all = append(all, bundle.Report{Name: v.use + ".json", Make: report(func(ctx context.Context, c survey.Cluster) (any, error) {
			answer, _, err := v.look(ctx, q, c)
			return answer, err
		})})
	}
	return append(all,
		bundle.Report{Name: "doctor.json", Make: report(func(ctx context.Context, c survey.Cluster) (any, error) {
			return examined(ctx, q, doctor.Cluster{Lists: c.Lists, Heartbeats: c.Heartbeats, System: q.system})
		})},
		bundle.Report{Name: "replicas.json", Make: report(func(_ context.Context, c survey.Cluster) (any, error) {
			return c.ReplicaRows(func(*v1alpha1.Volume) bool { return true }), nil
		})},
		bundle.Report{Name: "orphans.json", Make: report(func(ctx context.Context, c survey.Cluster) (any, error) {
			err := addAllSnapshots(ctx, q, c.Lists)
			return quarantine.Find(c.StorageNodes, c.Volumes, c.Snapshots), err
		})},
		bundle.Report{Name: "version.json", Make: func(ctx context.Context) ([]byte, error) {
			found, err := programs(ctx, q)
			if err != nil {
				return nil, err
			}
			v := versions{Plugin: version}
			v.compare(found)
			return json.MarshalIndent(v, "", "  ")
		}},
	)
}
