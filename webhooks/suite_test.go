package webhooks_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/internal/installation"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/modules"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/suite"
	"github.com/machine-iac/machine-iac-operator/webhooks"
)

var (
	plane *controlplane.ControlPlane
	// heard are the warnings of the API server.
	heard = &warnings{}
	// installed is the installation whose webhooks are tested.
	installed = installation.Generate()
	// user hears warnings; the rest of the suite works through plane.Client.
	user client.Client
)

func TestWebhooksAgainstAPIServer(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Webhooks")
}

var _ = BeforeSuite(func() {
	plane = suite.Start(controlplane.CustomNoUpgrade, controlplane.WithWebhooks(configurations()))
	config := rest.CopyConfig(plane.Config)
	config.WarningHandlerWithContext = heard
	var err error
	user, err = client.New(config, client.Options{Scheme: plane.Scheme})
	Expect(err).NotTo(HaveOccurred())
})

// start runs the webhooks until stop is called; the test's end calls it too. They are up when it
// returns.
func start(ctx context.Context, mods ...func(*webhooks.Options)) (stop func()) {
	GinkgoHelper()
	folder, err := fs.Sub(modules.FS, "kubemark")
	Expect(err).NotTo(HaveOccurred())
	loaded, err := load.Module(folder)
	Expect(err).NotTo(HaveOccurred())
	catalog, err := module.NewCatalog(loaded)
	Expect(err).NotTo(HaveOccurred())
	mgr := suite.NewManager(plane, "")
	options := webhooks.Options{Catalog: catalog, ClusterID: builder.ClusterID, Installation: installed}
	for _, mod := range mods {
		mod(&options)
	}
	Expect(webhooks.SetupWithManager(mgr, options)).To(Succeed())
	stop = suite.Run(mgr)
	probe := builder.MachineHealthCheck()
	probe.Namespace = suite.Namespace(ctx, plane)
	Eventually(func() error { return plane.Client.Create(ctx, probe.DeepCopy(), client.DryRunAll) }).Should(Succeed())
	return stop
}

// configurations are the webhooks of the install tree, but for two things: they are asked in every
// namespace, and what happens when they do not respond, so that no test passes because nobody was
// asked.
func configurations() (*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration) {
	GinkgoHelper()
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	manifest("mutating.yaml", mutating)
	for i := range mutating.Webhooks {
		hook := &mutating.Webhooks[i]
		hook.NamespaceSelector, hook.FailurePolicy = nil, ptr.To(admissionregistrationv1.Fail)
		byItself(&hook.ClientConfig)
	}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	manifest("validating.yaml", validating)
	for i := range validating.Webhooks {
		hook := &validating.Webhooks[i]
		hook.NamespaceSelector, hook.FailurePolicy = nil, ptr.To(admissionregistrationv1.Fail)
		byItself(&hook.ClientConfig)
	}
	return mutating, validating
}

// manifest reads a file of the install tree.
func manifest(name string, into any) {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join("..", "install", "controllers", "webhooks", name))
	Expect(err).NotTo(HaveOccurred())
	Expect(yaml.UnmarshalStrict(content, into)).To(Succeed())
}

// byItself leaves the path of a call: envtest makes the rest of it a URL, and puts a slash before
// the path.
func byItself(config *admissionregistrationv1.WebhookClientConfig) {
	config.Service.Path = ptr.To(strings.TrimPrefix(*config.Service.Path, "/"))
}

// warnings keeps what the API server warns of.
type warnings struct {
	mutex sync.Mutex
	texts []string
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.texts = append(w.texts, text)
}

// take returns the warnings since it was last called.
func (w *warnings) take() []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	texts := w.texts
	w.texts = nil
	return texts
}
