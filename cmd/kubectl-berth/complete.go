package main

import (
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/internal/quarantine"
)

// completeNames completes the name of a pod or a claim in the namespace. A cluster that does not
// answer completes nothing.
func completeNames(kind string, t *target, connect connector) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		reader, namespace, err := connect(*t)
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		switch in := client.InNamespace(namespace); kind {
		case "pod":
			var pods corev1.PodList
			if err := reader.List(cmd.Context(), &pods, in); err == nil {
				for i := range pods.Items {
					names = append(names, pods.Items[i].Name)
				}
			}
		case "pvc":
			var claims corev1.PersistentVolumeClaimList
			if err := reader.List(cmd.Context(), &claims, in); err == nil {
				for i := range claims.Items {
					names = append(names, claims.Items[i].Name)
				}
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeOrphans completes the node and then the name of data that no object accounts for.
func completeOrphans(t *target, open opener) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		c, _, err := open(*t)
		if err != nil || len(args) > 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found, err := quarantine.List(cmd.Context(), c)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var words []string
		for _, o := range found {
			switch {
			case o.Missing != quarantine.MissingObject:
			case len(args) == 0:
				words = append(words, o.Node)
			case o.Node == args[0]:
				words = append(words, o.Name)
			}
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}
