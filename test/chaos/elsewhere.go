package chaos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/openstack"
)

// deleteFirst makes a scale-down of the MachineSet delete this Machine first.
const deleteFirst = "machine.openshift.io/delete-machine"

// elsewhere is in the condition of a Machine whose create may have made an instance that its current credentials do not
// reach.
const elsewhere = "may have been created in another place"

// emptyOthersProject does what the condition of a Machine created with another account's credentials asks for: it
// restores those credentials, waits for the deletion of the Machine, and switches back.
func (r *round) emptyOthersProject(ctx context.Context) error {
	if !slices.Contains(r.outcome.Injected, credentialsOthers) {
		return nil
	}
	// By then, runs that started with those credentials have ended or created something.
	time.Sleep(r.options.Lease)
	return until(ctx, 4*r.options.Patience, func(ctx context.Context) error { // each deletion may take Patience
		strays, pending, err := r.straysOf(ctx, r.cloud.MachinesIn(r.theirs.Project))
		if err != nil || len(strays) == 0 {
			return err
		}
		if pending > 0 {
			// They would be created in the other project as soon as its credentials are back.
			return fmt.Errorf("%d Machines were made in another project; %d others are being made", len(strays),
				pending)
		}
		if err := r.deleteStrays(ctx, strays); err != nil {
			return err
		}
		return fmt.Errorf("%d Machines were made in another project", len(strays))
	})
}

// straysOf returns the Machines with these UIDs and those whose condition says that they may be elsewhere, and how many
// others have no instance yet.
func (r *round) straysOf(ctx context.Context, uids []string) (strays []machinev1beta1.Machine, pending int, err error) {
	var all machinev1beta1.MachineList
	if err := r.client.List(ctx, &all, client.InNamespace(lab.Namespace)); err != nil {
		return nil, 0, err
	}
	for _, m := range all.Items {
		at := slices.IndexFunc(m.Status.Conditions,
			func(c machinev1beta1.Condition) bool { return c.Type == machinev1beta1.InstanceExistsCondition })
		switch {
		case slices.Contains(uids, string(m.UID)),
			at >= 0 && strings.Contains(m.Status.Conditions[at].Message, elsewhere):
			strays = append(strays, m)
		case m.DeletionTimestamp == nil && (at < 0 || m.Status.Conditions[at].Status != corev1.ConditionTrue):
			pending++
		}
	}
	return strays, pending, nil
}

// deleteStrays deletes Machines with the other account's credentials, by scaling their MachineSets down. It restores
// the sizes after the credentials, so that no replacement is created in the other project.
func (r *round) deleteStrays(ctx context.Context, strays []machinev1beta1.Machine) error {
	theirs := r.theirs
	theirs.Cloud = openstack.CloudName
	if err := r.putSecret(ctx, openstackCredentials, r.clouds(theirs)); err != nil {
		return err
	}
	r.mu.Lock()
	wanted := maps.Clone(r.expected.Replicas)
	r.mu.Unlock()
	less := map[string]int{}
	for _, stray := range strays {
		if _, kept := wanted[stray.Labels[setLabel]]; !kept || stray.DeletionTimestamp != nil {
			continue
		}
		before := stray.DeepCopy()
		metav1.SetMetaDataAnnotation(&stray.ObjectMeta, deleteFirst, "true")
		if err := r.client.Patch(ctx, &stray, client.MergeFrom(before)); err != nil {
			return err
		}
		less[stray.Labels[setLabel]]++
	}
	for set, count := range less {
		if err := r.scale(ctx, set, max(0, wanted[set]-count)); err != nil {
			return err
		}
	}
	gone := until(ctx, r.options.Patience, func(ctx context.Context) error {
		for _, stray := range strays {
			err := r.client.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: stray.Name},
				&machinev1beta1.Machine{})
			if client.IgnoreNotFound(err) != nil || err == nil {
				return fmt.Errorf("Machine %s, which was made in another project, is not gone: %w", stray.Name, err)
			}
		}
		return nil
	})
	ctx = context.WithoutCancel(ctx) // restore the credentials in any case
	if err := r.putSecret(ctx, openstackCredentials, r.clouds(r.mine, r.theirs)); err != nil {
		return err
	}
	for set := range less {
		if err := r.scale(ctx, set, wanted[set]); err != nil {
			return err
		}
	}
	return gone
}
