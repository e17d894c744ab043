//go:build e2e_libvirt

package e2elibvirt_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/machine-iac/machine-iac-operator/hack/devcluster/cluster"
	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
)

const (
	root = "../.."
	// patience bounds what takes seconds on an idle machine.
	patience = 2 * time.Minute
	poll     = 250 * time.Millisecond
	// driftInterval is how soon a powered-off domain is detected.
	driftInterval = 5 * time.Second
	stopTimeout   = 3 * time.Minute
)

func TestLibvirt(t *testing.T) {
	RegisterFailHandler(Fail)
	log.SetLogger(logr.Discard())
	suite, reporter := GinkgoConfiguration()
	suite.Timeout = 15 * time.Minute // shorter than go test's, so that the suite can stop what it started
	reporter.NoColor = true
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(poll)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "The module libvirt, end to end", suite, reporter)
}

var w world

type world struct {
	dir     string
	cluster *cluster.Cluster
	lab     *lab.Lab
	manager *lab.Manager
	client  client.Client
	host    *host
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	w.host = openHost(ctx)
	w.dir, err = os.MkdirTemp("", "machine-iac-e2e-libvirt-")
	Expect(err).NotTo(HaveOccurred())
	w.dir, err = filepath.EvalSymlinks(w.dir) // the kernel reports resolved folders
	Expect(err).NotTo(HaveOccurred())
	w.cluster, err = cluster.New(cluster.Options{Dir: w.dir, Bin: filepath.Join(root, "bin")})
	Expect(err).NotTo(HaveOccurred())
	w.lab, err = lab.Open(ctx, lab.Options{Root: root, Dir: w.dir, Progress: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	config, err := w.lab.Cluster.AdminConfig()
	Expect(err).NotTo(HaveOccurred())
	scheme, err := controlplane.Scheme()
	Expect(err).NotTo(HaveOccurred())
	w.client, err = client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	w.manager, err = w.lab.StartManager(ctx, "--cluster-id=demo-x7k2p", "--drift-interval="+driftInterval.String(),
		"--engine-env=TERRAFORM_LIBVIRT_TEST_DOMAIN_TYPE="+w.host.DomainType)
	Expect(err).NotTo(HaveOccurred())
}, NodeTimeout(5*time.Minute))

var _ = AfterSuite(func(ctx SpecContext) {
	if w.manager != nil {
		Expect(w.manager.Stop(stopTimeout)).To(Succeed())
	}
	if w.cluster != nil {
		Expect(w.cluster.Down(ctx)).To(Succeed())
	}
}, NodeTimeout(5*time.Minute))

// Everything has stopped by now.
var _ = ReportAfterSuite("the data folder", func(report Report) {
	switch {
	case w.cluster == nil:
	case report.SuiteSucceeded:
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		Expect(w.cluster.Purge(ctx)).To(Succeed())
	default:
		fmt.Printf("\nThe cluster's data and all logs are kept in %s; bin/devcluster up --dir %[1]s brings it "+
			"back.\n", w.dir)
	}
})

var _ = ReportBeforeEach(func(report SpecReport) { fmt.Println(report.FullText()) })

var _ = JustAfterEach(func(ctx SpecContext) {
	if !CurrentSpecReport().Failed() || w.lab == nil {
		return
	}
	for _, arguments := range [][]string{
		{"get", "machines", "-o", "yaml"},
		{"get", "events", "--sort-by=.metadata.creationTimestamp"},
	} {
		out, err := w.lab.Kubectl(ctx, arguments...)
		fmt.Printf("\n$ kubectl %v (%v)\n%s", arguments, err, out)
	}
	fmt.Printf("\n$ virsh list --all\n%s", w.host.virsh(ctx, "list", "--all"))
})
