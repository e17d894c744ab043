package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/cli"
	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
	"github.com/machine-iac/machine-iac-operator/internal/modulelist"
)

func newModules() *cobra.Command {
	var i cli.Inspection
	command := &cobra.Command{
		Use:   "modules",
		Short: "Show the modules of the manager, and which of their providers it lacks",
		Long: `Show the modules of the manager, the providers that they need, and whether the manager has them. It writes that list
when it starts to lead, and again within a minute after a provider was added. Machines of a module whose provider is
Missing wait.`,
		Example: `  # What Machines could use now
  kubectl machine modules -n openshift-machine-api`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := i.ValidateOutput(); err != nil {
				return err
			}
			live, namespace, err := i.Connect()
			if err != nil {
				return err
			}
			found, err := modulelist.Read(command.Context(), live, namespace)
			if apierrors.IsNotFound(err) {
				return fmt.Errorf("%w: check that a manager leads in this namespace and may write that ConfigMap, or name "+
					"another namespace with -n", err)
			} else if err != nil {
				return err
			}
			if err := i.Printer.Print(command.OutOrStdout(), &moduleList{Items: found}); err != nil {
				return err
			}
			if slices.ContainsFunc(found, func(p modulelist.Provider) bool { return p.Status == modulelist.Missing }) {
				fmt.Fprintln(command.ErrOrStderr(),
					"note: docs/modules.md#get-the-provider shows how to add a provider that is Missing")
			}
			return nil
		},
	}
	i.Register(command)
	i.RegisterOutput(command)
	return command
}

// moduleList is the result of `kubectl machine modules`.
type moduleList struct {
	Items []modulelist.Provider `json:"items"`
}

// Objects implements print.Report.
func (l *moduleList) Objects() []metav1.PartialObjectMetadata {
	var objects []metav1.PartialObjectMetadata
	for _, one := range l.Items {
		objects = append(objects, print.Reference(schema.GroupVersionKind{Version: "v1", Kind: "Module"}, "", one.Module))
	}
	return objects
}

// WithNamespaces implements print.Table.
func (l *moduleList) WithNamespaces() bool { return false }

// Rows implements print.Table.
func (l *moduleList) Rows(bool) [][]string {
	rows := [][]string{{"MODULE", "ENGINE", "PROVIDER", "VERSION", "STATUS"}}
	for _, one := range l.Items {
		rows = append(rows, []string{one.Module, one.Engine, cmp.Or(one.Provider, "-"), cmp.Or(one.Version, "-"),
			cmp.Or(string(one.Status), "-")})
	}
	return rows
}
