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
	// Provider is spec.provider of MachineClasses with one of the operator's providerSpecs.
	Provider = "machine-iac"

	labelManagedBy = "app.kubernetes.io/managed-by"
	// labelUsable allows this driver's Machines to name a Secret for a use.
	labelUsable     = "machine-iac.io/usable-by-machines"
	managedBy       = "machine-controller-manager"
	labelCluster    = "machine.openshift.io/cluster-api-cluster"
	annotationClass = "machine-iac.io/machine-class"
	annotationDrain = "machine.openshift.io/exclude-node-draining"

	hookName  = "machine-controller-manager"
	hookOwner = "machine-controller-manager-provider-iac"

	keyUserData = "userData"
)

// desired is what the driver writes for one MCM Machine.
type desired struct {
	owner *mcm.Machine
	class string
	// providerSpec is the Machine's spec.providerSpec.value.
	providerSpec map[string]any
	// userData is the Secret with the user data; nil if the class has none.
	userData *corev1.Secret
	// credentials is the Secret that the class's Machines name. It is a copy of the class's own,
	// with the label that permits its use and the key names that the modules read. It is nil if the
	// providerSpec names a Secret itself.
	credentials *corev1.Secret
}

// references are the providerSpec fields that name the Secrets with credentials and user data.
type references struct{ credentials, userData string }

// referencesOf returns the references of a kind. All OpenShift kinds but one agree with the
// operator's own.
func referencesOf(kind string) references {
	if strings.EqualFold(kind, openstackKind) {
		return references{credentials: "cloudsSecret", userData: "userDataSecret"}
	}
	return references{credentials: "credentialsSecret", userData: "userDataSecret"}
}

// validateClass returns why a class does not belong to this driver.
func validateClass(class *mcm.MachineClass) error {
	switch {
	case class == nil:
		return failed(codes.InvalidArgument, "the request has no MachineClass")
	case class.Provider != Provider && class.Provider != azure.Provider:
		return failed(codes.InvalidArgument,
			fmt.Sprintf("MachineClass %s: provider is %q; must be %q, or %q for a providerSpec of Gardener's Azure provider",
				class.Name, class.Provider, Provider, azure.Provider))
	}
	return nil
}

// newDesired returns what to write for an MCM Machine. Errors are InvalidArgument and name the
// field.
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
			ObjectMeta: metav1.ObjectMeta{Namespace: owner.Namespace, Name: owner.Name + "-user-data",
				Labels: usableFor("user-data")},
			Data: map[string][]byte{keyUserData: secret.Data[keyUserData]},
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

// providerSpecOf returns the operator's providerSpec for a class.
func providerSpecOf(class *mcm.MachineClass) (map[string]any, error) {
	var value map[string]any
	if err := json.Unmarshal(class.ProviderSpec.Raw, &value); err != nil {
		return nil, fmt.Errorf("providerSpec: not an object: %w", err)
	}
	if class.Provider == azure.Provider {
		return azure.ProviderSpec(value)
	}
	for _, field := range []string{"apiVersion", "kind"} {
		if text, _ := value[field].(string); text == "" {
			return nil, fmt.Errorf("providerSpec.%s: missing; use a providerSpec of machine.openshift.io, for example of "+
				"kind TerraformMachineProviderSpec", field)
		}
	}
	return value, nil
}

// credentialsOf returns the Secret that Machines name for a class's credentials, which the driver
// writes. Authors of Machines must not be able to name the class's own Secret. Errors are
// InvalidArgument.
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
			return "", nil, failed(codes.InvalidArgument, fmt.Sprintf("MachineClass %s: Secret %s: %s", class.Name,
				reference.Name, err))
		}
		suffix = inRegion(regionOf(class)) + suffix
	}
	delete(data, keyUserData)
	return reference.Name + suffix, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: class.Namespace, Name: reference.Name + suffix,
			Labels: usableFor("credentials")},
		Data: data,
	}, nil
}

// aliases maps the key names of Gardener's Secrets, in both of their generations, to those that the
// modules read.
var aliases = map[string]string{
	"accessKeyID": "aws_access_key_id", "providerAccessKeyId": "aws_access_key_id",
	"secretAccessKey": "aws_secret_access_key", "providerSecretAccessKey": "aws_secret_access_key",
	"clientID": "azure_client_id", "azureClientId": "azure_client_id",
	"clientSecret": "azure_client_secret", "azureClientSecret": "azure_client_secret",
	"subscriptionID": "azure_subscription_id", "azureSubscriptionId": "azure_subscription_id",
	"tenantID": "azure_tenant_id", "azureTenantId": "azure_tenant_id",
	"serviceaccount.json": "service_account.json", "serviceAccountJSON": "service_account.json",
}

// usableFor returns the labels of a Secret of the driver that Machines may use.
func usableFor(use string) map[string]string {
	return map[string]string{labelManagedBy: managedBy, labelUsable: use}
}

// aliased adds the keys that the modules read to Gardener's credentials.
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

// ownedBy returns a controller reference to a Machine. Both kinds of owners are called Machine.
func ownedBy(apiVersion, name, uid string) map[string]any {
	return map[string]any{"apiVersion": apiVersion, "kind": "Machine", "name": name, "uid": uid, "controller": true}
}
