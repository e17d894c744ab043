package driver

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/machine-iac/machine-iac-operator/gardener/azure"
)

const (
	// Provider is spec.provider of MachineClasses whose providerSpec is one of the operator's.
	Provider = "machine-iac"

	labelManagedBy = "app.kubernetes.io/managed-by"
	// labelUsable lets Machines of ours name a Secret for a use.
	labelUsable     = "machine-iac.io/usable-by-machines"
	managedBy       = "machine-controller-manager"
	labelCluster    = "machine.openshift.io/cluster-api-cluster"
	annotationClass = "machine-iac.io/machine-class"
	annotationDrain = "machine.openshift.io/exclude-node-draining"

	hookName  = "machine-controller-manager"
	hookOwner = "machine-controller-manager-provider-iac"

	keyUserData = "userData"
)

// desired is what the driver writes for one Machine of MCM.
type desired struct {
	owner *mcm.Machine
	class string
	// providerSpec is the Machine's spec.providerSpec.value.
	providerSpec map[string]any
	// userData is the Secret with the user data; nil where the class has none.
	userData *corev1.Secret
	// credentials is the Secret that Machines of the class name: a copy of the class's own with the label that allows it, and with the names of keys that the
	// modules read; nil where the providerSpec names one itself.
	credentials *corev1.Secret
}

// references are the fields of a providerSpec that name the Secrets with credentials and user data.
type references struct{ credentials, userData string }

// referencesOf returns those of a kind. All kinds of OpenShift but one, and the operator's own, agree.
func referencesOf(kind string) references {
	if strings.EqualFold(kind, openstackKind) {
		return references{credentials: "cloudsSecret", userData: "userDataSecret"}
	}
	return references{credentials: "credentialsSecret", userData: "userDataSecret"}
}

// validateClass returns why a class is none of this driver's.
func validateClass(class *mcm.MachineClass) error {
	switch {
	case class == nil:
		return failed(codes.InvalidArgument, "the request has no MachineClass")
	case class.Provider != Provider && class.Provider != azure.Provider:
		return failed(codes.InvalidArgument, fmt.Sprintf("MachineClass %s: provider is %q; it must be %q, or %q for a providerSpec of Gardener's Azure provider",
			class.Name, class.Provider, Provider, azure.Provider))
	}
	return nil
}

// newDesired returns what is written for a Machine of MCM. Errors are InvalidArgument and name the field.
func newDesired(owner *mcm.Machine, class *mcm.MachineClass, secret *corev1.Secret) (*desired, error) {
	if err := validateClass(class); err != nil {
		return nil, err
	}
	value, err := providerSpecOf(class)
	if err != nil {
		return nil, failed(codes.InvalidArgument, fmt.Sprintf("MachineClass %s: %s", class.Name, err))
	}
	w := &desired{owner: owner, class: class.Name, providerSpec: value}
	kind, _ := value["kind"].(string)
	refer := referencesOf(kind)
	if _, given := value[refer.userData]; !given && secret != nil && len(secret.Data[keyUserData]) > 0 {
		w.userData = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: owner.Namespace, Name: owner.Name + "-user-data", Labels: usableFor("user-data")},
			Data:       map[string][]byte{keyUserData: secret.Data[keyUserData]},
		}
		value[refer.userData] = map[string]any{"name": w.userData.Name}
	}
	if _, given := value[refer.credentials]; !given {
		name, made, err := credentialsOf(class, secret)
		if err != nil {
			return nil, err
		}
		if w.credentials = made; name != "" {
			value[refer.credentials] = map[string]any{"name": name}
		}
		if made != nil && isOpenStack(secret.Data) {
			nameCloud(value)
		}
	}
	return w, nil
}

