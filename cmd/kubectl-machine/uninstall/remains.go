package uninstall

import (
	"context"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/inspect"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// shown limits how many Machines and states a refusal lists.
const shown = 20

// crds are those of install/kubernetes/crds.
var crds = []string{
	"machines.machine.openshift.io", "machinesets.machine.openshift.io", "machinehealthchecks.machine.openshift.io",
	"machineapioperators.machine-iac.io",
}

// kept are objects that the operator or manager reads or has created, and that the next
// installation can use.
var kept = []struct{ kind, name string }{
	{"ConfigMap", "machine-api-operator-config"}, {"ConfigMap", "machine-api-operator-images"}, {"ConfigMap",
		"mao-trusted-ca"}, {"ConfigMap", "machine-iac-inventory"},
	{"Secret", "machine-iac-installation"}, {"Secret", "machine-iac-pulumi-keys"},
}

// remains are what an uninstallation leaves behind.
type remains struct {
	facts   *inspect.Facts
	unsaved []state.Orphan
	modules int
	// objects are further ones, as kubectl names them.
	objects []string
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
	s.modules = len(modules.Items)
	for _, one := range kept {
		found := &metav1.PartialObjectMetadata{}
		found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(one.kind))
		if err := s.keep(ctx, live, found, client.ObjectKey{Namespace: cluster.Namespace(), Name: one.name}); err != nil {
			return nil, err
		}
	}
	for _, name := range crds {
		found := &metav1.PartialObjectMetadata{}
		found.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1",
			Kind: "CustomResourceDefinition"})
		if err := s.keep(ctx, live, found, client.ObjectKey{Name: name}); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *remains) keep(ctx context.Context, live client.Client, object *metav1.PartialObjectMetadata,
	key client.ObjectKey) error {
	kind := object.GroupVersionKind()
	err := live.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", kind.Kind, key.Name, err)
	}
	object.SetGroupVersionKind(kind)
	s.objects = append(s.objects, named(object))
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
		len(s.facts.Sets), s.modules)
	for _, one := range s.objects {
		fmt.Fprintf(out, "  %s\n", one)
	}
}
