package rollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/internal/inspect"
)

// interval is how often an object is read while its rollout is watched.
const interval = time.Second

type status struct {
	targets
	watch    bool
	revision int64
	timeout  time.Duration
}

func newStatus() *cobra.Command {
	var s status
	command := &cobra.Command{
		Use:   "status (TYPE NAME | TYPE/NAME)",
		Short: "Wait for a rollout",
		Long: `Wait for a rollout, and show how far it is. The exit code is 1 if it exceeds its progress deadline, and after
--timeout. What keeps Machines as they are goes to standard error.`,
		Example: `  # Wait until a change has reached all Machines
  kubectl machine rollout status machinedeployment/workers --timeout=1h

  # Only show how far it is
  kubectl machine rollout status machinedeployment/workers --watch=false`,
		RunE: s.run,
	}
	s.register(command)
	flags := command.Flags()
	flags.BoolVarP(&s.watch, "watch", "w", true, "Wait until the rollout is done.")
	flags.Int64Var(&s.revision, "revision", 0, "Fail if another revision is rolled out; 0 is the latest.")
	flags.DurationVar(&s.timeout, "timeout", 0, "How long to wait, such as 30m. 0 waits without a limit.")
	for _, name := range []string{"revision", "timeout"} {
		_ = command.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return command
}

func (s *status) run(command *cobra.Command, arguments []string) error {
	if s.revision < 0 {
		return fmt.Errorf("revision must be a positive integer: %d", s.revision)
	}
	live, found, err := s.find(command, arguments, true)
	if err != nil {
		return err
	}
	for _, one := range found {
		if err := s.follow(command, live, one); err != nil {
			return err
		}
	}
	return nil
}

// follow prints the status whenever it changes, until the rollout is done.
func (s *status) follow(command *cobra.Command, live client.Client, object client.Object) error {
	ctx, cancel := command.Context(), func() {}
	if s.timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, s.timeout)
	}
	defer cancel()
	shown, noted := "", ""
	for {
		line, note, done, err := s.describe(object)
		if err != nil {
			return err
		}
		if line != shown {
			fmt.Fprint(command.OutOrStdout(), line)
			shown = line
		}
		if !done && note != noted {
			fmt.Fprint(command.ErrOrStderr(), note)
			noted = note
		}
		if done || !s.watch {
			return nil
		}
		if object, err = next(ctx, live, object); err != nil {
			return err
		}
	}
}

// describe returns the status of an object, and what keeps Machines as they are.
func (s *status) describe(object client.Object) (line, note string, done bool, err error) {
	switch one := object.(type) {
	case *machinev1beta1.MachineSet:
		if s.revision > 0 {
			return "", "", false, errors.New("a MachineSet has no revisions; leave out --revision")
		}
		return setStatus(one)
	case *v1beta1.MachineDeployment:
		line, done, err = statusOf(one, s.revision)
		note = hindrance(one)
	}
	return line, note, done, err
}

// next reads the object after an interval, and again while the API server does not respond.
func next(ctx context.Context, live client.Client, last client.Object) (client.Object, error) {
	for {
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return nil, errors.New("timed out waiting for the condition")
			}
			return nil, errors.New("interrupted; the rollout goes on")
		case <-time.After(interval):
		}
		var now client.Object = &v1beta1.MachineDeployment{}
		if _, ok := last.(*machinev1beta1.MachineSet); ok {
			now = &machinev1beta1.MachineSet{}
		}
		err := live.Get(ctx, client.ObjectKeyFromObject(last), now)
		switch {
		case apierrors.IsNotFound(err) || err == nil && now.GetUID() != last.GetUID():
			return nil, errors.New("object has been deleted")
		case inspect.Denied(err):
			return nil, err
		case err == nil:
			return now, nil
		}
	}
}

// statusOf returns the line that kubectl prints for such a Deployment, and whether the rollout is done.
func statusOf(d *v1beta1.MachineDeployment, revision int64) (line string, done bool, err error) {
	if revision > 0 {
		if running := v1beta1.Revision(d); running != revision {
			return "", false, fmt.Errorf("desired revision (%d) is different from the running revision (%d)",
				revision, running)
		}
	}
	if d.Generation > d.Status.ObservedGeneration {
		return "Waiting for machinedeployment spec update to be observed...\n", false, nil
	}
	progress := meta.FindStatusCondition(d.Status.Conditions, v1beta1.ConditionProgressing)
	if progress != nil && progress.Reason == v1beta1.ReasonProgressDeadlineExceeded {
		return "", false, fmt.Errorf("machinedeployment %q exceeded its progress deadline: %s", d.Name, progress.Message)
	}
	waiting := ""
	replicas, now := ptr.Deref(d.Spec.Replicas, 1), d.Status
	switch updated := now.UpdatedReplicas; {
	case updated < replicas:
		waiting = fmt.Sprintf("%d out of %d new replicas have been updated", updated, replicas)
	case now.Replicas > updated:
		waiting = fmt.Sprintf("%d old replicas are pending termination", now.Replicas-updated)
	case now.AvailableReplicas < updated:
		waiting = fmt.Sprintf("%d of %d updated replicas are available", now.AvailableReplicas, updated)
	default:
		return fmt.Sprintf("machinedeployment %q successfully rolled out\n", d.Name), true, nil
	}
	return fmt.Sprintf("Waiting for machinedeployment %q rollout to finish: %s...\n", d.Name, waiting), false, nil
}

// hindrance returns the conditions that keep Machines as they are, a line each.
func hindrance(d *v1beta1.MachineDeployment) string {
	text := ""
	for _, c := range d.Status.Conditions {
		if string(c.Status) == hinders[c.Type] {
			text += fmt.Sprintf("note: %s is %s: %s\n", c.Type, c.Status, c.Message)
		}
	}
	return text
}

// hinders has the status of each condition that keeps Machines as they are.
var hinders = map[string]string{
	v1beta1.ConditionReplicaFailure: "True", v1beta1.ConditionPaused: "True", v1beta1.ConditionInPlace: "False",
}
