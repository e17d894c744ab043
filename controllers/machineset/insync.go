package machineset

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// maxFields bounds how many fields the condition TemplateInSync names.
const maxFields = 8

// compareTemplate sets the condition TemplateInSync.
type compareTemplate struct {
	clock clock.PassiveClock
}

// Reconcile implements pipeline.Step.
func (c *compareTemplate) Reconcile(_ context.Context, s *scope) (bool, error) {
	s.set.Status.Conditions = machineapi.WithCondition(s.set.Status.Conditions, inSync(s.set, s.replicas), c.clock.Now())
	return true, nil
}

// inSync returns the condition TemplateInSync. A message for True has no numbers, so that scaling does
// not rewrite it.
func inSync(set *machinev1beta1.MachineSet, replicas []*machinev1beta1.Machine) machinev1beta1.Condition {
	template, differ := set.Spec.Template.Spec.ProviderSpec.Value, 0
	seen := map[string][]string{} // by providerSpec, of which there are few
	fields := map[string]bool{}
	for _, machine := range replicas {
		value := machine.Spec.ProviderSpec.Value
		if bytes.Equal(rawOf(value), rawOf(template)) || machineapi.Completed(machine, template) {
			continue
		}
		found, known := seen[string(rawOf(value))]
		if !known {
			found = differences("", decoded(template), decoded(value))
			seen[string(rawOf(value))] = found
		}
		if len(found) == 0 {
			continue
		}
		differ++
		for _, field := range found {
			fields[field] = true
		}
	}
	if differ == 0 {
		return machinev1beta1.Condition{Type: v1beta1.ConditionTemplateInSync, Status: corev1.ConditionTrue,
			Reason: "AsTemplate", Message: "The providerSpec of each Machine is that of the template"}
	}
	names := slices.Sorted(maps.Keys(fields))
	if more := len(names) - maxFields; more > 0 {
		names = append(names[:maxFields], fmt.Sprintf("%d more", more))
	}
	return machinev1beta1.Condition{Type: v1beta1.ConditionTemplateInSync, Status: corev1.ConditionFalse,
		Severity: machinev1beta1.ConditionSeverityInfo, Reason: "MachinesDiffer",
		Message: fmt.Sprintf("%d of %d Machines differ from the template in %s. To see what a change would do, run "+
			"'kubectl machine plan machineset/%s'", differ, len(replicas), strings.Join(names, ", "), set.Name)}
}

func rawOf(value *runtime.RawExtension) []byte {
	if value == nil {
		return nil
	}
	return value.Raw
}

// decoded returns a providerSpec as maps; nil if it is missing or unreadable.
func decoded(value *runtime.RawExtension) any {
	var content any
	decoder := json.NewDecoder(bytes.NewReader(rawOf(value)))
	decoder.UseNumber()
	if decoder.Decode(&content) != nil {
		return nil
	}
	return content
}

// differences returns the paths of the fields that differ. A list is one field.
func differences(path string, x, y any) []string {
	before, xMap := x.(map[string]any)
	after, yMap := y.(map[string]any)
	if !xMap || !yMap {
		if reflect.DeepEqual(x, y) {
			return nil
		}
		return []string{cmp.Or(path, "providerSpec")}
	}
	var out []string
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	for key := range keys {
		out = append(out, differences(strings.TrimPrefix(path+"."+key, "."), before[key], after[key])...)
	}
	return out
}
