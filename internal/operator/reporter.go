package operator

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/operator/operands"
)

// StatusName is the name of the object that the status is written to.
const StatusName = "machine-api"

// Kinds of the object that the status is written to. The first is OpenShift's.
var (
	ClusterOperator    = schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "ClusterOperator"}
	MachineAPIOperator = schema.GroupVersionKind{Group: "machine-iac.io", Version: "v1alpha1", Kind: "MachineAPIOperator"}
)

// reporter writes how the installation is.
type reporter struct {
	client    client.Client
	namespace string
	version   string
	recorder  events.EventRecorder
	clock     clock.PassiveClock

	kind    schema.GroupVersionKind
	before  configv1.ClusterOperatorStatus
	related []configv1.ObjectReference
}

// statusKind returns the kind of the object that the status is written to on this cluster.
func statusKind(live client.Client) (schema.GroupVersionKind, error) {
	for _, kind := range []schema.GroupVersionKind{ClusterOperator, MachineAPIOperator} {
		if serves(live, kind) {
			return kind, nil
		}
	}
	return schema.GroupVersionKind{},
		fmt.Errorf("the cluster has neither %s nor %s, which the status is written to; apply install/kubernetes/crds",
			ClusterOperator.GroupKind(), MachineAPIOperator.GroupKind())
}

// read reads the last status, and creates the object if it is missing.
func (p *reporter) read(ctx context.Context) error {
	kind, err := statusKind(p.client)
	if err != nil {
		return err
	}
	p.kind, p.before = kind, configv1.ClusterOperatorStatus{}
	object := p.object()
	err = p.client.Get(ctx, client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) {
		object = p.object()
		if kind == ClusterOperator {
			object.Object["spec"] = map[string]any{} // required by its schema
		}
		err = p.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(fieldManager),
			client.ForceOwnership)
	}
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", kind.Kind, StatusName, err)
	}
	written, _, _ := unstructured.NestedMap(object.Object, "status")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(written, &p.before); err != nil {
		return fmt.Errorf("reading the status of %s %s: %w", kind.Kind, StatusName, err)
	}
	p.related = p.before.RelatedObjects
	return nil
}

func (p *reporter) object() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(p.kind)
	object.SetName(StatusName)
	return object
}

// relate takes down which objects belong to the installation.
func (p *reporter) relate(objects []*unstructured.Unstructured) {
	p.related = related(p.namespace, objects)
}

// write writes the status if it has changed, and sends an event if the operator has become degraded
// or has rolled a version out.
func (p *reporter) write(ctx context.Context, o outcome) error {
	after := next(p.before, p.version, p.related, p.clock.Now(), o)
	observe(after)
	if equality.Semantic.DeepEqual(p.before, after) {
		return nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&after)
	if err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	delete(fields, "extension")
	object := p.object()
	object.Object["status"] = fields
	err = p.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(object),
		client.FieldOwner(fieldManager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("writing the status of %s %s: %w", p.kind.Kind, StatusName, err)
	}
	p.announce(p.before, after)
	p.before = after
	return nil
}

func (p *reporter) announce(before, after configv1.ClusterOperatorStatus) {
	about := &corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: p.namespace,
		Name: operands.Deployment}
	if was, is := reported(before), reported(after); was != is {
		p.recorder.Eventf(about, nil, corev1.EventTypeNormal, "Status upgrade",
			"Report", "Progressing from operator: %s to operator: %s", was, is)
	}
	was, is := condition(before, configv1.OperatorDegraded), condition(after, configv1.OperatorDegraded)
	if is != nil && is.Status == configv1.ConditionTrue && (was == nil || was.Status != is.Status) {
		p.recorder.Eventf(about, nil, corev1.EventTypeWarning, "Status degraded", "Report", "%s", is.Message)
	}
}
