package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/cli"
)

// versions is what the command prints.
type versions struct {
	Client string `json:"clientVersion"`
	// Operator is empty if it was not requested, or is unknown.
	Operator string `json:"operatorVersion,omitempty"`
}

func newVersion() *cobra.Command {
	var flags cli.ClusterFlags
	var clientOnly bool
	var output string
	command := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the plugin and the operator",
		Long: `Print the version of the plugin, and the version that the operator in the cluster last rolled out. The exit code is 1 if the latter is
unknown.`,
		Example: `  # The plugin's own, without a cluster
  kubectl machine version --client

  # Both, for a script
  kubectl machine version -o json`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if output != "" && output != "json" && output != "yaml" {
				return fmt.Errorf("the output format %q is not known; write -o json or -o yaml, or leave it out", output)
			}
			found := versions{Client: version}
			var unknown error
			if !clientOnly {
				if found.Operator, unknown = operatorVersion(command.Context(), &flags); unknown != nil {
					unknown = fmt.Errorf("%w; --client prints the plugin's version only", unknown)
				}
			}
			return errors.Join(found.print(command.OutOrStdout(), output), unknown)
		},
	}
	flags.Register(command, "")
	command.Flags().BoolVar(&clientOnly, "client", false, "Only the plugin's own; no cluster is contacted.")
	command.Flags().StringVarP(&output, "output", "o", "", "Format of the output: json, yaml, or nothing for people.")
	_ = command.RegisterFlagCompletionFunc("output",
		cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	return command
}

func (v versions) print(out io.Writer, format string) error {
	if format == "" {
		fmt.Fprintln(out, "Client Version:", v.Client)
		if v.Operator != "" {
			fmt.Fprintln(out, "Operator Version:", v.Operator)
		}
		return nil
	}
	content, err := json.MarshalIndent(v, "", "  ")
	if format == "yaml" {
		content, err = yaml.Marshal(v)
	} else {
		content = append(content, '\n')
	}
	if err == nil {
		_, err = out.Write(content)
	}
	return err
}

// operatorVersion reads the status of the operator, which is a ClusterOperator on OpenShift.
func operatorVersion(ctx context.Context, flags *cli.ClusterFlags) (string, error) {
	config, _, err := flags.Configuration()
	if err != nil {
		return "", err
	}
	live, err := client.New(config, client.Options{})
	if err != nil {
		return "", fmt.Errorf("reaching the API server at %s: %w", config.Host, err)
	}
	for _, kind := range []schema.GroupVersionKind{
		{Group: "config.openshift.io", Version: "v1", Kind: "ClusterOperator"},
		{Group: "machine-iac.io", Version: "v1alpha1", Kind: "MachineAPIOperator"},
	} {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kind)
		err := live.Get(ctx, client.ObjectKey{Name: "machine-api"}, object)
		switch {
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
			continue
		case err != nil:
			return "", fmt.Errorf("reading the operator's version: %w", err)
		}
		reported, _, _ := unstructured.NestedSlice(object.Object, "status", "versions")
		for _, one := range reported {
			if named, ok := one.(map[string]any); ok && named["name"] == "operator" {
				return fmt.Sprint(named["version"]), nil
			}
		}
	}
	return "", errors.New("no machine-api-operator in the cluster has reported a version")
}
