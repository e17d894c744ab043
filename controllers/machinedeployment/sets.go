package machinedeployment

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
	note "github.com/machine-iac/machine-iac-operator/internal/cluster/events"
)

// Sets brings the Machines of a MachineSet without a MachineDeployment to its template once, while an
// annotation asks for it. Its Machines are two groups of the same MachineSet: those that are up to date,
// and the stale ones.
type Sets struct {
	writer

	options Options
	fleet   *readFleet
	pace    *pipeline.Pace
}

var _ reconcile.Reconciler = &Sets{}

// availabilityRecheck is how often a rollout in progress is reconciled: no event follows if as many Machines
// become available as cease to be.
const availabilityRecheck = time.Minute

// rollingSet is what one reconcile knows.
type rollingSet struct {
	scope

	set *machinev1beta1.MachineSet
	// asked is the strategy; empty if no rollout is asked for any more.
	asked v1beta1.MachineDeploymentStrategyType
	// current names the template in notes about refusals.
	current string
	// until is the creation time up to which Machines are replaced.
	until time.Time
	// stale and fresh are the Machines. The MachineSet of both is set.
	stale, fresh *revision
	// surge is how many Machines there are to be beyond replicas.
	surge int
}

// NewSets returns a Sets.
func NewSets(options Options) *Sets {
	options.SetClock()
	return &Sets{writer: writer{options.Client}, options: options, pace: pipeline.NewPace(options.Clock),
		fleet: &readFleet{nodes: options.Client, clock: options.Clock}}
}

// Reconcile takes the next step of one MachineSet.
func (c *Sets) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if wait := c.pace.Wait(request.NamespacedName); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	r, err := c.run(ctx, request, c.client, false)
	if errors.Is(err, errReadLive) {
		r, err = c.run(ctx, request, c.options.Reader, true)
	}
	if r == nil {
		c.pace.Forget(request.NamespacedName)
		return reconcile.Result{}, err
	}
	if err = r.Written(err); err != nil {
		if ctx.Err() == nil { // otherwise the manager is stopping
			note.Warning(r.set, "ReconcileError", "Reconcile", err.Error()).Send(c.options.Recorder)
		}
		return reconcile.Result{}, err
	}
	if r.wrote {
		r.RequeueAfter(pipeline.ConflictRetry) // in case that no event follows
	}
	c.pace.Reconciled(request.NamespacedName, len(r.stale.machines)+len(r.fresh.machines))
	return r.Result(), nil
}

// run takes the step on what the reader reads. It returns nothing for a MachineSet that is not to be
// rolled out by itself.
func (c *Sets) run(ctx context.Context, request reconcile.Request, reader client.Reader,
	live bool) (*rollingSet, error) {
	set := &machinev1beta1.MachineSet{}
	if err := reader.Get(ctx, request.NamespacedName, set); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if metav1.GetControllerOfNoCopy(set) != nil || !set.DeletionTimestamp.IsZero() ||
		!machineapi.AuthorityOfMachineSet(set).IsMachineAPI() {
		return nil, nil
	}
	r := &rollingSet{set: set, stale: &revision{set: set}, fresh: &revision{set: set},
		asked: v1beta1.MachineDeploymentStrategyType(set.Annotations[v1beta1.RolloutAnnotation]), surge: v1beta1.SurgeOf(set)}
	r.reader, r.live = reader, live
	r.deployment = &v1beta1.MachineDeployment{Spec: v1beta1.MachineDeploymentSpec{MinReadySeconds: set.Spec.MinReadySeconds}}
	r.until, _ = time.Parse(time.RFC3339, set.Annotations[v1beta1.ReplaceUntilAnnotation]) // zero if absent
	var err error
	if r.current, err = attempt(set, set.Spec.Template.Spec.ProviderSpec); err != nil {
		return r, reconcile.TerminalError(err)
	}
	if err := c.read(ctx, r); err != nil {
		return r, err
	}
	err = c.judge(ctx, r)
	if err == nil && !r.wrote {
		err = c.step(ctx, r)
	}
	return r, err
}

