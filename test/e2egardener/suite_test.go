//go:build e2e_gardener

package e2egardener_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/hack/landscape"
)

const (
	root = "../.."
	// theirs and ours are both kinds of Machines.
	theirs, ours = "machines.machine.sapcloud.io", "machines.machine.openshift.io"
	// patience bounds what takes up to a minute on an idle machine.
	patience    = 5 * time.Minute
	poll        = 500 * time.Millisecond
	stopTimeout = 3 * time.Minute
)

func TestGardener(t *testing.T) {
	RegisterFailHandler(Fail)
	suite, reporter := GinkgoConfiguration()
	suite.Timeout = 55 * time.Minute // shorter than go test's, so that the suite can stop what it started
	reporter.NoColor = true
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(poll)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "Gardener, end to end", suite, reporter)
}

var w world

type world struct {
	dir     string
	land    *landscape.Landscape
	manager *lab.Manager
	mcm     *landscape.Process
	driver  *landscape.Process
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	w.dir, err = os.MkdirTemp("", "machine-iac-e2e-gardener-")
	Expect(err).NotTo(HaveOccurred())
	w.dir, err = filepath.EvalSymlinks(w.dir)
	Expect(err).NotTo(HaveOccurred())
	w.land, err = landscape.Open(ctx, root, w.dir, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	w.manager, err = w.land.Lab.StartManager(ctx, landscape.Controllers, "--inventory-interval=20s",
		"--orphan-grace-period=30s", "--orphan-policy=Delete")
	Expect(err).NotTo(HaveOccurred())
}, NodeTimeout(10*time.Minute))

var _ = AfterSuite(func(ctx SpecContext) {
	stopMCM()
	if w.manager != nil {
		Expect(w.manager.Stop(stopTimeout)).To(Succeed())
	}
	if w.land != nil {
		Expect(w.land.Close(ctx)).To(Succeed())
	}
}, NodeTimeout(5*time.Minute))

// Everything has stopped by now.
var _ = ReportAfterSuite("the data folder", func(report Report) {
	switch {
	case w.land == nil:
	case report.SuiteSucceeded:
		Expect(os.RemoveAll(w.dir)).To(Succeed())
	default:
		fmt.Printf("\nThe clusters' data and all logs are kept in %s.\n", w.dir)
	}
})

var _ = ReportBeforeEach(func(report SpecReport) { fmt.Println(time.Now().Format(time.TimeOnly), report.FullText()) })

var _ = JustAfterEach(func(ctx SpecContext) {
	if !CurrentSpecReport().Failed() || w.land == nil {
		return
	}
	for _, kind := range []string{"machinedeployments.machine.sapcloud.io", theirs, ours} {
		out, err := w.land.Lab.Kubectl(ctx, "get", kind, "-o", "yaml")
		fmt.Printf("\n$ kubectl get %s (%v)\n%s", kind, err, out)
	}
})

// startMCM starts MCM and the driver unless they run.
func startMCM(flags ...string) {
	GinkgoHelper()
	var err error
	if w.mcm == nil || !w.mcm.Running() {
		w.mcm, err = w.land.Start(landscape.MCM, "--machine-safety-overshooting-period=1s")
		Expect(err).NotTo(HaveOccurred())
	}
	if w.driver == nil || !w.driver.Running() {
		w.driver, err = w.land.Start(landscape.Driver, append([]string{
			"--machine-creation-timeout=5m", "--machine-health-timeout=10s", "--machine-drain-timeout=5m",
			"--machine-safety-orphan-vms-period=10s",
			"--machine-safety-apiserver-statuscheck-period=5s", "--machine-safety-apiserver-statuscheck-timeout=5s",
		}, flags...)...)
		Expect(err).NotTo(HaveOccurred())
	}
}

func stopMCM() {
	GinkgoHelper()
	for _, process := range []*landscape.Process{w.mcm, w.driver} {
		if process != nil {
			Expect(process.Stop(time.Minute)).To(Succeed())
		}
	}
}

// kubectl runs kubectl in the control cluster.
func kubectl(ctx context.Context, arguments ...string) string {
	GinkgoHelper()
	out, err := w.land.Lab.Kubectl(ctx, arguments...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

func apply(ctx context.Context, manifest string) {
	GinkgoHelper()
	Expect(w.land.Lab.Apply(ctx, manifest)).To(Succeed())
}

// ordered is the part of MCM's Machines that tests read.
type ordered struct {
	Metadata struct {
		Name              string
		DeletionTimestamp string
		Labels            map[string]string
	}
	Spec struct {
		ProviderID string
		Class      struct{ Name string }
	}
	Status struct {
		CurrentStatus struct{ Phase string }
		LastOperation struct{ Description, ErrorCode, State, Type string }
	}
}

// machines returns MCM's Machines with the label name=NAME.
func machines(ctx context.Context, name string) ([]ordered, error) {
	out, err := w.land.Lab.Kubectl(ctx, "get", theirs, "-l", "name="+name, "-o", "json")
	if err != nil {
		return nil, err
	}
	var list struct{ Items []ordered }
	return list.Items, json.Unmarshal([]byte(out), &list)
}

// nodes returns the names of the target's Nodes.
func nodes(ctx SpecContext) ([]string, error) {
	out, err := w.land.KubectlTarget(ctx, "", "get", "nodes", "-o", "name")
	return strings.Fields(out), err
}

// running returns a check that the pool has exactly count Machines, all Running and of one class.
func running(class string, count int) func(SpecContext) error {
	return func(ctx SpecContext) error {
		list, err := machines(ctx, pool)
		if err != nil {
			return err
		}
		return allRun(list, class, count)
	}
}

func allRun(list []ordered, class string, count int) error {
	for _, m := range list {
		if m.Status.CurrentStatus.Phase != "Running" || m.Spec.Class.Name != class {
			return fmt.Errorf("%s of class %s is %q: %s", m.Metadata.Name, m.Spec.Class.Name,
				m.Status.CurrentStatus.Phase, m.Status.LastOperation.Description)
		}
	}
	if len(list) != count {
		return fmt.Errorf("there are %d Machines", len(list))
	}
	return nil
}

// nothingLeft returns an error if anything is left of Machines.
func nothingLeft(ctx SpecContext) error {
	for what, arguments := range map[string][]string{
		"MCM's Machines": {"get", theirs, "-o", "name"},
		"Machines":       {"get", ours, "-o", "name"},
		"states":         {"get", "secrets", "-l", "tfstate=true", "-o", "name"},
		"user data": {"get", "secrets",
			"-l", "app.kubernetes.io/managed-by=machine-controller-manager,machine-iac.io/usable-by-machines=user-data",
			"-o", "name"},
	} {
		out, err := w.land.Lab.Kubectl(ctx, arguments...)
		if err != nil || out != "" {
			return fmt.Errorf("%s are left: %s %w", what, out, err)
		}
	}
	if left, err := nodes(ctx); err != nil || len(left) > 0 {
		return fmt.Errorf("nodes are left: %v %w", left, err)
	}
	return nil
}
