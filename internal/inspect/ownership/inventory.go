package ownership

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/inspect"
	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// readInventories adds the instances that the last inventories have found to belong to nobody.
func (l *OrphanList) readInventories(ctx context.Context, c *inspect.Cluster) error {
	kept := &corev1.ConfigMapList{}
	var err error
	if c.Namespace() == "" {
		err = c.Reader().List(ctx, kept, client.MatchingFields{"metadata.name": lifecycle.InventoryConfigMap})
	} else {
		one := corev1.ConfigMap{}
		err = c.Reader().Get(ctx, client.ObjectKey{Namespace: c.Namespace(), Name: lifecycle.InventoryConfigMap}, &one)
		kept.Items = append(kept.Items, one)
	}
	switch {
	case inspect.Denied(err):
		l.Notes = append(l.Notes, "you may not read the ConfigMap "+lifecycle.InventoryConfigMap+", so that instances without a Machine are not known; "+inspect.RightsHint)
		return nil
	case client.IgnoreNotFound(err) != nil:
		return err
	}
	for i := range kept.Items {
		text := kept.Items[i].Data[lifecycle.InventoryKey]
		var report lifecycle.InventoryReport
		if err := json.Unmarshal([]byte(text), &report); text != "" && err != nil {
			return fmt.Errorf("reading the ConfigMap %s/%s: %w; remove it: the operator writes it again", kept.Items[i].Namespace, kept.Items[i].Name, err)
		}
		for _, problem := range report.Problems {
			l.Notes = append(l.Notes, "the last inventory: "+print.OneLine(problem))
		}
		for _, one := range report.Instances {
			if one.Orphaned {
				l.Items = append(l.Items, newInstance(kept.Items[i].Namespace, one))
			}
		}
	}
	return nil
}

func newInstance(namespace string, one lifecycle.OrphanedInstance) Orphan {
	since := metav1.NewTime(one.FirstSeen)
	return Orphan{
		Kind: OrphanInstance, Namespace: namespace, UID: types.UID(one.MachineUID), Instance: one.Name, ProviderID: one.ProviderID, ListedBy: one.ListedBy, Since: &since,
		Module: one.Module, Resources: []statefile.ResourceID{},
	}
}
