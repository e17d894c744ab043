// Package controlplane starts a real API server for tests: etcd and kube-apiserver, with the Machine API's CRDs.
//
// Nothing else runs: no garbage collector, no namespace controller, no kubelet. Dependents stay when their owner is
// deleted, and deleting a namespace does not empty it, so each test creates its own namespace and leaves it behind.
package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubernetes "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
)

// assetsVariable is the environment variable with the folder of etcd and kube-apiserver.
const assetsVariable = "KUBEBUILDER_ASSETS"

const apiModule = "github.com/openshift/api"

// FeatureSet selects a variant of the Machine and MachineSet CRDs.
type FeatureSet string

const (
	// Default has only stable fields.
	Default FeatureSet = "Default"
	// CustomNoUpgrade has all gated fields, such as spec.authoritativeAPI.
	CustomNoUpgrade FeatureSet = "CustomNoUpgrade"
)

type ControlPlane struct {
	// Config is an administrator's.
	Config *rest.Config
	// Scheme has Kubernetes' types, the Machine API, and OpenShift's cluster configuration.
	Scheme *kubernetes.Scheme
	// Client does not cache.
	Client client.Client

	environment *envtest.Environment
}

// Option configures an API server.
type Option func(*envtest.Environment)

// WithWebhooks registers webhooks. Their Services are redirected to [ControlPlane.WebhookServer].
func WithWebhooks(mutating *admissionregistrationv1.MutatingWebhookConfiguration,
	validating *admissionregistrationv1.ValidatingWebhookConfiguration,
) Option {
	return func(environment *envtest.Environment) {
		environment.WebhookInstallOptions = envtest.WebhookInstallOptions{
			MutatingWebhooks:   []*admissionregistrationv1.MutatingWebhookConfiguration{mutating},
			ValidatingWebhooks: []*admissionregistrationv1.ValidatingWebhookConfiguration{validating},
		}
	}
}

// Start starts an API server with the CRDs. The caller stops it.
func Start(features FeatureSet, options ...Option) (*ControlPlane, error) {
	root, err := repositoryRoot()
	if err != nil {
		return nil, err
	}
	assets, err := assetsDirectory(os.Getenv(assetsVariable), root)
	if err != nil {
		return nil, err
	}
	crds, err := crdFiles(root, features)
	if err != nil {
		return nil, err
	}
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	plane := &ControlPlane{Scheme: scheme, environment: &envtest.Environment{
		BinaryAssetsDirectory: assets,
		Scheme:                scheme,
		CRDInstallOptions:     envtest.CRDInstallOptions{Paths: crds, ErrorIfPathMissing: true},
		// On a busy machine the usual 20 seconds are too few.
		ControlPlaneStartTimeout: 2 * time.Minute,
		ControlPlaneStopTimeout:  time.Minute,
	}}
	for _, option := range options {
		option(plane.environment)
	}
	if plane.Config, err = plane.environment.Start(); err != nil {
		return nil, fmt.Errorf("starting the API server from %s: %w", assets,
			errors.Join(err, plane.environment.Stop()))
	}
	// Tests are the only clients; throttling would only slow them down.
	plane.Config.QPS = -1
	if plane.Client, err = client.New(plane.Config, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("making a client: %w", errors.Join(err, plane.environment.Stop()))
	}
	if err := plane.settle(context.Background()); err != nil {
		return nil, errors.Join(err, plane.environment.Stop())
	}
	return plane, nil
}

// settle backdates the CRDs. While a CRD is new, the API server delays each create by two seconds, for the sake of
// other API servers.
func (p *ControlPlane) settle(ctx context.Context) error {
	crds, err := client.New(p.Config, client.Options{}) // the default scheme has CRDs
	if err != nil {
		return fmt.Errorf("making a client for CRDs: %w", err)
	}
	for _, crd := range p.environment.CRDs {
		if err := crds.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
			return fmt.Errorf("reading the CRD %s: %w", crd.Name, err)
		}
		before := crd.DeepCopy()
		for i := range crd.Status.Conditions {
			crd.Status.Conditions[i].LastTransitionTime = metav1.Unix(0, 0)
		}
		if err := crds.Status().Patch(ctx, crd, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("backdating the CRD %s: %w", crd.Name, err)
		}
	}
	return nil
}

// Stop stops the API server and etcd, and removes their data.
func (p *ControlPlane) Stop() error {
	if err := p.environment.Stop(); err != nil {
		return fmt.Errorf("stopping the API server: %w", err)
	}
	return nil
}

