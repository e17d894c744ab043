package uninstall

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/internal/inspect"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// shown limits how many Machines and states a refusal lists.
const shown = 20

// crds are those of install/kubernetes/crds.
var crds = []string{
	"machines.machine.openshift.io", "machinesets.machine.openshift.io", "machinedeployments.machine.openshift.io",
	"machinehealthchecks.machine.openshift.io", "machineapioperators.machine-iac.io",
}

// kept are objects that the operator or manager reads or has created, and that the next
// installation can use.
var kept = []struct{ kind, name string }{
	{"ConfigMap", "machine-api-operator-config"}, {"ConfigMap", "machine-api-operator-images"}, {"ConfigMap",
		"mao-trusted-ca"}, {"ConfigMap", "machine-iac-inventory"}, {"ConfigMap", "machine-iac-modules"},
	{"Secret", "machine-iac-installation"}, {"Secret", "machine-iac-pulumi-keys"},
}

// remains are what an uninstallation leaves behind.
type remains struct {
	facts   *inspect.Facts
	unsaved []state.Orphan
	modules []*unstructured.Unstructured
	// objects are further ones, CRDs last.
	objects []*unstructured.Unstructured
}

// readRemains reads them.
func readRemains(ctx context.Context, cluster *inspect.Cluster, live client.Client) (*remains, error) {
	facts, err := cluster.Read(ctx, inspect.Want{Sets: true, States: true}, time.Now())
	if err != nil {
		return nil, err
	}
	s := &remains{facts: facts}
	if s.unsaved, err = cluster.States().Orphans(ctx, cluster.Namespace()); err != nil {
		return nil, err
	}
	modules := metadataList("Secret")
	if err := live.List(ctx, modules, client.InNamespace(cluster.Namespace()),
		client.HasLabels{"machine-iac.io/module-content"}); err != nil {
		return nil, fmt.Errorf("listing the contents of modules: %w", err)
	}
	for i := range modules.Items {
		s.modules = append(s.modules, bare(corev1.SchemeGroupVersion.WithKind("Secret"), &modules.Items[i]))
	}
	for _, one := range kept {
		kind := corev1.SchemeGroupVersion.WithKind(one.kind)
		if err := s.keep(ctx, live, kind, client.ObjectKey{Namespace: cluster.Namespace(), Name: one.name}); err != nil {
			return nil, err
		}
	}
	for _, name := range crds {
		if err := s.keep(ctx, live, crdKind, client.ObjectKey{Name: name}); err != nil {
			return nil, err
		}
	}
	return s, nil
}

var crdKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

func (s *remains) keep(
	ctx context.Context, live client.Client, kind schema.GroupVersionKind, key client.ObjectKey,
) error {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(kind)
	err := live.Get(ctx, key, found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", kind.Kind, key.Name, err)
	}
	s.objects = append(s.objects, bare(kind, found))
	return nil
}

// bare returns an object with the metadata that removing it needs.
func bare(kind schema.GroupVersionKind, from *metav1.PartialObjectMetadata) *unstructured.Unstructured {
	to := object(kind, from.Namespace, from.Name)
	to.SetUID(from.UID)
	return to
}

// purge removes everything that stays.
func (s *remains) purge(ctx context.Context, r *removal) error {
	for _, one := range slices.Concat(s.modules, s.objects) {
		if err := r.remove(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

// purgeable returns an error if there are objects of the CRDs that make Machines anywhere in the cluster: they would go with them.
func purgeable(ctx context.Context, live client.Client) error {
	for _, kind := range []string{"Machine", "MachineSet", v1beta1.MachineDeploymentKind} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(machinev1beta1.GroupVersion.WithKind(kind + "List"))
		err := live.List(ctx, list, client.Limit(1))
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("listing %ss of all namespaces: %w", kind, err)
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("--purge removes the CRDs, and with them %s %s/%s and all others: delete them first and "+
				"wait until they are gone; nothing was removed", kind, list.Items[0].Namespace, list.Items[0].Name)
		}
	}
	return nil
}

func metadataList(kind string) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
	return list
}

// machines reports whether there is anything that only the manager can handle.
func (s *remains) machines() bool {
	return len(s.facts.Machines)+len(s.facts.States)+len(s.unsaved) > 0
}

// counts says how many Machines and states there are.
func (s *remains) counts() string {
	return fmt.Sprintf("Machines (%d) and states (%d)", len(s.facts.Machines), len(s.facts.States)+len(s.unsaved))
}

// lines name the Machines and the states.
func (s *remains) lines() []string {
	var lines []string
	for i := range s.facts.Machines {
		machine := &s.facts.Machines[i]
		lines = append(lines, fmt.Sprintf("  machine/%s %s", machine.Name, ptr.Deref(machine.Status.Phase, "")))
	}
	for i := range s.facts.States {
		head := &s.facts.States[i]
		lines = append(lines, fmt.Sprintf("  secret/%s, state with %d resources", head.Key.Name, head.Managed))
	}
	for i := range s.unsaved {
		lines = append(lines, fmt.Sprintf("  secret/%s, state that could not be saved, of Machine %s", s.unsaved[i].Name,
			s.unsaved[i].Machine))
	}
	if more := len(lines) - shown; more > 0 {
		lines = append(lines[:shown], fmt.Sprintf("  and %d more", more))
	}
	return lines
}

// print says what stays.
func (s *remains) print(out io.Writer, namespace string) {
	fmt.Fprintf(out, "\nWhat stays, in the namespace %s and in the cluster:\n", namespace)
	fmt.Fprintf(out, "  %s, MachineSets (%d), Secrets with contents of modules (%d)\n", s.counts(),
		len(s.facts.Sets), len(s.modules))
	for _, one := range s.objects {
		fmt.Fprintf(out, "  %s\n", named(one))
	}
}
