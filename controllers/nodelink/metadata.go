package nodelink

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
)

const (
	// machineAnnotation names, on a Node, its Machine as namespace/name.
	machineAnnotation = machineapi.NodeMachineAnnotation
	// appliedAnnotation records, on a Node, the labels and annotations that were applied for its
	// Machine.
	appliedAnnotation = "machine-iac.io/nodelink-applied"
)

// applyMetadata applies the labels, annotations and taints of the Machine's spec to the Node.
type applyMetadata struct {
	client   client.Client
	recorder events.EventRecorder
}

// Reconcile implements pipeline.Step.
func (i *applyMetadata) Reconcile(ctx context.Context, s *scope) (bool, error) {
	wanted, invalid := desiredMetadataOf(s.machine)
	if len(invalid.labels) > 0 {
		invalidNodeLabels(s.machine, s.node, invalid.labels).Send(i.recorder)
	}
	if len(invalid.annotations) > 0 {
		err := fmt.Errorf("spec.metadata.annotations has keys that Kubernetes does not allow: %s; fix or remove them",
			strings.Join(invalid.annotations, "; "))
		failedUpdateNode(s.machine, s.node, err).Send(i.recorder)
	}
	after, err := withMetadata(s.node, keyOf(s.machine), wanted)
	if err != nil {
		return false, err
	}
	if equality.Semantic.DeepEqual(s.node, after) {
		return true, nil
	}
	err = i.client.Patch(ctx, after, patchFrom(s.node, after))
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return true, nil
	case apierrors.IsConflict(err):
		s.RequeueAfter(pipeline.ConflictRetry)
		return false, nil
	default:
		if ctx.Err() == nil {
			failedUpdateNode(s.machine, s.node, err).Send(i.recorder)
		}
		return false, fmt.Errorf("updating Node %s for Machine %s: %w", s.node.Name, keyOf(s.machine), err)
	}
}

// patchFrom requires an unchanged Node if taints change, because a patch replaces the list as a
// whole, or if another writer's value is replaced, because that value must be recorded. Other
// labels and annotations are patched key by key and need no such care, and Nodes are updated often.
func patchFrom(before, after *corev1.Node) client.Patch {
	x, y := recorded(before), recorded(after)
	if equality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints) &&
		maps.Equal(x.ReplacedLabels, y.ReplacedLabels) && maps.Equal(x.ReplacedAnnotations, y.ReplacedAnnotations) {
		return client.MergeFrom(before)
	}
	return pipeline.IfUnchanged(before)
}

// desiredMetadata are the labels, annotations and taints that a Machine's Node should have.
type desiredMetadata struct {
	labels, annotations map[string]string
	taints              []corev1.Taint
}

// invalidKeys are the labels and annotations that the API server would refuse, each with the
// reason, sorted.
type invalidKeys struct {
	labels, annotations []string
}

// desiredMetadataOf returns the valid and the invalid metadata of a Machine's spec.
func desiredMetadataOf(machine *machinev1beta1.Machine) (desiredMetadata, invalidKeys) {
	out := desiredMetadata{labels: map[string]string{}, annotations: map[string]string{}, taints: machine.Spec.Taints}
	var invalid invalidKeys
	for key, value := range machine.Spec.Labels {
		if faults := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(faults) > 0 {
			invalid.labels = append(invalid.labels, fmt.Sprintf("%s=%s: %s", key, value, strings.Join(faults, ", ")))
			continue
		}
		out.labels[key] = value
	}
	for key, value := range machine.Spec.Annotations {
		if key == machineAnnotation || key == appliedAnnotation {
			continue // these are written by this controller
		}
		if faults := validation.IsQualifiedName(strings.ToLower(key)); len(faults) > 0 {
			invalid.annotations = append(invalid.annotations, fmt.Sprintf("%s: %s", key, strings.Join(faults, ", ")))
			continue
		}
		out.annotations[key] = value
	}
	slices.Sort(invalid.labels)
	slices.Sort(invalid.annotations)
	return out, invalid
}

// appliedMetadata is the value of appliedAnnotation.
type appliedMetadata struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// ReplacedLabels and ReplacedAnnotations are the values of other writers that were replaced.
	ReplacedLabels      map[string]string `json:"replacedLabels,omitempty"`
	ReplacedAnnotations map[string]string `json:"replacedAnnotations,omitempty"`
}

// withMetadata returns the Node with the desired metadata.
func withMetadata(node *corev1.Node, machine string, wanted desiredMetadata) (*corev1.Node, error) {
	after := node.DeepCopy()
	before := recorded(node)
	labels := merge(node.Labels, wanted.labels, applied{before.Labels, before.ReplacedLabels})
	annotations := merge(node.Annotations, wanted.annotations, applied{before.Annotations, before.ReplacedAnnotations})
	after.Labels, after.Annotations = labels.values, annotations.values
	after.Annotations[machineAnnotation] = machine
	delete(after.Annotations, appliedAnnotation)
	if len(labels.now.set)+len(annotations.now.set) > 0 {
		text, err := json.Marshal(appliedMetadata{
			Labels: labels.now.set, ReplacedLabels: labels.now.replaced,
			Annotations: annotations.now.set, ReplacedAnnotations: annotations.now.replaced,
		})
		if err != nil {
			return nil, fmt.Errorf("recording the metadata applied to Node %s: %w", node.Name, err)
		}
		after.Annotations[appliedAnnotation] = string(text)
	}
	after.Spec.Taints = withTaints(node.Spec.Taints, wanted.taints)
	return after, nil
}

// recorded reads appliedAnnotation. An invalid value counts as none, so existing metadata stays on
// the Node.
func recorded(node *corev1.Node) appliedMetadata {
	var out appliedMetadata
	if err := json.Unmarshal([]byte(node.Annotations[appliedAnnotation]), &out); err != nil {
		return appliedMetadata{}
	}
	return out
}

// applied holds the values that this controller has set, and the values of others that it has
// replaced.
type applied struct {
	set, replaced map[string]string
}

// merged is the result of merge.
type merged struct {
	values map[string]string
	now    applied
}

// merge returns current with wanted set, and what this controller has applied, now and before. A
// value that is no longer wanted is restored to the one that it replaced, or removed, unless
// another writer has changed it since.
func merge(current, wanted map[string]string, before applied) merged {
	out := merged{values: map[string]string{}, now: applied{map[string]string{}, map[string]string{}}}
	maps.Copy(out.values, current)
	for key, value := range before.set {
		if _, still := wanted[key]; still || out.values[key] != value {
			continue
		}
		if former, found := before.replaced[key]; found {
			out.values[key] = former
		} else {
			delete(out.values, key)
		}
	}
	for key, value := range wanted {
		had, present := current[key]
		was, ours := before.set[key]
		former, replaced := before.replaced[key]
		if !ours || !present || had != was { // another writer was the last to write or remove it
			former, replaced = had, present
			if present && had == value {
				continue // it stays theirs
			}
		}
		out.values[key], out.now.set[key] = value, value
		if replaced {
			out.now.replaced[key] = former
		}
	}
	return out
}

// withTaints adds the wanted taints that current lacks, by key and effect. It never updates or
// removes one.
func withTaints(current, wanted []corev1.Taint) []corev1.Taint {
	out := slices.Clone(current)
	for _, taint := range wanted {
		same := func(other corev1.Taint) bool { return other.Key == taint.Key && other.Effect == taint.Effect }
		if !slices.ContainsFunc(out, same) {
			out = append(out, taint)
		}
	}
	return out
}