// read reads the Machines.
func (c *Sets) read(ctx context.Context, r *rollingSet) error {
	selector, err := metav1.LabelSelectorAsSelector(&r.set.Spec.Selector)
	if err != nil {
		return reconcile.TerminalError(fmt.Errorf("reading spec.selector: %w", err))
	}
	list := &machinev1beta1.MachineList{}
	if err := r.reader.List(ctx, list, client.InNamespace(r.set.Namespace), client.UnsafeDisableDeepCopy,
		client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return fmt.Errorf("listing Machines: %w", err)
	}
	slices.SortFunc(list.Items, func(x, y machinev1beta1.Machine) int { return cmp.Compare(x.Name, y.Name) })
	for i := range list.Items {
		machine, to := &list.Items[i], r.fresh
		if !metav1.IsControlledBy(machine, r.set) {
			continue
		}
		if r.differs(machine) || refusalOf(machine, r.current) != "" || !machine.CreationTimestamp.After(r.until) ||
			r.asked == v1beta1.RollingUpdate && verdictOf(machine) == failed {
			to = r.stale
		}
		if err := c.fleet.add(ctx, &r.scope, to, machine); err != nil {
			return err
		}
	}
	return nil
}

// differs reports whether a Machine's providerSpec is not the template's, nor what admission made of it.
func (r *rollingSet) differs(machine *machinev1beta1.Machine) bool {
	template := r.set.Spec.Template.Spec.ProviderSpec.Value
	return !sameSpec(machine.Spec.ProviderSpec.Value, template) && !machineapi.Completed(machine, template)
}

// judge ends the changes in place that have a result, also after the rollout was stopped.
func (c *Sets) judge(ctx context.Context, r *rollingSet) error {
	for _, machine := range slices.Concat(r.fresh.machines, r.stale.machines) {
		verdict := verdictOf(machine)
		if verdict != changed && verdict != refused {
			continue
		}
		out := finished(machine)
		if verdict == refused {
			if err := r.restore(out, machine.Annotations[v1beta1.FormerSpecAnnotation]); err != nil {
				return err
			}
		}
		err := c.patch(ctx, &r.scope, machine, out)
		if err != nil && strings.Contains(err.Error(), refusedByWebhook) {
			// Admission has become stricter: the Machine keeps the providerSpec that was not applied, and is replaced.
			out.Spec.ProviderSpec = machine.Spec.ProviderSpec
			err = c.patch(ctx, &r.scope, machine, out)
		}
		if err != nil {
			return fmt.Errorf("noting the result of the change of Machine %s: %w", machine.Name, err)
		}
	}
	return nil
}

// restore gives a Machine whose plan was refused its former providerSpec, and notes why.
func (r *rollingSet) restore(machine *machinev1beta1.Machine, former string) error {
	tried := r.current
	if r.differs(machine) { // the template has changed meanwhile
		var err error
		if tried, err = attempt(r.set, machine.Spec.ProviderSpec); err != nil {
			return err
		}
	}
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, v1beta1.RefusalAnnotation,
		refusalTo(tried, upToDate(machine).Message))
	var object map[string]any
	if json.Unmarshal([]byte(former), &object) == nil && object != nil {
		machine.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(former)}
	}
	return nil
}

// attempt returns the name of a providerSpec in notes about refusals.
func attempt(set *machinev1beta1.MachineSet, spec machinev1beta1.ProviderSpec) (string, error) {
	template := &v1beta1.MachineDeployment{}
	template.Spec.Template.Spec.ProviderSpec = spec
	hash, err := templateHash(template)
	return set.Name + "-" + hash, err
}

// step takes the next step.
func (c *Sets) step(ctx context.Context, r *rollingSet) error {
	if r.asked == "" {
		r.surge = 0
		if err := c.annotate(ctx, r); err != nil || r.wrote {
			return err
		}
		return c.report(ctx, r, "", "")
	}
	able, why := r.able()
	busy, culprit := r.progress()
	culprit = cmp.Or(r.invalid(c.options.Clock.Now()), culprit)
	switch {
	case culprit != "":
		return c.report(ctx, r, v1beta1.ReasonStopped, culprit)
	case len(able) > 0 && !busy:
		return c.change(ctx, r, able[0])
	case len(able) == 0:
		if err := c.replace(ctx, r); err != nil || r.wrote {
			return err
		}
	}
	return c.conclude(ctx, r, busy || len(able) > 0, why)
}

