package ownership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/cli"
	"github.com/machine-iac/machine-iac-operator/internal/inspect"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
)

// adoptInterval is how often adopt polls the manager's report.
const adoptInterval = 500 * time.Millisecond

// differsCode is the exit code if an adoption would change or ignore a difference, or is refused.
const differsCode cli.ExitCode = 2

// adoptFlags are those of adopt.
type adoptFlags struct {
	cli.Inspection
	plan    bool
	timeout time.Duration
	from    stateSource
}

// NewAdopt returns the command.
func NewAdopt() *cobra.Command {
	var f adoptFlags
	command := &cobra.Command{
		Use:   "adopt [MACHINE...]",
		Short: "Adopt instances that something else than the operator has made",
		Long: `Adopt the instances of Machines that another actuator or plain Terraform has made. The manager finds each instance by
its provider ID, by the annotation machine-iac.io/adopt-id, or by the Machine's name. It imports what the Machine's
module would have made, and changes it in place at most. With --plan it only plans, and shows what differs. Without
names, it takes all Machines of the namespace that are neither adopted nor being deleted, and lists those without a
known instance. A named Machine that is being deleted is adopted, and then destroyed.

The command sets the annotation machine-iac.io/adoption of each Machine and waits for the manager. You need the right to
"adopt" machines.machine.openshift.io, and the manager another --adoption than Never. With --from-state, the instance is found by its ID in a
Terraform state; remove it from that state first, as the command says, so that it never has two owners.

Exit codes: 0 where all are adopted, or would be as they are; 1 for an error; 2 where something differs or is refused.`,
		Example: `  # What would be imported, and what differs; nothing is changed
  kubectl machine adopt --plan -n openshift-machine-api

  # Adopt the Machines of a MachineSet
  kubectl machine adopt machineset/workers

  # Take an instance over from a Terraform state
  kubectl machine adopt --from-state terraform.tfstate --address 'aws_instance.worker[3]' workers-x7k2p`,
		ValidArgsFunction: f.Complete(cli.NamesOf("Machine")),
		RunE: func(command *cobra.Command, names []string) error {
			if err := f.from.validate(names); err != nil {
				return err
			}
			return f.run(command, names)
		},
	}
	f.Register(command)
	command.Flags().StringVarP(&f.Labels, "selector", "l", "",
		"Label selector, such as -l key1=value1,key2!=value2. Not together with names.")
	_ = command.RegisterFlagCompletionFunc("selector", cobra.NoFileCompletions)
	f.RegisterOutput(command)
	f.from.register(command)
	command.Flags().BoolVar(&f.plan, "plan", false, "Only show what the adoption would do.")
	command.Flags().DurationVar(&f.timeout, "timeout", 10*time.Minute, "How long to wait for the manager.")
	_ = command.RegisterFlagCompletionFunc("timeout", cobra.NoFileCompletions)
	return command
}

func (f *adoptFlags) run(command *cobra.Command, names []string) error {
	facts, err := f.Read(command, names, inspect.Want{})
	if err != nil {
		return err
	}
	machines, unknown, err := f.adoptable(facts.Machines, len(names) > 0)
	if err != nil {
		return err
	}
	if len(unknown) > 0 {
		fmt.Fprintf(command.ErrOrStderr(), "Left out: %s (%s)\n", strings.Join(unknown, ", "), unidentified)
	}
	if len(machines) == 0 {
		f.Nothing(command, "There are no Machines to adopt", facts.Namespace)
		return nil
	}
	live, _, err := f.Connect()
	if err != nil {
		return err
	}
	asked := lifecycle.AdoptionAdopt
	if f.plan {
		asked = lifecycle.AdoptionPlan
	}
	annotations := map[string]string{}
	if f.from.path != "" {
		if asked, err = f.from.prepare(command, &machines[0], asked, annotations); err != nil {
			return err
		}
	}
	since := metav1.Now().Rfc3339Copy()
	annotations[lifecycle.AdoptionAnnotation], annotations[lifecycle.AdoptionRequestedAnnotation] = string(asked),
		since.UTC().Format(time.RFC3339)
	for i := range machines {
		if err := annotate(command.Context(), live, &machines[i], annotations); err != nil {
			return err
		}
	}
	late := f.wait(command.Context(), live, machines, since)
	facts.Machines = machines
	list := inspect.Adoptions(facts)
	if err := f.Printer.Print(command.OutOrStdout(), list); err != nil {
		return err
	}
	if len(late) > 0 {
		return fmt.Errorf("the manager has not reported on %s within %s; it does once it runs, and once it serves the Machine's providerSpec: look at the Machine's conditions",
			strings.Join(late, ", "), f.timeout)
	}
	return resultCode(list)
}

