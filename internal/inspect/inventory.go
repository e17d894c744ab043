package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
	"github.com/machine-iac/machine-iac-operator/internal/installation"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// readInventories adds the instances that the last inventories have found to belong to nobody.
func (l *OrphanList) readInventories(ctx context.Context, c *Cluster) error {
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
	case Denied(err):
		l.Notes = append(l.Notes, "you may not read the ConfigMap "+lifecycle.InventoryConfigMap+", so that instances without a Machine are not known; "+RightsHint)
		return nil
	case client.IgnoreNotFound(err) != nil:
		return err
	}
	for i := range kept.Items {
		if err := l.takeInventory(ctx, c, &kept.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// takeInventory adds the instances of one inventory. Whoever may write ConfigMaps could name an instance there that somebody is to destroy, so that it
// counts only as the operator has written it.
func (l *OrphanList) takeInventory(ctx context.Context, c *Cluster, kept *corev1.ConfigMap) error {
	text := kept.Data[lifecycle.InventoryKey]
	if text == "" {
		return nil
	}
	var own types.UID
	name := kept.Namespace + "/" + kept.Name
	switch by, err := installation.Read(ctx, c.Reader(), kept.Namespace); {
	case Denied(err), apierrors.IsNotFound(err):
		l.Notes = append(l.Notes, fmt.Sprintf("nothing proves that the operator wrote the ConfigMap %s, as the Secret %s cannot be read: compare what it lists with the infrastructure", name, installation.SecretName))
	case err != nil:
		return err
	case !by.Signed(kept.Data[installation.CodeKey], lifecycle.InventoryConfigMap, kept.Namespace, text):
		l.Notes = append(l.Notes, fmt.Sprintf("the ConfigMap %s is not as the operator wrote it, so that its instances are not shown; the next inventory replaces it", name))
		return nil
	default:
		own = by.UID()
	}
	var report lifecycle.InventoryReport
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		return fmt.Errorf("reading the ConfigMap %s: %w; remove it: the operator writes it again", name, err)
	}
	for _, problem := range report.Problems {
		l.Notes = append(l.Notes, "the last inventory: "+print.OneLine(problem))
	}
	for _, one := range report.Instances {
		if one.Orphaned {
			l.Items = append(l.Items, newInstance(kept.Namespace, own, one))
		}
	}
	return nil
}

func newInstance(namespace string, own types.UID, one lifecycle.OrphanedInstance) Orphan {
	since := metav1.NewTime(one.FirstSeen)
	whose := whose(one.Installation, string(own))
	if !one.LastListed.IsZero() {
		whose += "; last listed " + one.LastListed.UTC().Format(time.RFC3339) + ", as no Machine could list its place since"
	}
	return Orphan{
		Kind: OrphanInstance, Namespace: namespace, UID: types.UID(one.MachineUID), Instance: one.Name, ProviderID: one.ProviderID, ListedBy: one.ListedBy, Since: &since,
		Module: one.Module, Installation: one.Installation, Whose: whose, Resources: []statefile.ResourceID{},
	}
}

const thisInstallation = "this installation made it"

// whose says which installation of the operator made an instance, given the UID of the one that lists it, which is empty where it is not known.
func whose(made, own string) string {
	switch {
	case made == "":
		return "it bears no installation's UID, and may belong to somebody else"
	case own == "":
		return "the installation with the UID " + made + " made it"
	case made == own:
		return thisInstallation
	default:
		return "another installation made it, with the UID " + made + ", and may have a Machine for it"
	}
}
