package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/plain"
)

// target says which cluster is asked, in kubectl's own terms.
type target struct {
	kubeconfig, context, namespace string
	// system is the namespace that Berth is installed in.
	system string
}

// connector opens a cluster; it also returns the default namespace.
type connector func(target) (reader client.Reader, namespace string, err error)

func newRootCommand(connect connector) *cobra.Command {
	var t target
	root := &cobra.Command{
		Use:           "kubectl-berth",
		Short:         "Ask Berth about pods and volumes",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl berth"},
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) { showPlainly(cmd) }
	flags := root.PersistentFlags()
	flags.StringVar(&t.kubeconfig, "kubeconfig", "", "path of the kubeconfig; empty means kubectl's default")
	flags.StringVar(&t.context, "context", "", "context of the kubeconfig; empty means the current one")
	flags.StringVarP(&t.namespace, "namespace", "n", "", "namespace of the pod or claim; empty means the context's")
	flags.StringVar(&t.system, "berth-namespace", "berth-system", "namespace that Berth is installed in")
	root.AddCommand(viewCommands(&t, connect)...)
	root.AddCommand(newExplainCommand(&t, connect), newVersionCommand(&t, connect), newDoctorCommand(&t, connect, pause))
	root.AddCommand(newReplicasCommand(&t, connect, clock.RealClock{}))
	root.AddCommand(newBundleCommand(&t, connect, logsOf, clock.RealClock{}))
	root.AddCommand(orphanCommands(&t, open)...)
	root.AddCommand(moveCommands(&t, open)...)
	return root
}

// showPlainly keeps what objects say from giving orders to the terminal. In documents it is escaped: see plain.JSON.
func showPlainly(cmd *cobra.Command) {
	cmd.SetErr(plain.Writer{To: cmd.ErrOrStderr()})
	if form := cmd.Flags().Lookup("output"); form == nil || form.Value.String() != asJSON && form.Value.String() != asYAML {
		cmd.SetOut(plain.Writer{To: cmd.OutOrStdout()})
	}
}

// connect opens the cluster of a kubeconfig to read it.
func connect(t target) (client.Reader, string, error) { return open(t) }

// configure returns the way to the cluster of a kubeconfig, and the default namespace.
func configure(t target) (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = t.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: t.context}
	overrides.Context.Namespace = t.namespace
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("finding the cluster: %w", err)
	}
	config.QPS = -1
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("finding the namespace: %w", err)
	}
	return config, namespace, nil
}

// open opens the cluster of a kubeconfig, with the objects of all drivers: they share its pools.
func open(t target) (client.Client, string, error) {
	ctrl.SetLogger(logr.Discard())
	config, namespace, err := configure(t)
	if err != nil {
		return nil, "", err
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, "", err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, "", fmt.Errorf("reaching the cluster: %w", err)
	}
	return c, namespace, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme))
}

// newExplainCommand says why a pod or a claim is pending.
func newExplainCommand(t *target, connect connector) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Say on which nodes a pod's volumes fit, and why not on the others",
		Long: `Say on which nodes a pod's volumes fit, and why not on the others.

The figures are worked out from the cluster's objects, as the schedulers do it.
What a scheduler holds at this moment for other pods is not among them.
Of a shared disk the answer says what it waits for, and which nodes have it.`,
	}
	cmd.AddCommand(
		newSubjectCommand("pod", "Explain a pod", explainPod, t, connect),
		newSubjectCommand("pvc", "Explain a claim, as for a pod that uses it alone", explainClaim, t, connect),
	)
	return cmd
}

func newSubjectCommand(use, short string, run explainer, t *target, connect connector) *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use: use + " NAME", Short: short, Args: cobra.ExactArgs(1),
		Example: fmt.Sprintf("  kubectl berth explain %s web -n shop\n  kubectl berth explain %s web -n shop -o json", use, use),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			reader, namespace, err := connect(*t)
			if err != nil {
				return err
			}
			q := question{reader: reader, system: t.system, namespace: namespace, name: args[0], notes: cmd.ErrOrStderr()}
			answer, err := run(cmd.Context(), q)
			if err != nil {
				return err
			}
			return o.write(cmd.OutOrStdout(), answer.document(), func(to io.Writer, _ bool) error { return answer.write(to) })
		},
	}
	o.flag(cmd)
	cmd.ValidArgsFunction = completeNames(use, t, connect)
	return cmd
}

// question names the pod or the claim to explain, and the cluster that has it.
type question struct {
	reader                  client.Reader
	system, namespace, name string
	// live: what the answer is for cannot be taken back, so that no old state will do.
	live bool
	// notes receives messages about objects that could not be read.
	notes io.Writer
}
