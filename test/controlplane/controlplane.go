// Package controlplane starts a real API server for tests: etcd and kube-apiserver, with the Machine API's CRDs installed.
//
// Nothing else runs: no garbage collector, no namespace controller, no kubelet. Objects that belong to another do not go with it,
// and a namespace cannot be emptied by deleting it, so each test takes a namespace of its own and leaves it behind.
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
)

// assetsVariable names the environment variable with the folder of etcd and kube-apiserver.
const assetsVariable = "KUBEBUILDER_ASSETS"

const apiModule = "github.com/openshift/api"

// FeatureSet chooses a variant of the Machine and MachineSet CRDs.
type FeatureSet string

const (
	// Default has the stable fields only.
	Default FeatureSet = "Default"
	// CustomNoUpgrade has every gated field, spec.authoritativeAPI among them.
	CustomNoUpgrade FeatureSet = "CustomNoUpgrade"
)

// ControlPlane is a running API server.
type ControlPlane struct {
	// Config connects as an administrator.
	Config *rest.Config
	// Scheme knows Kubernetes' own types, the Machine API, and how OpenShift describes a cluster.
	Scheme *kubernetes.Scheme
	// Client reads and writes without a cache.
	Client client.Client

	environment *envtest.Environment
}

// Option changes how an API server is started.
type Option func(*envtest.Environment)

// WithWebhooks registers webhooks, whose Services stand for the server that [ControlPlane.WebhookServer] returns.
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

// Start brings an API server up and installs the CRDs. The caller stops it.
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
	}}
	for _, option := range options {
		option(plane.environment)
	}
	if plane.Config, err = plane.environment.Start(); err != nil {
		return nil, fmt.Errorf("starting the API server from %s: %w", assets, errors.Join(err, plane.environment.Stop()))
	}
	// The tests are the only clients; throttling would only make them slow.
	plane.Config.QPS = -1
	if plane.Client, err = client.New(plane.Config, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("making a client: %w", errors.Join(err, plane.environment.Stop()))
	}
	return plane, nil
}

// Stop ends the API server and etcd, and removes what they stored.
func (p *ControlPlane) Stop() error {
	if err := p.environment.Stop(); err != nil {
		return fmt.Errorf("stopping the API server: %w", err)
	}
	return nil
}

// WebhookServer returns a server for the webhooks of [WithWebhooks], with a certificate that the API server trusts; nil without any.
// One of them can listen at a time.
func (p *ControlPlane) WebhookServer() webhook.Server {
	installed := p.environment.WebhookInstallOptions
	if len(installed.MutatingWebhooks)+len(installed.ValidatingWebhooks) == 0 {
		return nil
	}
	return webhook.NewServer(webhook.Options{
		Host: installed.LocalServingHost, Port: installed.LocalServingPort, CertDir: installed.LocalServingCertDir,
	})
}

// Namespace makes a namespace with a random name and returns the name.
func (p *ControlPlane) Namespace(ctx context.Context) (string, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := p.Client.Create(ctx, namespace); err != nil {
		return "", fmt.Errorf("making a namespace: %w", err)
	}
	return namespace.Name, nil
}

// Create stores objects together with their status, which the API server drops from a plain create. Controllers may write to the
// objects meanwhile. The objects come back as they are stored.
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

// statusPatch returns a merge patch that sets the status of object and insists on nothing else; nil when there is no status.
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

// Scheme returns a scheme that knows Kubernetes' own types, the Machine API, and how OpenShift describes a cluster.
func Scheme() (*kubernetes.Scheme, error) {
	scheme := kubernetes.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), machinev1beta1.Install(scheme), configv1.Install(scheme)); err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	return scheme, nil
}

// repositoryRoot is above the working folder, which go test sets to that of the package. Where this file was compiled is not known with -trimpath.
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
			return "", fmt.Errorf("finding the repository: neither %s nor a folder above it has hack/tools.sh; start the test in the repository", began)
		}
	}
}

// assetsDirectory returns the folder of the binaries: configured if set, the repository's bin otherwise.
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

// crdFiles returns the manifests of the Machine API in the very version of the module that the code is built with.
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
	}, nil
}

// apiDirectory returns the folder of the module with OpenShift's types.
func apiDirectory(root string) (string, error) {
	command := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", apiModule)
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("looking for the folder of module %s: %w", apiModule, err)
	}
	directory := strings.TrimSpace(string(out))
	if directory == "" {
		return "", fmt.Errorf("looking for the folder of module %s: it is not in the module cache; run `go mod download`", apiModule)
	}
	return directory, nil
}
