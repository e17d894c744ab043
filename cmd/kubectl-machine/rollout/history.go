package rollout

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
)

type history struct {
	targets
	printing
	revision int64
}

func newHistory() *cobra.Command {
	var h history
	command := &cobra.Command{
		Use:   "history (TYPE NAME | TYPE/NAME)",
		Short: "Show the revisions of a MachineDeployment",
		Long: `Show the revisions of a MachineDeployment, which its MachineSets keep, and why each was made: the annotation
kubernetes.io/change-cause.`,
		Example: `  # All revisions
  kubectl machine rollout history machinedeployment/workers

  # The template of one
  kubectl machine rollout history machinedeployment/workers --revision=3`,
		RunE: h.run,
	}
	h.targets.register(command)
	h.printing.register(command)
	command.Flags().Int64Var(&h.revision, "revision", 0, "Show the template of this revision.")
	_ = command.RegisterFlagCompletionFunc("revision", cobra.NoFileCompletions)
	return command
}

func (h *history) run(command *cobra.Command, arguments []string) error {
	if h.revision < 0 {
		return fmt.Errorf("revision must be a positive integer: %d", h.revision)
	}
	live, found, err := h.find(command, arguments, false)
	if err != nil {
		return err
	}
	for _, d := range deployments(found) {
		sets, err := revisions(command.Context(), live, d)
		if err != nil {
			return err
		}
		if h.revision > 0 {
			if sets[h.revision] == nil {
				return errors.New("unable to find the specified revision")
			}
			sets = map[int64]*machinev1beta1.MachineSet{h.revision: sets[h.revision]}
		}
		if h.flags.OutputFlagSpecified() {
			err = h.printSets(command, sets)
		} else {
			err = h.printText(command, d, sets)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// printSets prints the MachineSets as -o says.
func (h *history) printSets(command *cobra.Command, sets map[int64]*machinev1beta1.MachineSet) error {
	printer, err := h.flags.ToPrinter()
	if err != nil {
		return err
	}
	if names, ok := printer.(*printers.NamePrinter); ok {
		names.Operation = ""
	}
	for _, number := range sorted(sets) {
		sets[number].SetGroupVersionKind(machinev1beta1.GroupVersion.WithKind("MachineSet"))
		if err := printer.PrintObj(sets[number], command.OutOrStdout()); err != nil {
			return err
		}
	}
	return nil
}

func (h *history) printText(command *cobra.Command, d *v1beta1.MachineDeployment,
	sets map[int64]*machinev1beta1.MachineSet) error {
	if h.revision > 0 {
		text, err := templateText(sets[h.revision])
		if err != nil {
			return err
		}
		return h.print(command, d, fmt.Sprintf("with revision #%d\n%s", h.revision, text))
	}
	if len(sets) == 0 {
		return h.print(command, d, "\nNo rollout history found.")
	}
	var text bytes.Buffer
	table := tabwriter.NewWriter(&text, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "REVISION\tCHANGE-CAUSE")
	for _, number := range sorted(sets) {
		cause := sets[number].Annotations[v1beta1.ChangeCauseAnnotation]
		if cause == "" {
			cause = "<none>"
		}
		fmt.Fprintf(table, "%d\t%s\n", number, cause)
	}
	table.Flush() //nolint:errcheck // writes to a buffer cannot fail
	return h.print(command, d, "\n"+text.String())
}

// templateText returns the template of a revision for people, with the cause of the change among its annotations.
func templateText(set *machinev1beta1.MachineSet) (string, error) {
	template := set.Spec.Template.DeepCopy()
	if cause := set.Annotations[v1beta1.ChangeCauseAnnotation]; cause != "" {
		template.Annotations = maps.Clone(template.Annotations)
		if template.Annotations == nil {
			template.Annotations = map[string]string{}
		}
		template.Annotations[v1beta1.ChangeCauseAnnotation] = cause
	}
	text, err := yaml.Marshal(template)
	if err != nil {
		return "", fmt.Errorf("printing the template of MachineSet %s: %w", set.Name, err)
	}
	return "Machine Template:\n  " + strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n  ") + "\n", nil
}

func sorted(sets map[int64]*machinev1beta1.MachineSet) []int64 { return slices.Sorted(maps.Keys(sets)) }
