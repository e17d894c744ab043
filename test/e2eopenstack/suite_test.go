//go:build e2e_openstack

package e2eopenstack_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/machine-iac/machine-iac-operator/hack/devcluster/cluster"
	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
)

const (
	root = "../.."
	// patience bounds what takes up to a minute on an idle machine.
	patience    = 6 * time.Minute
	poll        = 250 * time.Millisecond
	stopTimeout = 3 * time.Minute
)

func TestOpenStack(t *testing.T) {
	RegisterFailHandler(Fail)
	log.SetLogger(logr.Discard())
	suite, reporter := GinkgoConfiguration()
	suite.Timeout = 40 * time.Minute // shorter than go test's, so that the suite can stop what it started
	reporter.NoColor = true
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(poll)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "The module openstack, end to end", suite, reporter)
}

var w world

type world struct {
	dir       string
	cluster   *cluster.Cluster
	lab       *lab.Lab
	manager   *lab.Manager
	client    client.Client
	cloud     *cloud
	installed *installed
}

var _ = BeforeSuite(func(ctx SpecContext) {
	w.cloud = signIn(ctx, "openstack")
	w.installed = install(ctx, w.cloud)
	var err error
	w.dir, err = os.MkdirTemp("", "machine-iac-e2e-openstack-")
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
	for _, secret := range []*corev1.Secret{
		newSecret(credentials, map[string]string{"clouds.yaml": w.cloud.file}),
		newSecret("worker-user-data", map[string]string{"userData": userData}),
	} {
		Expect(w.client.Create(ctx, secret)).To(Succeed())
	}
	// A killed manager leaves its lease behind. No webhook grants requests for adoption here.
	w.manager, err = w.lab.StartManager(ctx, "--cluster-id="+clusterID, "--adoption=Adopt",
		"--leader-elect-lease-duration=30s", "--leader-elect-renew-deadline=20s", "--leader-elect-retry-period=4s")
	Expect(err).NotTo(HaveOccurred())
}, NodeTimeout(10*time.Minute))

var _ = AfterSuite(func(ctx SpecContext) {
	if w.manager != nil {
		Expect(w.manager.Stop(stopTimeout)).To(Succeed())
		logged, err := os.ReadFile(w.manager.Log)
		Expect(err).NotTo(HaveOccurred())
		Expect(bytes.Contains(logged, []byte(marker))).To(BeFalse(), "the user data is in the manager's log")
		Expect(bytes.Contains(logged, []byte(w.cloud.password))).To(BeFalse(), "the password is in the manager's log")
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
		fmt.Printf("The logs of OpenStack are in %s.\n", os.Getenv("OPENSTACK_LOGS"))
	}
})

var _ = ReportBeforeEach(func(report SpecReport) { fmt.Println(time.Now().Format(time.TimeOnly), report.FullText()) })

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
	fmt.Printf("\nServers: %+v\n", w.cloud.servers(ctx))
})
