package machinehealthcheck

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// templateSuffix ends the kind of a template; what precedes it is the kind of the requests made
// from it.
const templateSuffix = "Template"

// externalRecheck is how often templates and requests are read while they matter: they are not
// watched.
const externalRecheck = 5 * time.Minute

// The annotations of a request that name its template.
const (
	clonedFromName      = "machine.openshift.io/cloned-from-name"
	clonedFromGroupKind = "machine.openshift.io/cloned-from-groupkind"
)

// external is the state of external remediation.
type external struct {
	// kind is that of the requests; empty when it is not known.
	kind schema.GroupVersionKind
	// template is what requests are made from; nil when it could not be read.
	template *unstructured.Unstructured
	// templateErr is why there is no template.
	templateErr error
	// requests are those of the namespace, by name.
	requests map[string]*metav1.PartialObjectMetadata
	// requestsErr is why they are not known.
	requestsErr error
}

// ready returns why requests cannot be created, nil when they can.
func (e *external) ready() error {
	return errors.Join(e.templateErr, e.requestsErr)
}

// readRequests reads the remediation template and the requests.
type readRequests struct {
	reader client.Reader
}

// Reconcile implements pipeline.Step. An error is returned only when there is something to
// remediate.
func (r *readRequests) Reconcile(ctx context.Context, s *scope) (bool, error) {
	if s.check.Spec.RemediationTemplate == nil {
		removeCondition(s, machinev1beta1.ExternalRemediationTemplateAvailable)
		removeCondition(s, machinev1beta1.ExternalRemediationRequestAvailable)
		return true, nil
	}
	s.external = r.read(ctx, s.check)
	setTemplateCondition(s, s.external.templateErr)
	unsure := s.external.ready() != nil
	for _, target := range s.targets {
		_, target.requested = s.external.requests[target.machine.Name]
		unsure = unsure || target.health.remediate
	}
	if unsure {
		s.RequeueAfter(externalRecheck)
	}
	return true, nil
}

func (r *readRequests) read(ctx context.Context, check *machinev1beta1.MachineHealthCheck) *external {
	ref := check.Spec.RemediationTemplate
	gvk, err := requestKind(ref)
	if err != nil {
		return &external{templateErr: err}
	}
	out := &external{kind: gvk}
	out.template, out.templateErr = r.template(ctx, check.Namespace, ref)
	out.requests, out.requestsErr = r.list(ctx, check.Namespace, gvk)
	return out
}

// template gets the template from the namespace of the Machines, whatever the namespace of the
// reference.
func (r *readRequests) template(ctx context.Context, namespace string,
	ref *corev1.ObjectReference) (*unstructured.Unstructured, error) {
	template := &unstructured.Unstructured{}
	template.SetGroupVersionKind(ref.GroupVersionKind())
	if err := r.reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, template); err != nil {
		return nil, fmt.Errorf("getting the remediation template %s %s in namespace %s: %w; %s",
			ref.Kind, ref.Name, namespace, err, fixFor(err, ref.GroupVersionKind(), "get"))
	}
	return template, nil
}

// list returns the requests of the namespace by name.
func (r *readRequests) list(
	ctx context.Context, namespace string, kind schema.GroupVersionKind,
) (map[string]*metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := r.reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the remediation requests %s in namespace %s: %w; %s",
			kind.Kind, namespace, err, fixFor(err, kind, "list, create and delete"))
	}
	byName := make(map[string]*metav1.PartialObjectMetadata, len(list.Items))
	for i := range list.Items {
		byName[list.Items[i].Name] = &list.Items[i]
	}
	return byName, nil
}

// requestKind returns the kind of the requests for a template.
func requestKind(ref *corev1.ObjectReference) (schema.GroupVersionKind, error) {
	gvk := ref.GroupVersionKind()
	kind, ok := strings.CutSuffix(gvk.Kind, templateSuffix)
	if !ok || kind == "" {
		return schema.GroupVersionKind{}, fmt.Errorf(
			"spec.remediationTemplate.kind is %q, which is not the kind of a template; use a kind that ends in %s", ref.Kind,
			templateSuffix)
	}
	return gvk.GroupVersion().WithKind(kind), nil
}

// requestFrom returns the request for a Machine from a template.
func requestFrom(
	template *unstructured.Unstructured, kind schema.GroupVersionKind, machine *machinev1beta1.Machine,
) (*unstructured.Unstructured, error) {
	content, found, err := unstructured.NestedMap(template.Object, "spec", "template")
	if err != nil || !found {
		return nil, fmt.Errorf("the remediation template %s %s has no object at spec.template; define the request there",
			template.GetKind(), template.GetName())
	}
	request := &unstructured.Unstructured{Object: content}
	labels, annotations := request.GetLabels(), request.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[clonedFromName] = template.GetName()
	annotations[clonedFromGroupKind] = template.GroupVersionKind().GroupKind().String()
	// Other metadata and the status belong to the template.
	delete(request.Object, "metadata")
	delete(request.Object, "status")
	request.SetGroupVersionKind(kind)
	request.SetNamespace(machine.Namespace)
	request.SetName(machine.Name)
	request.SetLabels(labels)
	request.SetAnnotations(annotations)
	request.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: machinev1beta1.GroupVersion.String(), Kind: "Machine", Name: machine.Name, UID: machine.UID,
	}})
	return request, nil
}

// ownedBy reports whether a Machine, by UID, owns a request.
func ownedBy(request *metav1.PartialObjectMetadata, machine *machinev1beta1.Machine) bool {
	return slices.ContainsFunc(request.OwnerReferences,
		func(ref metav1.OwnerReference) bool { return ref.UID == machine.UID })
}

// fixFor returns how to fix an error of the API server.
func fixFor(err error, kind schema.GroupVersionKind, verbs string) string {
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Sprintf("install the CustomResourceDefinition of %s in %s", kind.Kind, kind.GroupVersion())
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("grant the operator's service account %s for %s", verbs, kind.GroupKind())
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("create the %s, or correct spec.remediationTemplate", kind.Kind)
	default:
		return "it will be retried"
	}
}
