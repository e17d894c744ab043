package webhooks_test

import (
	"context"
	"io/fs"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/module"
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

// start runs the webhooks until stop is called; the test's end calls it too. They are up when it returns.
func start(ctx context.Context) (stop func()) {
	GinkgoHelper()
	folder, err := fs.Sub(modules.FS, "kubemark")
	Expect(err).NotTo(HaveOccurred())
	loaded, err := module.Load(folder)
	Expect(err).NotTo(HaveOccurred())
	catalog, err := module.NewCatalog(loaded)
	Expect(err).NotTo(HaveOccurred())
	mgr := suite.NewManager(plane, "")
	Expect(webhooks.SetupWithManager(mgr, webhooks.Options{Catalog: catalog, ClusterID: builder.ClusterID})).To(Succeed())
	stop = suite.Run(mgr)
	probe := builder.MachineHealthCheck()
	probe.Namespace = suite.Namespace(ctx, plane)
	Eventually(func() error { return plane.Client.Create(ctx, probe.DeepCopy(), client.DryRunAll) }).Should(Succeed())
	return stop
}

// configurations are the webhooks as a cluster would register them, but for what happens when they do not answer: no test passes
// because nobody was asked.
func configurations() (*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration) {
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "machine-iac"}}
	for kind, path := range map[string]string{"machine": webhooks.MutateMachinePath, "machineset": webhooks.MutateMachineSetPath} {
		mutating.Webhooks = append(mutating.Webhooks, admissionregistrationv1.MutatingWebhook{
			Name: "default." + kind + ".machine.openshift.io", ClientConfig: clientConfig(path),
			FailurePolicy: ptr.To(admissionregistrationv1.Fail), SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"}, Rules: on(kind+"s", admissionregistrationv1.Create),
		})
	}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "machine-iac"}}
	for kind, path := range map[string]string{
		"machine": webhooks.ValidateMachinePath, "machineset": webhooks.ValidateMachineSetPath,
		"machinehealthcheck": webhooks.ValidateMachineHealthCheckPath,
	} {
		validating.Webhooks = append(validating.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name: "validation." + kind + ".machine.openshift.io", ClientConfig: clientConfig(path),
			FailurePolicy: ptr.To(admissionregistrationv1.Fail), SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"}, Rules: on(kind+"s", admissionregistrationv1.Create, admissionregistrationv1.Update),
		})
	}
	return mutating, validating
}

func clientConfig(path string) admissionregistrationv1.WebhookClientConfig {
	// envtest makes it a URL and puts a slash before the path.
	return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
		Namespace: "any", Name: "any", Path: ptr.To(strings.TrimPrefix(path, "/")),
	}}
}

func on(resource string, operations ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{Operations: operations, Rule: admissionregistrationv1.Rule{
		APIGroups: []string{machinev1beta1.GroupName}, APIVersions: []string{"v1beta1"}, Resources: []string{resource},
	}}}
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

// take answers the warnings since it was last called.
func (w *warnings) take() []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	texts := w.texts
	w.texts = nil
	return texts
}
