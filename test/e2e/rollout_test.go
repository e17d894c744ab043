//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

func aMachineDeployment() {
	const name, pool = "rolled", "example.com/pool"
	var former []types.UID

	read := func(ctx context.Context) *v1beta1.MachineDeployment {
		GinkgoHelper()
		deployment := &v1beta1.MachineDeployment{}
		Expect(w.client.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: name}, deployment)).To(Succeed())
		return deployment
	}
	machines := func(ctx context.Context) []machinev1beta1.Machine {
		GinkgoHelper()
		list := &machinev1beta1.MachineList{}
		Expect(w.client.List(ctx, list, client.InNamespace(lab.Namespace), client.MatchingLabels{pool: name})).To(Succeed())
		return list.Items
	}
	uids := func(ctx context.Context) (out []types.UID) {
		GinkgoHelper()
		for _, machine := range machines(ctx) {
			out = append(out, machine.UID)
		}
		slices.Sort(out)
		return out
	}
	rolledOut := func(ctx context.Context) {
		GinkgoHelper()
		until(ctx, patience, "the rollout is complete", func(ctx context.Context) error {
			deployment := read(ctx)
			progressing := meta.FindStatusCondition(deployment.Status.Conditions, v1beta1.ConditionProgressing)
			if deployment.Status.ObservedGeneration != deployment.Generation || progressing == nil ||
				progressing.Reason != v1beta1.ReasonNewMachineSetAvailable || len(machines(ctx)) != 3 {
				return fmt.Errorf("status %+v, %d Machines", deployment.Status, len(machines(ctx)))
			}
			return nil
		})
	}
	edit := func(ctx context.Context, changes ...func(map[string]any)) {
		GinkgoHelper()
		Eventually(func() error {
			deployment := read(ctx)
			changeSpec(&deployment.Spec.Template.Spec, changes...)
			return w.client.Update(ctx, deployment)
		}).Should(Succeed())
	}

	BeforeAll(func(ctx SpecContext) {
		set := w.machineSet(0)
		set.Spec.Template.Labels[pool] = name
		w.create(ctx, &v1beta1.MachineDeployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: lab.Namespace, Name: name},
			Spec: v1beta1.MachineDeploymentSpec{
				Replicas: ptr.To[int32](3), Template: set.Spec.Template,
				Selector: metav1.LabelSelector{MatchLabels: map[string]string{pool: name}},
			},
		})
		DeferCleanup(func(ctx SpecContext) {
			w.kubectl(ctx, "delete", "machinedeployment", name)
			until(ctx, patience, "its Machines are gone", func(ctx context.Context) error {
				if left := machines(ctx); len(left) > 0 {
					return fmt.Errorf("there are %s", describe(left))
				}
				return nil
			})
		})
		rolledOut(ctx)
		former = uids(ctx)
	})

	It("changes its Machines in place where their plans allow it", func(ctx SpecContext) {
		edit(ctx, with("zone", "zone-b"))
		rolledOut(ctx)
		Expect(uids(ctx)).To(Equal(former))
		for _, machine := range machines(ctx) {
			Expect(w.node(ctx, machine.Name).Labels).To(HaveKeyWithValue("topology.kubernetes.io/zone", "zone-b"))
		}
	})

	It("replaces them where they do not", func(ctx SpecContext) {
		edit(ctx, with("cpu", 8))
		rolledOut(ctx)
		Expect(uids(ctx)).NotTo(ContainElements(former))
		for _, machine := range machines(ctx) {
			Expect(w.node(ctx, machine.Name).Status.Capacity.Cpu().String()).To(Equal("8"))
		}
	})

	It("runs the commands of its page", func(ctx SpecContext) {
		page, err := os.ReadFile(w.lab.Path("docs", "rollouts.md"))
		Expect(err).NotTo(HaveOccurred())
		script := "set -euxo pipefail\n"
		for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```").FindAllStringSubmatch(string(page), -1) {
			script += block[1]
		}
		// This cluster has credentials already, with an address that is reachable from here.
		script = strings.ReplaceAll(script, "kubectl apply -f modules/kubemark/examples/credentials.yaml\n", "")
		dir := GinkgoT().TempDir()
		Expect(os.Symlink(w.lab.Path("modules"), filepath.Join(dir, "modules"))).To(Succeed())
		config, err := os.ReadFile(w.cluster.AdminKubeconfig())
		Expect(err).NotTo(HaveOccurred())
		kubeconfig := filepath.Join(dir, "kubeconfig")
		Expect(os.WriteFile(kubeconfig, config, 0o600)).To(Succeed())
		// The page makes the story's own MachineSet anew: one with other fields than the example is not adopted.
		clear := func(ctx SpecContext) {
			w.kubectl(ctx, "delete", "machinedeployments,machinesets", "pool", setName, "--ignore-not-found")
			w.kubectl(ctx, "delete", "machinesets", "-l", "machine.openshift.io/cluster-api-machineset in (pool, "+setName+")")
			until(ctx, patience, "its Machines are gone", func(ctx context.Context) error {
				left := w.kubectl(ctx, "get", "machines", "-o", "name")
				if strings.Contains(left, "/pool-") || strings.Contains(left, "/"+setName+"-") {
					return errors.New("there are " + left)
				}
				return nil
			})
		}
		clear(ctx)
		DeferCleanup(clear)
		command := exec.CommandContext(ctx, "bash", "-c", script)
		command.Dir = dir
		command.Env = []string{"PATH=" + w.lab.Path("bin") + ":" + os.Getenv("PATH"), "KUBECONFIG=" + kubeconfig, "HOME=" + dir}
		output, err := command.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(output))
		Expect(string(output)).To(ContainSubstring("New Machines are needed because of cpu."))
		Expect(w.kubectl(ctx, "get", "machinesets", "-o", "name")).NotTo(ContainSubstring("/"+setName+"-"), "the MachineSet was adopted")
	})
}