// unidentified is why the manager cannot find an instance, with the fix.
const unidentified = "no provider ID, and no instance found by the Machine's name; set spec.providerID or " +
	"the annotation machine-iac.io/adopt-id, or name the resource in a Terraform state with --from-state and --address"

// adoptable returns the Machines whose instance is not adopted, and the names of those whose
// instance is not known. It returns an error for a named Machine that cannot be adopted.
func (f *adoptFlags) adoptable(machines []machinev1beta1.Machine, named bool) (wanted []machinev1beta1.Machine,
	unknown []string, err error) {
	for i := range machines {
		machine := &machines[i]
		_, own := machine.Annotations[record.WitnessAnnotation]
		known := f.from.path != "" || identified(machine)
		switch {
		case !own && known && (machine.DeletionTimestamp.IsZero() || named && !f.plan):
			wanted = append(wanted, *machine)
		case !named && !own && machine.DeletionTimestamp.IsZero():
			unknown = append(unknown, machine.Name)
		case !named:
		case own:
			return nil, nil,
				fmt.Errorf("the Machine %s: the operator has made its instance, or has adopted it before; nothing was changed",
					machine.Name)
		case !machine.DeletionTimestamp.IsZero():
			return nil, nil,
				fmt.Errorf("the Machine %s is being deleted, and such an adoption is not planned: without --plan its instance is adopted, and then destroyed; nothing was changed", machine.Name)
		default:
			return nil, nil, fmt.Errorf("the Machine %s: %s; nothing was changed", machine.Name, unidentified)
		}
	}
	return wanted, unknown, nil
}

// identified reports whether the manager can find the instance: the Machine names it, or a search by
// the Machine's name has found it.
func identified(machine *machinev1beta1.Machine) bool {
	if id := machine.Spec.ProviderID; id != nil && *id != "" || machine.Annotations[lifecycle.AdoptIDAnnotation] != "" {
		return true
	}
	found := inspect.AdoptionOf(machine)
	return found != nil && found.Planned != nil
}

// annotate sets annotations of a Machine.
func annotate(ctx context.Context, live client.Client, machine *machinev1beta1.Machine,
	annotations map[string]string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": machine.UID, "annotations": annotations}})
	if err != nil {
		return err
	}
	if err := live.Patch(ctx, machine.DeepCopy(), client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return fmt.Errorf("annotating the Machine %s: %w", machine.Name, err)
	}
	return nil
}

// wait reads the Machines until the manager has reported on each since a time, and returns the
// names of the rest.
func (f *adoptFlags) wait(ctx context.Context, live client.Client, machines []machinev1beta1.Machine,
	since metav1.Time) []string {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	var late []string
	for i := range machines {
		err := wait.PollUntilContextCancel(ctx, adoptInterval, true, func(ctx context.Context) (bool, error) {
			now := &machinev1beta1.Machine{}
			if err := live.Get(ctx, client.ObjectKeyFromObject(&machines[i]), now); err != nil {
				deleted := apierrors.IsNotFound(err) && !machines[i].DeletionTimestamp.IsZero()
				return deleted, client.IgnoreNotFound(err)
			}
			machines[i] = *now
			return f.reported(now, since), nil
		})
		if err != nil {
			late = append(late, machines[i].Name)
		}
	}
	return late
}

// reported reports whether the manager has fulfilled or refused the request since a time.
func (f *adoptFlags) reported(machine *machinev1beta1.Machine, since metav1.Time) bool {
	found := inspect.AdoptionOf(machine)
	switch {
	case found == nil:
		return false
	case found.Result == inspect.AdoptionDone:
		return true
	case found.Planned == nil || found.Planned.Before(&since):
		return false
	}
	return f.plan || found.Result == inspect.AdoptionRefused ||
		machine.Annotations[lifecycle.AdoptionAnnotation] == string(lifecycle.AdoptionPlan)
}

// resultCode returns the exit code of a list.
func resultCode(list *inspect.AdoptionList) error {
	var refused []string
	differs := false
	for i := range list.Items {
		switch list.Items[i].Result {
		case inspect.AdoptionRefused:
			refused = append(refused, list.Items[i].Machine)
		case inspect.AdoptionDiffers:
			differs = true
		}
	}
	if len(refused) > 0 || differs {
		return differsCode
	}
	return nil
}

var errOneMachine = errors.New("--from-state takes an instance over for one Machine: name it")
