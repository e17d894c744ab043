package legacyhealthcheck

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// The ConfigMap with what is unhealthy, in the namespace of the MachineHealthCheck.
const (
	conditionsName = "node-unhealthy-conditions"
	conditionsKey  = "conditions"
)

// recreate is the remediation strategy of machine.openshift.io: the Machine is deleted, and its
// MachineSet makes another.
const recreate = "recreate"

// refusal is why a MachineHealthCheck is not converted, until somebody changes something.
type refusal struct{ why string }

func (r *refusal) Error() string { return r.why }

// convert returns the spec of a MachineHealthCheck of machine.openshift.io/v1beta1, with the
// defaults of the API server. conditions is the text of the ConfigMap.
func convert(legacy *unstructured.Unstructured, conditions string) (map[string]any, error) {
	from, _, _ := unstructured.NestedMap(legacy.Object, "spec")
	if strategy, _ := from["remediationStrategy"].(string); strategy != "" && !strings.EqualFold(strategy, recreate) {
		return nil, &refusal{fmt.Sprintf("remediationStrategy %q is not supported, and nothing is remediated: remove it to "+
			"delete unhealthy Machines, or use spec.remediationTemplate of machine.openshift.io/v1beta1", strategy)}
	}
	unhealthy, _ := from["unhealthyConditions"].([]any)
	if len(unhealthy) == 0 {
		var err error
		if unhealthy, err = conditionsFrom(conditions); err != nil {
			return nil, err
		}
	}
	spec := map[string]any{
		"selector": map[string]any{}, "maxUnhealthy": "100%", "nodeStartupTimeout": "10m", "unhealthyConditions": unhealthy,
	}
	for _, field := range []string{"selector", "maxUnhealthy"} {
		if value, set := from[field]; set && value != nil {
			spec[field] = value
		}
	}
	return spec, nil
}

// conditionsFrom returns the conditions of the ConfigMap's text, or the default ones.
func conditionsFrom(text string) ([]any, error) {
	list := struct {
		Items []struct {
			Name    string `json:"name"`
			Status  any    `json:"status"` // True without quotes is no text in YAML
			Timeout string `json:"timeout"`
		} `json:"items"`
	}{}
	if err := yaml.Unmarshal([]byte(text), &list); err != nil {
		return nil, &refusal{fmt.Sprintf("ConfigMap %s: %s is no list of conditions; write items with name, status and "+
			"timeout: %v", conditionsName, conditionsKey, err)}
	}
	var out []any
	for _, one := range list.Items {
		out = append(out, condition(one.Name, statusOf(fmt.Sprint(one.Status)), one.Timeout))
	}
	if len(out) == 0 {
		for _, status := range []corev1.ConditionStatus{corev1.ConditionUnknown, corev1.ConditionFalse} {
			out = append(out, condition(string(corev1.NodeReady), string(status), "5m"))
		}
	}
	return out, nil
}

func condition(name, status, timeout string) map[string]any {
	return map[string]any{"type": name, "status": status, "timeout": timeout}
}

// statusOf returns a condition's status in its usual spelling.
func statusOf(text string) string {
	for _, one := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown} {
		if strings.EqualFold(text, string(one)) {
			return string(one)
		}
	}
	return text
}