// conclude ends the rollout, or reports how far it is.
func (c *Sets) conclude(ctx context.Context, r *rollingSet, busy bool, why string) error {
	left := len(r.stale.machines)
	if r.asked == v1beta1.InPlace && !busy && left > 0 {
		return c.end(ctx, r, v1beta1.ReasonReplacementNeeded, fmt.Sprintf("%d Machines need new instances: %s", left,
			cmp.Or(why, "they have failed, or are marked for deletion")))
	}
	if left+r.stale.leaving+r.surge == 0 && !busy {
		return c.end(ctx, r, v1beta1.ReasonRolledOut, "All Machines are up to date")
	}
	r.RequeueAfter(availabilityRecheck)
	message := fmt.Sprintf("%d of %d Machines are to be brought up to date", left, left+len(r.fresh.machines))
	if left == 0 {
		message = "Not all new and changed Machines are available"
	}
	if why != "" {
		message += "; some need new instances: " + why
	}
	return c.report(ctx, r, v1beta1.ReasonRolloutInProgress, message)
}

// invalid returns why the rollout that is asked for cannot be made, or "".
func (r *rollingSet) invalid(now time.Time) string {
	if controlPlane(r.set.Spec.Template.Labels) {
		return "The labels of the template name the control plane, which is not rolled out; use a ControlPlaneMachineSet"
	}
	if until, given := r.set.Annotations[v1beta1.ReplaceUntilAnnotation]; given {
		if _, err := time.Parse(time.RFC3339, until); err != nil || r.until.After(now.Add(time.Minute)) {
			return fmt.Sprintf("The annotation %s is %q; write a time as RFC 3339 has it that is not in the future",
				v1beta1.ReplaceUntilAnnotation, until)
		}
	}
	valid := []v1beta1.MachineDeploymentStrategyType{v1beta1.InPlaceOrReplace, v1beta1.InPlace, v1beta1.RollingUpdate}
	if !slices.Contains(valid, r.asked) {
		return fmt.Sprintf("The annotation %s is %q; write one of %q", v1beta1.RolloutAnnotation, r.asked, valid)
	}
	return ""
}

// able returns the stale Machines that can change in place as far as is known, and why another one
// cannot.
func (r *rollingSet) able() (able []*machinev1beta1.Machine, why string) {
	for _, machine := range r.stale.machines {
		refusal := refusalOf(machine, r.current)
		why = cmp.Or(why, refusal)
		if r.asked != v1beta1.RollingUpdate && refusal == "" && r.differs(machine) &&
			machine.CreationTimestamp.After(r.until) && !machineapi.MarkedForDeletion(machine) &&
			machine.Status.ErrorReason == nil && machine.Status.ErrorMessage == nil {
			able = append(able, machine)
		}
	}
	return able, why
}

// progress reports whether a Machine is changing or has yet to become available, and describes one
// whose change failed. That one is left to people, unless the template has changed since.
func (r *rollingSet) progress() (busy bool, culprit string) {
	for i, machine := range r.fresh.machines {
		verdict := verdictOf(machine)
		if verdict == failed {
			culprit = cmp.Or(culprit, fmt.Sprintf("Machine %s: %s", machine.Name, failureOf(machine)))
		}
		busy = busy || verdict != unmoved || !r.fresh.available[i]
	}
	changes := func(m *machinev1beta1.Machine) bool { return verdictOf(m) == changing }
	return busy || slices.ContainsFunc(r.stale.machines, changes), culprit
}