// providerSpecOf returns the operator's providerSpec that a class stands for.
func providerSpecOf(class *mcm.MachineClass) (map[string]any, error) {
	var value map[string]any
	if err := json.Unmarshal(class.ProviderSpec.Raw, &value); err != nil {
		return nil, fmt.Errorf("providerSpec: it is no object: %w", err)
	}
	if class.Provider == azure.Provider {
		return azure.ProviderSpec(value)
	}
	for _, field := range []string{"apiVersion", "kind"} {
		if text, _ := value[field].(string); text == "" {
			return nil, fmt.Errorf("providerSpec.%s: it is missing; write the providerSpec as a Machine of machine.openshift.io has it, for example with kind TerraformMachineProviderSpec", field)
		}
	}
	return value, nil
}

// credentialsOf returns the Secret with a class's credentials that Machines name, which the driver writes: the class's own is not for whoever may write
// Machines. Errors are InvalidArgument.
func credentialsOf(class *mcm.MachineClass, secret *corev1.Secret) (string, *corev1.Secret, error) {
	reference := class.CredentialsSecretRef
	if reference == nil {
		reference = class.SecretRef
	}
	if reference == nil || secret == nil {
		return "", nil, nil
	}
	data, suffix := aliased(secret.Data), "-machine-iac"
	if isOpenStack(secret.Data) {
		var err error
		if data, err = openstackCredentials(secret.Data, regionOf(class)); err != nil {
			return "", nil, failed(codes.InvalidArgument, fmt.Sprintf("MachineClass %s: Secret %s: %s", class.Name, reference.Name, err))
		}
		suffix = inRegion(regionOf(class)) + suffix
	}
	delete(data, keyUserData)
	return reference.Name + suffix, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: class.Namespace, Name: reference.Name + suffix, Labels: usableFor("credentials")},
		Data:       data,
	}, nil
}

// aliases has the names that the modules read keys by, for each name that Gardener's Secrets have. Both of Gardener's generations of names are here.
var aliases = map[string]string{
	"accessKeyID": "aws_access_key_id", "providerAccessKeyId": "aws_access_key_id",
	"secretAccessKey": "aws_secret_access_key", "providerSecretAccessKey": "aws_secret_access_key",
	"clientID": "azure_client_id", "azureClientId": "azure_client_id",
	"clientSecret": "azure_client_secret", "azureClientSecret": "azure_client_secret",
	"subscriptionID": "azure_subscription_id", "azureSubscriptionId": "azure_subscription_id",
	"tenantID": "azure_tenant_id", "azureTenantId": "azure_tenant_id",
	"serviceaccount.json": "service_account.json", "serviceAccountJSON": "service_account.json",
}

// usableFor returns the labels of a Secret of the driver's that Machines may use.
func usableFor(use string) map[string]string {
	return map[string]string{labelManagedBy: managedBy, labelUsable: use}
}

// aliased returns credentials with the keys that the modules read beside those of Gardener.
func aliased(data map[string][]byte) map[string][]byte {
	all := map[string][]byte{}
	maps.Copy(all, data)
	for _, key := range slices.Sorted(maps.Keys(data)) {
		alias, known := aliases[key]
		if !known {
			continue
		}
		if _, given := data[alias]; !given {
			all[alias] = data[key]
		}
	}
	return all
}

// object returns the Machine to create.
func (w *desired) object() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "machine.openshift.io/v1beta1",
		"kind":       "Machine",
		"metadata": map[string]any{
			"namespace": w.owner.Namespace,
			"name":      w.owner.Name,
			"labels":    map[string]any{labelManagedBy: managedBy, labelCluster: w.owner.Namespace},
			"annotations": map[string]any{
				annotationClass: w.class,
				annotationDrain: "",
			},
			"ownerReferences": []any{ownedBy("machine.sapcloud.io/v1alpha1", w.owner.Name, string(w.owner.UID))},
		},
		"spec": map[string]any{
			"lifecycleHooks": map[string]any{"preTerminate": []any{map[string]any{"name": hookName, "owner": hookOwner}}},
			"providerSpec":   map[string]any{"value": w.providerSpec},
		},
	}}
}

// ownedBy returns a reference to the Machine that controls an object. Both kinds of owners are called Machine.
func ownedBy(apiVersion, name, uid string) map[string]any {
	return map[string]any{"apiVersion": apiVersion, "kind": "Machine", "name": name, "uid": uid, "controller": true}
}
