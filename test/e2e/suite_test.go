//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// suiteTimeout is shorter than go test's, so that the suite can stop what it started.
const suiteTimeout = 55 * time.Minute

func TestStory(t *testing.T) {
	if !engineKnown() {
		t.Fatalf("%s is %q: it is %s or %s", engineVariable, os.Getenv(engineVariable), onTerraform, onPulumi)
	}
	RegisterFailHandler(Fail)
	log.SetLogger(logr.Discard()) // clients warn of injected faults
	suite, reporter := GinkgoConfiguration()
	suite.Timeout = suiteTimeout
	suite.LabelFilter = on.only(suite.LabelFilter)
	reporter.NoColor = true
	RunSpecs(t, "The operator, end to end", suite, reporter)
}

// story is the outermost container. Its chapters are ordered. A failure ends a chapter, and the next one begins.
const story = "The operator:"

// w is the world of all chapters.
var w *world

var _ = BeforeSuite(func(ctx SpecContext) {
	dir, err := os.MkdirTemp("", "machine-iac-e2e-")
	Expect(err).NotTo(HaveOccurred())
	dir, err = filepath.EvalSymlinks(dir) // the kernel reports resolved folders
	Expect(err).NotTo(HaveOccurred())
	w, err = openWorld(ctx, dir)
	Expect(err).NotTo(HaveOccurred())
}, NodeTimeout(5*time.Minute))

var _ = AfterSuite(func(ctx SpecContext) {
	Expect(w.close(ctx)).To(Succeed())
}, NodeTimeout(5*time.Minute))

// Everything has stopped by now.
var _ = ReportAfterSuite("the data folder", func(report Report) {
	switch {
	case w == nil:
	case report.SuiteSucceeded:
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		Expect(w.cluster.Purge(ctx)).To(Succeed())
	default:
		fmt.Printf("\nThe cluster's data and all logs are kept in %s; bin/devcluster up --dir %[1]s brings it "+
			"back.\n", w.dir)
	}
})

// failedVariable names a file for the pattern of chapters that failed or did not begin, for -ginkgo.focus.
const failedVariable = "E2E_FAILED"

var _ = ReportAfterSuite("what failed", func(report Report) {
	file := os.Getenv(failedVariable)
	if file == "" {
		return
	}
	var chapters []string
	for _, spec := range report.SpecReports {
		left := spec.State == types.SpecStateSkipped && spec.Failure.Message != "" // others are skipped by their labels
		if name := chapterOf(spec); name != "" && (left || spec.State.Is(types.SpecStateFailureStates)) {
			chapters = append(chapters, regexp.MustCompile(`[^\w ]`).ReplaceAllString(name, "."))
		}
	}
	if len(chapters) > 0 {
		pattern := story + " (" + strings.Join(slices.Compact(chapters), "|") + ") "
		Expect(os.WriteFile(file, []byte(pattern), 0o600)).To(Succeed())
	}
})

// chapterOf returns the title of a spec's chapter, or "" if it has none.
func chapterOf(spec SpecReport) string {
	if len(spec.ContainerHierarchyTexts) < 2 {
		return ""
	}
	return spec.ContainerHierarchyTexts[1]
}

var _ = ReportBeforeEach(func(report SpecReport) {
	if !report.State.Is(types.SpecStateSkipped | types.SpecStatePending) {
		say("%s", strings.TrimPrefix(report.FullText(), story+" "))
	}
})

var _ = Describe(story, Ordered, ContinueOnFailure, func() {
	const most = 3      // a world in which more fails tells nothing new
	var failed []string // chapters

	BeforeAll(func(ctx SpecContext) { w.pod.start(ctx) })

	BeforeEach(func() {
		if slices.Contains(failed, chapterOf(CurrentSpecReport())) {
			Skip("an earlier spec of this chapter failed")
		}
		if len(failed) == most {
			Skip("too many chapters failed")
		}
	})

	JustAfterEach(func(ctx SpecContext) {
		if CurrentSpecReport().Failed() {
			failed = append(failed, chapterOf(CurrentSpecReport()))
			w.dump(ctx)
		}
	})

	AfterEach(func() {
		Expect(w.pod.unexpected()).To(BeEmpty(), "the manager has ended by itself")
		Expect(w.madeTwice()).To(BeEmpty(), "a Machine has had two instances")
	})

	Context("A MachineSet", aMachineSet)
	Context("An object that is applied", forTerraform, anObjectThatIsApplied)
	Context("An instance that is removed behind the operator's back", anInstanceRemoved)
	Context("A manager that is killed", aManagerKilled)
	Context("A manager that is killed in an up", forPulumi, aManagerKilledInAnUp)
	Context("A manager that is stopped", aManagerStopped)
	Context("A Machine that cannot be made", aMachineThatCannotBeMade)
	Context("A changed providerSpec", aChangedProviderSpec)
	Context("A MachineDeployment", aMachineDeployment)
	Context("Other user data", otherUserData)
	Context("A person with kubectl machine", forTerraform, aPersonWithKubectlMachine)
	Context("Machines of another actuator", forTerraform, anotherActuatorsMachines)
	Context("A Machine of a stack that another actuator has made", aMachineOfAStack)
	Context("A drain", aDrain)
	Context("A MachineHealthCheck", aMachineHealthCheck)
	Context("A spot instance that is terminated", forTerraform, aSpotInstance)
	Context("A MachineSet that is scaled", aMachineSetThatIsScaled)
	Context("The Machine API's series", theMachineAPIsSeries)
	Context("The installation", theInstallation) // restarts the manager, and thereby resets its series
	Context("Two engines under one manager", twoEngines)
	Context("An API server that is away", anAPIServerAway)
	Context("A MachineSet of the module vsphere", forTerraform, aMachineSetOnVSphere)
	Context("A MachineSet whose addresses come from pools", forTerraform, aMachineSetWithPools)
	Context("A MachineSet of the module openstack", forTerraform, aMachineSetOnOpenStack)
	Context("A manager that serves", aManagerThatServes)
	Context("A deleted MachineSet", aDeletedMachineSet)
	Context("A namespace that is deleted", aNamespaceThatIsDeleted)
	Context("An etcd from an hour ago", forTerraform, anEtcdFromAnHourAgo)
	Context("What permissions are for", whatThePermissionsAreFor)
})
