// Package operands builds the objects that machine-api-operator applies from manifests and the
// cluster's configuration. It is pure: the same manifests and inputs give the same objects.
package operands

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

const (
	// Namespace is the one in the manifests.
	Namespace = "openshift-machine-api"
	// Deployment is the name of the controllers' Deployment, which other software knows it by.
	Deployment = "machine-api-controllers"
	// WebhookConfiguration is the name of both webhook configurations.
	WebhookConfiguration = "machine-api"
	// TrustedCA is the ConfigMap in the operator's namespace with further certificate authorities. On
	// OpenShift they are injected.
	TrustedCA = "mao-trusted-ca"
	// TrustedCAKey is its key.
	TrustedCAKey = "ca-bundle.crt"

	// OwnedAnnotation marks objects that the operator has applied, like machine-api-operator's.
	OwnedAnnotation = "machine.openshift.io/owned"
	// ManagedByLabel marks it too, since objects cannot be selected by annotations.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	// ManagedBy is the value of that label.
	ManagedBy = "machine-api-operator"
	// VersionAnnotation on the Deployment has the version of the operator that applied it.
	VersionAnnotation = "machine-iac.io/version"

	container     = "machine-controllers"
	placeholder   = "machine-iac-operator" // the image in the manifests
	webhookSecret = "machine-api-operator-webhook-cert"
	webhookCerts  = "/etc/machine-api-operator/tls"
	// metricsSecret has machine-api-operator's name; OpenShift's Prometheus mounts serviceCAFile.
	metricsSecret = "machine-api-controllers-tls"
	metricsCerts  = "/etc/machine-api-controllers/tls"
	serviceCAFile = "/etc/prometheus/configmaps/serving-certs-ca-bundle/service-ca.crt"
	// keysDriver is the Secrets Store CSI driver, whose volumes are no Secrets of the namespace.
	keysDriver     = "secrets-store.csi.k8s.io"
	moduleKeyMount = "/etc/machine-iac/module-keys"
	stateKeyMount  = "/etc/machine-iac/state-keys"
	caMount        = "/etc/pki/ca-trust/extracted/pem"
	caFile         = "tls-ca-bundle.pem"
	caHash         = "operator.openshift.io/dep-" + Namespace + "." + TrustedCA + ".configmap"
)

// ControllerLabels select the Pods of the controllers.
var ControllerLabels = map[string]string{"app.kubernetes.io/name": "machine-iac-operator",
	"app.kubernetes.io/component": "machine-controllers"}

// Inputs are what the objects depend on besides the manifests.
type Inputs struct {
	// Namespace is the operator's own, where the controllers run and Machines are managed.
	Namespace string
	// Version is that of the operator.
	Version string
	// Image is that of the controllers.
	Image string
	// SingleReplica is true if the control plane has one node, so there is no room for a second
	// replica.
	SingleReplica bool
	// Placement is where the controllers' Pods run.
	Placement Placement
	// Tuning is what an administrator sets of the controllers.
	Tuning Tuning
	// Proxy is how the controllers reach what is outside the cluster; empty values are not set.
	Proxy Proxy
	// TrustedCA is the hash of the CAs in the ConfigMap [TrustedCA], or empty.
	TrustedCA string
	// TLS is what the servers of the controllers accept.
	TLS TLS
	// ServiceCA is true where OpenShift's service CA makes serving certificates.
	ServiceCA bool
	// TerminationHandler has the termination handler run on Nodes of Spot instances.
	TerminationHandler bool
	// Policies is true if the cluster has ValidatingAdmissionPolicies.
	Policies bool
	// FailureDomains has admission policies applied that keep vSphere's failure domains while Machines use
	// them.
	FailureDomains bool
	// Monitoring has alerts and the dashboard made, where the cluster has the API of the Prometheus
	// Operator.
	Monitoring bool
	// Console has the dashboard made in OpenShift's namespace for those of its console, instead of the
	// operator's with the label for Grafana.
	Console bool
	// WithoutWebhooks leaves the webhooks out.
	WithoutWebhooks bool
	// WithoutHealthChecks runs no controller of MachineHealthChecks.
	WithoutHealthChecks bool
	// FeatureGates are OpenShift's that the controllers follow; none are passed without OpenShift.
	FeatureGates map[string]bool
	// Egress is what the controllers reach besides name servers; everything where it is empty.
	Egress []Destination
	// ModuleKeys is the SecretProviderClass with the keys that sign stored modules, in the same
	// namespace; empty for none.
	ModuleKeys string
	// StateKeys is the SecretProviderClass with the keys that encrypt states, likewise.
	StateKeys string
	// Arguments are further flags of the controllers.
	Arguments []string
}