// WebhookServer returns a server for the webhooks of [WithWebhooks], with a certificate that the API server trusts, or
// nil without webhooks. Only one can listen at a time.
func (p *ControlPlane) WebhookServer() webhook.Server {
	installed := p.environment.WebhookInstallOptions
	if len(installed.MutatingWebhooks)+len(installed.ValidatingWebhooks) == 0 {
		return nil
	}
	return webhook.NewServer(webhook.Options{
		Host: installed.LocalServingHost, Port: installed.LocalServingPort, CertDir: installed.LocalServingCertDir,
	})
}

// Namespace creates a namespace with a random name.
func (p *ControlPlane) Namespace(ctx context.Context) (string, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := p.Client.Create(ctx, namespace); err != nil {
		return "", fmt.Errorf("making a namespace: %w", err)
	}
	return namespace.Name, nil
}

// Create stores objects and their status, which a plain create drops, and updates them with the response. Controllers
// may change the objects concurrently.
func (p *ControlPlane) Create(ctx context.Context, objects ...client.Object) error {
	for _, object := range objects {
		status, err := statusPatch(object)
		if err != nil {
			return err
		}
		if err := p.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
		}
		if status == nil {
			continue
		}
		if err := p.Client.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, status)); err != nil {
			return fmt.Errorf("writing the status of %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// statusPatch returns a merge patch of the object's status without a resource version, or nil if it has no status.
func statusPatch(object client.Object) ([]byte, error) {
	content, err := kubernetes.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("reading the status of %T %s: %w", object, object.GetName(), err)
	}
	status, ok := content["status"].(map[string]any)
	if !ok || len(status) == 0 {
		return nil, nil
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return nil, fmt.Errorf("writing the status of %T %s as JSON: %w", object, object.GetName(), err)
	}
	return patch, nil
}

// Scheme returns a scheme with Kubernetes' types, the Machine API, and OpenShift's cluster configuration.
func Scheme() (*kubernetes.Scheme, error) {
	scheme := kubernetes.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), machinev1beta1.Install(scheme),
		v1beta1.AddToScheme(scheme), configv1.Install(scheme)); err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	return scheme, nil
}

// repositoryRoot searches upwards from the working directory, which go test sets to the package's. With -trimpath the
// source path is unknown.
func repositoryRoot() (string, error) {
	began, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	for folder := began; ; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "hack", "tools.sh")); err == nil {
			return folder, nil
		}
		if folder == filepath.Dir(folder) {
			return "", fmt.Errorf("finding the repository: neither %s nor a folder above it has hack/tools.sh; start "+
				"the test in the repository", began)
		}
	}
}

// assetsDirectory returns the folder of the binaries: configured, or by default the repository's bin.
func assetsDirectory(configured, root string) (string, error) {
	directory := configured
	if directory == "" {
		directory = filepath.Join(root, "bin")
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if _, err := os.Stat(filepath.Join(directory, name)); err != nil {
			return "", fmt.Errorf("looking for %s in %s: %w; run `make tools`, or set %s to a folder that has it",
				name, directory, err, assetsVariable)
		}
	}
	return directory, nil
}

// crdFiles returns the manifests of the Machine API, in the module version that the code is built with.
func crdFiles(root string, features FeatureSet) ([]string, error) {
	directory, err := apiDirectory(root)
	if err != nil {
		return nil, err
	}
	manifests := filepath.Join(directory, "machine", "v1beta1", "zz_generated.crd-manifests")
	return []string{
		filepath.Join(manifests, "0000_10_machine-api_01_machinehealthchecks.crd.yaml"),
		filepath.Join(manifests, fmt.Sprintf("0000_10_machine-api_01_machines-%s.crd.yaml", features)),
		filepath.Join(manifests, fmt.Sprintf("0000_10_machine-api_01_machinesets-%s.crd.yaml", features)),
		filepath.Join(root, "install", "kubernetes", "crds", "machinedeployments.yaml"),
	}, nil
}

// apiDirectory returns the folder of the github.com/openshift/api module.
func apiDirectory(root string) (string, error) {
	command := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", apiModule)
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("looking for the folder of module %s: %w", apiModule, err)
	}
	directory := strings.TrimSpace(string(out))
	if directory == "" {
		return "", fmt.Errorf("looking for the folder of module %s: it is not in the module cache; run `go mod "+
			"download`", apiModule)
	}
	return directory, nil
}
