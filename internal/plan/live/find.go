package live

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
	"github.com/machine-iac/machine-iac-operator/internal/render"
)

// subject is a requested object and its counterpart in the cluster.
type subject struct {
	live     preview.Live
	machines []*machine
}

func (s *subject) result() *preview.Live {
	s.live.Machines = make([]*preview.LiveMachine, len(s.machines))
	for n, one := range s.machines {
		s.live.Machines[n] = one.result
	}
	return &s.live
}

// find reads the counterpart of a requested object from the cluster.
func find(ctx context.Context, reader client.Reader, request *preview.Request) (*subject, error) {
	kind, namespace, name := request.Title()
	replicas, _ := request.Replicas()
	s := &subject{live: preview.Live{Create: int(replicas)}}
	key := client.ObjectKey{Namespace: namespace, Name: name}
	if kind == preview.KindMachine {
		existing := &machinev1beta1.Machine{}
		if request.Machine().Name == "" {
			return s, nil // generateName always creates a new object
		}
		if found, err := get(ctx, reader, key, existing); err != nil || !found {
			return s, err
		}
		s.live = preview.Live{Exists: true, Replicas: 1}
		s.machines = []*machine{newMachine(existing, request.Machine())}
		return s, nil
	}
	if request.Deployment() != nil {
		return s, s.findDeployment(ctx, reader, request)
	}
	set := &machinev1beta1.MachineSet{}
	if found, err := get(ctx, reader, key, set); err != nil || !found {
		return s, err
	}
	owned, err := machinesOf(ctx, reader, set)
	if err != nil {
		return nil, err
	}
	for i := range owned {
		s.machines = append(s.machines, newMachine(&owned[i], request.Machine()))
	}
	s.count(request, set.Spec.Replicas, set.Spec.DeletePolicy)
	return s, nil
}

// count sets what the replicas of the request mean for the Machines.
func (s *subject) count(request *preview.Request, existing *int32, deletePolicy string) {
	s.live.Exists, s.live.Replicas = true, ptr.Deref(existing, 1)
	replicas, given := request.Replicas()
	if !given { // apply keeps replicas that the manifest does not set
		replicas = s.live.Replicas
		request.SetReplicas(replicas)
	}
	stay := 0
	for _, one := range s.machines {
		if one.existing.DeletionTimestamp == nil {
			stay++
		}
	}
	s.live.Create, s.live.Delete = max(0, int(replicas)-stay), max(0, stay-int(replicas))
	s.live.DeletePolicy = cmp.Or(deletePolicy, string(machinev1beta1.RandomMachineSetDeletePolicy))
}

// get reads an object and reports whether it exists.
func get(ctx context.Context, reader client.Reader, key client.ObjectKey, object client.Object) (bool, error) {
	err := reader.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", key, err)
	}
	return true, nil
}

// machinesOf returns the Machines of a MachineSet, sorted by name.
func machinesOf(ctx context.Context, reader client.Reader,
	set *machinev1beta1.MachineSet) ([]machinev1beta1.Machine, error) {
	selector, err := render.SetSelector(&set.Spec)
	if err != nil {
		return nil, fmt.Errorf("reading the selector of MachineSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	list := &machinev1beta1.MachineList{}
	if err := reader.List(ctx, list, client.InNamespace(set.Namespace),
		client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("listing the Machines of MachineSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	owned := slices.DeleteFunc(list.Items, func(one machinev1beta1.Machine) bool {
		return !metav1.IsControlledBy(&one, set)
	})
	slices.SortFunc(owned, func(a, b machinev1beta1.Machine) int { return cmp.Compare(a.Name, b.Name) })
	return owned, nil
}

// edit returns the existing Machine with the wanted providerSpec, labels and annotations.
func edit(existing, wanted *machinev1beta1.Machine) *machinev1beta1.Machine {
	edited := existing.DeepCopy()
	edited.Spec.ProviderSpec = *wanted.Spec.ProviderSpec.DeepCopy()
	edited.Labels, edited.Annotations = merged(edited.Labels, wanted.Labels), merged(edited.Annotations,
		wanted.Annotations)
	return edited
}

func merged(have, more map[string]string) map[string]string {
	if len(more) == 0 {
		return have
	}
	all := map[string]string{}
	maps.Copy(all, have)
	maps.Copy(all, more)
	return all
}
