//go:build e2e_gardener

package e2egardener_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/machine-iac/machine-iac-operator/hack/landscape"
)

// makefile contains the commands with which the suite starts both programs, from two folders.
const makefile = `start:
	@exec %s --control-kubeconfig=$(CONTROL_KUBECONFIG) --target-kubeconfig=$(TARGET_KUBECONFIG) --namespace=$(CONTROL_NAMESPACE) --leader-elect=$(LEADER_ELECT) --v=3 %s
`

// The suite kills processes by name, so it runs in its own PID namespace.
var _ = Describe("The integration suite of machine-controller-manager", Ordered, func() {
	It("passes", func(ctx SpecContext) {
		if os.Geteuid() != 0 {
			Skip("a PID namespace needs root")
		}
		stopMCM() // the suite starts its own
		home := filepath.Join(w.dir, "suite")
		folder := filepath.Join(home, "test", "integration", "provider")
		mcm := filepath.Join(home, "dev", "mcm")
		for _, made := range []string{
			folder, filepath.Join(mcm, ".git"), filepath.Join(mcm, "kubernetes", "crds"),
			filepath.Join(home, ".ci", "controllers-test", "logs"),
		} {
			Expect(os.MkdirAll(made, 0o755)).To(Succeed())
		}
		write := func(path, content string) { Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed()) }
		write(filepath.Join(home, "Makefile"),
			fmt.Sprintf(makefile, w.land.Lab.Path("bin", landscape.Driver), "--machine-safety-orphan-vms-period=30s"))
		write(filepath.Join(mcm, "Makefile"),
			fmt.Sprintf(makefile, w.land.Lab.Path("bin", landscape.MCM),
				"--machine-safety-overshooting-period=$(MACHINE_SAFETY_OVERSHOOTING_PERIOD)"))
		write(filepath.Join(home, ".ci", "controllers-test", "machine-class-patch.json"), "{}")
		write(filepath.Join(home, "class.yaml"), landscape.Class("test-mc-v1", 2))
		crds, err := filepath.Glob(w.land.Lab.Path("install", "gardener", "crds", "machine.sapcloud.io_*.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(crds).To(HaveLen(4))
		for _, crd := range crds {
			content, err := os.ReadFile(crd)
			Expect(err).NotTo(HaveOccurred())
			write(filepath.Join(mcm, "kubernetes", "crds", filepath.Base(crd)), string(content))
		}

		command := exec.CommandContext(ctx, "unshare", "--pid", "--fork", "--kill-child", "--mount-proc",
			w.land.Lab.Path("bin", "gardener-integration.test"),
			"-test.v", "-ginkgo.v", "-ginkgo.no-color", "-test.timeout=30m")
		command.Dir = folder
		command.Env = append(os.Environ(),
			"CONTROL_KUBECONFIG="+w.land.Lab.Cluster.AdminKubeconfig(),
			"TARGET_KUBECONFIG="+w.land.Target.AdminKubeconfig(),
			"CONTROL_CLUSTER_NAMESPACE="+landscape.Namespace, "MACHINECLASS_V1="+filepath.Join(home, "class.yaml"),
			"PRESERVE_CRD_AT_END=false")
		command.Stdout, command.Stderr = GinkgoWriter, GinkgoWriter
		command.Cancel = func() error { return command.Process.Signal(syscall.SIGKILL) }
		Expect(command.Run()).To(Succeed())

		// The suite removed the CRDs.
		Eventually(ctx, func() error {
			_, err := w.land.Lab.Kubectl(ctx, "apply",
				"--server-side", "-k", w.land.Lab.Path("install", "gardener", "crds"))
			return err
		}).Should(Succeed())
		kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
	}, SpecTimeout(32*time.Minute))
})