// Proxy is the cluster's proxy, as programs read it from their environment. The keys are those of
// OpenShift's Proxy.
type Proxy struct {
	HTTP  string `json:"httpProxy,omitempty"`
	HTTPS string `json:"httpsProxy,omitempty"`
	No    string `json:"noProxy,omitempty"`
}

// TLS restricts the connections that servers accept; zero values leave Go's defaults.
type TLS struct {
	// MinVersion is written as in k8s.io/component-base/cli/flag, such as VersionTLS12.
	MinVersion string
	// CipherSuites are by their names in package crypto/tls.
	CipherSuites []string
}

// Render returns the objects of the manifests for the inputs, in the order in which they are to be
// applied.
func Render(manifests fs.FS, in Inputs) ([]*unstructured.Unstructured, error) {
	if in.Namespace == "" || in.Image == "" {
		return nil, errors.New("rendering the operands: the namespace or the image of the controllers is missing")
	}
	objects, err := in.read(manifests, in.wants)
	if err != nil {
		return nil, err
	}
	if in.Monitoring {
		board, err := in.dashboard(manifests)
		if err != nil {
			return nil, err
		}
		objects = append(objects, board)
	}
	for _, one := range objects {
		if err := in.complete(one); err != nil {
			return nil, fmt.Errorf("rendering %s %s: %w", one.GetKind(), one.GetName(), err)
		}
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return cmp.Compare(rank(a), rank(b)) })
	return objects, nil
}

// Folders of the manifests.
const (
	terminationHandler = "termination-handler"
	monitoring         = "monitoring"
	failureDomains     = "vsphere"
)

// wants reports whether an object of a folder is to be applied.
func (in Inputs) wants(folder string, object *unstructured.Unstructured) bool {
	switch folder {
	case terminationHandler:
		return in.TerminationHandler
	case monitoring:
		return in.Monitoring
	case failureDomains:
		return in.FailureDomains
	}
	return !in.WithoutWebhooks || !isWebhook(object)
}

// read returns the selected objects of the manifests. It skips kustomizations, since the manifests
// need no transformation.
func (in Inputs) read(manifests fs.FS,
	picked func(string, *unstructured.Unstructured) bool) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	err := fs.WalkDir(manifests, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".yaml" || entry.Name() == "kustomization.yaml" {
			return err
		}
		content, err := fs.ReadFile(manifests, name)
		if err != nil {
			return err
		}
		for documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
			object := &unstructured.Unstructured{}
			if err := documents.Decode(&object.Object); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			folder, _, _ := strings.Cut(name, "/")
			if len(object.Object) > 0 && picked(folder, object) {
				in.move(object.Object)
				objects = append(objects, object)
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("reading the manifests: %w", err)
	}
	return objects, nil
}

func isWebhook(object *unstructured.Unstructured) bool {
	return strings.HasSuffix(object.GetKind(), "WebhookConfiguration")
}

// rank orders objects: dependencies first, and what calls the Deployment's Pods last.
func rank(object *unstructured.Unstructured) int {
	switch object.GetKind() {
	case "ServiceAccount":
		return 0
	case "Role", "ClusterRole":
		return 1
	case "RoleBinding", "ClusterRoleBinding":
		return 2
	case "Deployment", "DaemonSet":
		return 4
	}
	if isWebhook(object) {
		return 5
	}
	return 3
}

// Unwanted returns the objects of the manifests that the inputs exclude and that may have been
// applied before. Without monitoring and vSphere, the cluster may not know the kinds.
func Unwanted(manifests fs.FS, in Inputs) ([]*unstructured.Unstructured, error) {
	return in.read(manifests, func(folder string, object *unstructured.Unstructured) bool {
		return folder != monitoring && (folder != failureDomains || in.Policies) && !in.wants(folder, object)
	})
}

// Manifests returns the objects of manifests for a namespace, as they are, in the order in which
// they are applied.
func Manifests(manifests fs.FS, namespace string) ([]*unstructured.Unstructured, error) {
	objects, err := Inputs{Namespace: namespace}.read(manifests,
		func(string, *unstructured.Unstructured) bool { return true })
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return cmp.Compare(rank(a), rank(b)) })
	return objects, err
}

// All returns every object that the operator may have applied in a namespace, in apply order.
func All(manifests fs.FS, namespace string) ([]*unstructured.Unstructured, error) {
	objects, err := Manifests(manifests, namespace)
	if err != nil {
		return nil, err
	}
	in := Inputs{Namespace: namespace}
	for _, in.Console = range []bool{false, true} {
		board, err := in.dashboard(manifests)
		if err != nil {
			return nil, err
		}
		objects = append(objects, board)
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return cmp.Compare(rank(a), rank(b)) })
	return objects, nil
}