// change gives a Machine the providerSpec of the template.
func (c *Sets) change(ctx context.Context, r *rollingSet, machine *machinev1beta1.Machine) error {
	out := machine.DeepCopy()
	if out.Annotations[v1beta1.FormerSpecAnnotation] == "" && out.Spec.ProviderSpec.Value != nil {
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, v1beta1.FormerSpecAnnotation, string(out.Spec.ProviderSpec.Value.Raw))
	}
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, v1beta1.MovedFromAnnotation, r.set.Name)
	delete(out.Annotations, v1beta1.CheckedGenerationAnnotation)
	out.Spec.ProviderSpec = *r.set.Spec.Template.Spec.ProviderSpec.DeepCopy()
	err := c.patch(ctx, &r.scope, machine, out)
	switch {
	case err == nil:
		err = machineapi.NoteCompletion(ctx, c.client, out, r.set.Spec.Template.Spec.ProviderSpec.Value)
	case strings.Contains(err.Error(), refusedByWebhook):
		noted := machine.DeepCopy()
		metav1.SetMetaDataAnnotation(&noted.ObjectMeta, v1beta1.RefusalAnnotation, refusalTo(r.current, err.Error()))
		err = c.patch(ctx, &r.scope, machine, noted)
	}
	if err != nil {
		return fmt.Errorf("changing Machine %s: %w", machine.Name, err)
	}
	log.FromContext(ctx).Info("Changing a Machine in place", "Machine", machine.Name)
	return nil
}

// replace lets the MachineSet create and delete Machines, as a MachineDeployment with the default bounds
// would, unless the strategy keeps them. A MachineSet deletes marked Machines before others.
func (c *Sets) replace(ctx context.Context, r *rollingSet) error {
	old, current := r.group(r.stale), r.group(r.fresh)
	replicas := int(ptr.Deref(r.set.Spec.Replicas, 1))
	coming := replicas + r.surge - old.alive - current.alive
	old.number = old.alive - max(0, -coming) // the MachineSet is about to delete them
	current.number = current.alive + max(0, coming)
	old.replace = r.asked != v1beta1.InPlace
	f := &fleet{replicas: replicas, surge: 1, current: current, old: []*group{old}}
	f.plan()
	victims := old.alive - old.number - old.chosen
	for _, available := range []bool{false, true} {
		for i, machine := range r.stale.machines {
			if victims <= 0 || r.stale.available[i] != available || machineapi.MarkedForDeletion(machine) {
				continue
			}
			victims--
			if err := c.mark(ctx, &r.scope, machine, "rollout"); err != nil {
				return err
			}
		}
	}
	if r.wrote {
		return nil
	}
	r.surge = max(0, f.numbers()-replicas)
	return c.annotate(ctx, r)
}

// choose marks the Machine that the MachineSet deletes when the surge ends: an unavailable one, else the newest.
// Its deletePolicy might take an available one instead.
func (c *Sets) choose(ctx context.Context, r *rollingSet) error {
	machines := slices.Concat(r.fresh.machines, r.stale.machines)
	if r.surge >= v1beta1.SurgeOf(r.set) || len(machines) <= int(ptr.Deref(r.set.Spec.Replicas, 1))+r.surge ||
		slices.ContainsFunc(machines, machineapi.MarkedForDeletion) {
		return nil
	}
	available, victim := slices.Concat(r.fresh.available, r.stale.available), 0
	for i, machine := range machines {
		if available[i] == available[victim] && machines[victim].CreationTimestamp.Before(&machine.CreationTimestamp) ||
			available[victim] && !available[i] {
			victim = i
		}
	}
	return c.mark(ctx, &r.scope, machines[victim], "rollout")
}

// end reports the result, and removes the annotations once the result is stored.
func (c *Sets) end(ctx context.Context, r *rollingSet, reason, message string) error {
	if err := c.report(ctx, r, reason, message); err != nil || r.wrote {
		return err
	}
	r.asked, r.surge = "", 0
	return c.annotate(ctx, r)
}

// annotate writes what differs of the MachineSet's annotations.
func (c *Sets) annotate(ctx context.Context, r *rollingSet) error {
	out := r.set.DeepCopy()
	delete(out.Annotations, v1beta1.SurgeAnnotation)
	if r.surge > 0 {
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, v1beta1.SurgeAnnotation, strconv.Itoa(r.surge))
	}
	if r.asked == "" {
		delete(out.Annotations, v1beta1.RolloutAnnotation)
		delete(out.Annotations, v1beta1.ReplaceUntilAnnotation)
	}
	if equality.Semantic.DeepEqual(out.Annotations, r.set.Annotations) {
		return nil
	}
	if err := c.choose(ctx, r); err != nil || r.wrote {
		return err
	}
	if err := c.patch(ctx, &r.scope, r.set, out); err != nil {
		return fmt.Errorf("annotating the MachineSet: %w", err)
	}
	return nil
}
