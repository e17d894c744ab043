package webhooks

import (
	"context"
	"fmt"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
)

// machineDefaulter completes a new Machine.
type machineDefaulter struct {
	rules rules
}

// Default implements admission.Defaulter. It keeps an existing label, because another value would
// orphan the Machine.
func (d *machineDefaulter) Default(_ context.Context, machine *machinev1beta1.Machine) error {
	if _, given := machine.Labels[machinev1beta1.MachineClusterIDLabel]; !given && d.rules.clusterID != "" {
		if machine.Labels == nil {
			machine.Labels = map[string]string{}
		}
		machine.Labels[machinev1beta1.MachineClusterIDLabel] = d.rules.clusterID
	}
	if missing := requireValue(machine.Spec.ProviderSpec.Value); missing != nil && !deleting(machine) {
		return missing
	}
	machine.Spec.ProviderSpec.Value = d.rules.completed(machine)
	return nil
}

// machineValidator validates Machines.
type machineValidator struct {
	rules   rules
	secrets secretChecks
}

// ValidateCreate implements admission.Validator.
func (v *machineValidator) ValidateCreate(ctx context.Context,
	machine *machinev1beta1.Machine) (admission.Warnings, error) {
	rules, err := v.rules.now(ctx)
	if err != nil {
		return nil, err
	}
	return v.response(ctx, machine, rules.newMachine(machine))
}

// ValidateUpdate implements admission.Validator.
func (v *machineValidator) ValidateUpdate(ctx context.Context, before,
	machine *machinev1beta1.Machine) (admission.Warnings, error) {
	rules, err := v.rules.now(ctx)
	if err != nil {
		return nil, err
	}
	return v.response(ctx, machine, rules.changedMachine(before, machine))
}

// ValidateDelete implements admission.Validator. Deletions are always allowed.
func (v *machineValidator) ValidateDelete(context.Context, *machinev1beta1.Machine) (admission.Warnings, error) {
	return nil, nil
}

func (v *machineValidator) response(ctx context.Context, machine *machinev1beta1.Machine,
	found admissionResult) (admission.Warnings, error) {
	v.secrets.check(ctx, machine.Namespace, &found)
	return found.response()
}

// newMachine checks a new Machine.
func (r rules) newMachine(machine *machinev1beta1.Machine) admissionResult {
	found := r.providerSpec(machine, "")
	if missing := r.unlabelled(machine, ""); missing != nil {
		found.warn(missing)
	}
	found.errs = append(found.errs, former(&machinev1beta1.Machine{}, machine)...)
	return found
}

// former rejects a former providerSpec that the Machine did not have. The manager would write it with its own
// rights, so that it could name a Secret that the user may not read.
func former(before, machine *machinev1beta1.Machine) field.ErrorList {
	spec := machine.Annotations[v1beta1.FormerSpecAnnotation]
	if spec == "" || spec == before.Annotations[v1beta1.FormerSpecAnnotation] ||
		sameValue(before.Spec.ProviderSpec.Value, &runtime.RawExtension{Raw: []byte(spec)}) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("metadata", "annotations").Key(v1beta1.FormerSpecAnnotation),
		"only the providerSpec that the Machine has now may be noted as its former one; remove the annotation")}
}

// changedMachine checks an update of a Machine.
func (r rules) changedMachine(before, machine *machinev1beta1.Machine) admissionResult {
	if deleting(machine) && equality.Semantic.DeepEqual(before.Spec, machine.Spec) {
		return admissionResult{}
	}
	found := r.changedProviderSpec(before, machine, "", deleting(machine))
	found.errs = append(found.errs, former(before, machine)...)
	if deleting(machine) {
		found.errs = append(found.errs, hooksOf(&before.Spec, &machine.Spec)...)
	}
	return found
}

// changedProviderSpec checks the providerSpec of an updated Machine. If it is unchanged, or the
// Machine is being deleted, only what the update makes worse is rejected; unknown fields and
// missing Secrets were reported before.
func (r rules) changedProviderSpec(before, machine *machinev1beta1.Machine, under string,
	leaving bool) admissionResult {
	found := r.providerSpec(machine, under)
	same := sameValue(before.Spec.ProviderSpec.Value, machine.Spec.ProviderSpec.Value)
	if same {
		found.warnings, found.secrets = nil, nil
	}
	r.keep(found.secrets, before)
	if len(found.errs) > 0 && (same || leaving) {
		found.tolerate(r.providerSpec(before, under).errs)
	}
	return found
}

// hooksOf rejects lifecycle hooks that were added to a Machine being deleted. Hooks may only be
// removed then.
func hooksOf(before, spec *machinev1beta1.MachineSpec) field.ErrorList {
	path := field.NewPath("spec", "lifecycleHooks")
	var errs field.ErrorList
	refuse := func(path *field.Path, word string, before, hooks []machinev1beta1.LifecycleHook) {
		changed := slices.DeleteFunc(slices.Clone(hooks), func(hook machinev1beta1.LifecycleHook) bool {
			return slices.Contains(before, hook)
		})
		if len(changed) > 0 {
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("%s hooks are immutable when machine is marked for deletion: "+
				"the following hooks are new or changed: %+v", word, changed)))
		}
	}
	refuse(path.Child("preDrain"), "pre-drain", before.LifecycleHooks.PreDrain, spec.LifecycleHooks.PreDrain)
	refuse(path.Child("preTerminate"), "pre-terminate", before.LifecycleHooks.PreTerminate,
		spec.LifecycleHooks.PreTerminate)
	return errs
}
