package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"berth.dev/berth/lab/internal/build"
)

// kubernetesMinor names the environment variable with the minor version of Kubernetes that is built.
const kubernetesMinor = "BERTH_LAB_KUBERNETES"

func assetsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "assets",
		Short: "Print a directory with etcd, kube-apiserver and kubectl, built if need be",
		Long: "Print a directory with etcd, kube-apiserver and kubectl, for KUBEBUILDER_ASSETS of controller-runtime's envtest. " +
			"They are of the minor version of Kubernetes in " + kubernetesMinor + ", or of the newest.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := a.store()
			if err != nil {
				return err
			}
			kubernetes, err := build.KubernetesOf(os.Getenv(kubernetesMinor))
			if err != nil {
				return err
			}
			dir, err := kubernetes.Get(cmd.Context(), store)
			return printLine(cmd.OutOrStdout(), dir, err)
		},
	}
}

func binaryCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "binary NAME",
		Short: "Print the path of a program the lab builds, built if need be",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := a.store()
			if err != nil {
				return err
			}
			path, err := build.Program(cmd.Context(), store, args[0])
			return printLine(cmd.OutOrStdout(), path, err)
		},
	}
}

func printLine(w io.Writer, line string, err error) error {
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, line)
	return err
}
