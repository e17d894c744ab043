// Package provider_test runs the integration suite of machine-controller-manager, which every
// provider of Gardener passes, with this project's driver. It wants two clusters and both programs,
// started by "make start"; test/e2egardener of the main module provides them.
package provider_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/test/integration/common"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

// suite gives each wait of the suite this long, and looks as often.
var suite = common.NewIntegrationTestFramework(&tracker{}, 300, 2)

var _ = ginkgo.BeforeSuite(suite.SetupBeforeSuite)
var _ = ginkgo.AfterSuite(suite.Cleanup)

var _ = ginkgo.Describe("Machine controllers test", func() {
	suite.BeforeEachCheck()
	suite.ControllerTests()
})

func TestProvider(t *testing.T) {
	if os.Getenv("CONTROL_KUBECONFIG") == "" || os.Getenv("TARGET_KUBECONFIG") == "" {
		t.Skip("CONTROL_KUBECONFIG and TARGET_KUBECONFIG are not set: 'make e2e-gardener' sets them")
	}
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.RunSpecs(t, "The integration suite of machine-controller-manager")
}

// tracker looks for what a provider may leave behind.
type tracker struct {
	control, target dynamic.Interface
	namespace       string
}

// InitializeResourcesTracker implements the suite's interface. It demands a clean start.
func (r *tracker) InitializeResourcesTracker(class *mcm.MachineClass, _ map[string][]byte, _ string) error {
	var err error
	if r.control, err = connect("CONTROL_KUBECONFIG"); err != nil {
		return err
	}
	if r.target, err = connect("TARGET_KUBECONFIG"); err != nil {
		return err
	}
	r.namespace = class.Namespace
	left, err := r.left(context.Background())
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("something is left of an earlier run: %v", left)
	}
	return nil
}

// IsOrphanedResourcesAvailable implements the suite's interface.
func (r *tracker) IsOrphanedResourcesAvailable() bool {
	left, err := r.left(context.Background())
	if err != nil || len(left) > 0 {
		fmt.Fprintln(ginkgo.GinkgoWriter, "left:", left, err)
		return true
	}
	return false
}

// left returns the names of Machines, states, user data and instances that are there.
func (r *tracker) left(ctx context.Context) ([]string, error) {
	var names []string
	var failed error
	list := func(what string, client dynamic.ResourceInterface, selector string) {
		found, err := client.List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("listing %s: %w", what, err))
			return
		}
		for _, object := range found.Items {
			names = append(names, what+" "+object.GetName())
		}
	}
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	machines := schema.GroupVersionResource{Group: "machine.openshift.io", Version: "v1beta1", Resource: "machines"}
	nodes := schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	list("Machine", r.control.Resource(machines).Namespace(r.namespace), "")
	list("state", r.control.Resource(secrets).Namespace(r.namespace), "tfstate=true")
	list("user data", r.control.Resource(secrets).Namespace(r.namespace), "app.kubernetes.io/managed-by=machine-controller-manager,machine-iac.io/usable-by-machines=user-data")
	list("instance", r.target.Resource(nodes), "machine-iac.io/machine-uid")
	return names, failed
}

func connect(variable string) (dynamic.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv(variable))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", variable, err)
	}
	return dynamic.NewForConfig(config)
}
