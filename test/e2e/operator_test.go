//go:build e2e

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

const (
	// rolledOut exceeds the three minutes that the controllers must have been available.
	rolledOut = 5 * time.Minute
	// soon bounds how fast the operator restores its objects.
	soon = time.Minute
	// mark labels the operator's objects.
	mark = "app.kubernetes.io/managed-by=machine-api-operator"
	// kept are the kinds of the operator's objects, except ServiceAccounts: deleting one would revoke the manager's
	// token, which only a kubelet renews.
	kept = "deployments,services,poddisruptionbudgets,networkpolicies,roles,rolebindings,clusterroles,clusterrolebindings," +
		"mutatingwebhookconfigurations,validatingwebhookconfigurations"
)

func theInstallation() {
	var status = "machineapioperators/machine-api"

	BeforeAll(func(ctx SpecContext) { w.replicas(ctx, few) })

	It("is Available once the controllers are rolled out, with the version that it is of", func(ctx SpecContext) {
		w.kubectl(ctx, "wait", "--for=condition=Available", "--timeout="+rolledOut.String(), status)
		conditions := w.kubectl(ctx, "get", status,
			"-o", `jsonpath={range .status.conditions[*]}{.type}={.status} {end}`)
		Expect(conditions).To(And(ContainSubstring("Degraded=False"), ContainSubstring("Progressing=False")),
			conditions)
		recorded := w.kubectl(ctx, "get", "deployment", "machine-api-controllers",
			"-o", `jsonpath={.metadata.annotations.machine-iac\.io/version}`)
		Expect(w.kubectl(ctx, "get", status, "-o", `jsonpath={.status.versions[?(@.name=="operator")].version}`)).To(
			And(Equal(recorded), Not(BeEmpty())))
	})

	It("comes back within a minute when all of it is deleted, while Machines run on", func(ctx SpecContext) {
		before, machines := w.keptObjects(ctx), w.nodesByUID(ctx)
		Expect(len(before)).To(BeNumerically(">", 12), "%v", slices.Sorted(maps.Keys(before)))
		w.whileForbidden(func() {
			w.kubectl(ctx, "delete", kept, "--selector="+mark, "--wait=false")
			w.kubectl(ctx, "delete", "roles,rolebindings", "--namespace=default", "--selector="+mark, "--wait=false")
			until(ctx, soon, "all is there again", func(ctx context.Context) error {
				after := w.keptObjects(ctx)
				for name, uid := range before {
					if now, found := after[name]; !found || now == uid {
						return fmt.Errorf("%s is not back", name)
					}
				}
				return nil
			})
		})
		until(ctx, soon, "the webhooks are asked", w.refusal)
		w.scale(ctx, few+1)
		w.settles(ctx, few+1)
		now := w.nodesByUID(ctx)
		maps.DeleteFunc(now, func(uid types.UID, _ string) bool { return machines[uid] == "" })
		Expect(now).To(Equal(machines), "an instance was replaced")
		w.replicas(ctx, few)
	})

	It("is restored within a minute where it is edited", func(ctx SpecContext) {
		w.kubectl(ctx, "patch", "validatingwebhookconfiguration/machine-api", "--type=json", "--patch",
			`[{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Fail"}]`)
		w.kubectl(ctx, "set", "image", "deployment/machine-api-controllers", "machine-controllers=example.org/another")
		w.kubectl(ctx, "patch", "role/machine-api-controllers", "--type=json", "--patch",
			`[{"op": "add", "path": "/rules/-", "value": {"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"]}}]`)
		until(ctx, soon, "all is as it was", func(ctx context.Context) error {
			policies := w.kubectl(ctx, "get", "validatingwebhookconfiguration/machine-api",
				"-o", "jsonpath={.webhooks[*].failurePolicy}")
			image := w.kubectl(ctx, "get", "deployment/machine-api-controllers",
				"-o", "jsonpath={.spec.template.spec.containers[*].image}")
			verbs := w.kubectl(ctx, "get", "role/machine-api-controllers",
				"-o", `jsonpath={.rules[?(@.resources[0]=="pods")].verbs}`)
			if strings.Contains(policies, "Fail") || strings.Contains(image, "another") || verbs != "" {
				return fmt.Errorf("the webhooks are %s, the image is %s, Pods may be: %s", policies, image, verbs)
			}
			return nil
		})
	})

	It("has the termination handler on a platform that has Spot instances, and on no other", func(ctx SpecContext) {
		Expect(w.lab.Set(ctx, map[string]string{"platform": "AWS"})).To(Succeed())
		until(ctx, soon, "the termination handler is there",
			func(ctx context.Context) error { return w.terminationHandler(ctx, true) })
		Expect(w.lab.Set(ctx, nil)).To(Succeed())
		until(ctx, soon, "the termination handler is gone",
			func(ctx context.Context) error { return w.terminationHandler(ctx, false) })
	})

	It("shows the operator's metrics to those who may read them, and to nobody else", func(ctx SpecContext) {
		status, _, err := w.lab.Operator.Scrape(ctx, strings.TrimSpace(w.kubectl(ctx, "create", "token", "default")))
		Expect(err).NotTo(HaveOccurred())
		Expect(status).To(Equal(http.StatusForbidden))
		token, err := w.lab.MetricsToken(ctx)
		Expect(err).NotTo(HaveOccurred())
		status, text, err := w.lab.Operator.Scrape(ctx, token)
		Expect(err).NotTo(HaveOccurred())
		Expect(status).To(Equal(http.StatusOK))
		Expect(text).To(ContainSubstring(`controller_runtime_reconcile_total{controller="installation"`))
		Expect(text).To(ContainSubstring(`machine_iac_installation_condition{condition="Degraded"} 0`))
	})

	It("takes a setting to the manager", func(ctx SpecContext) {
		const flag = "--inventory-interval=53m"
		Expect(w.lab.Set(ctx, map[string]string{"arguments": flag})).To(Succeed())
		until(ctx, soon, "the Deployment has it", func(ctx context.Context) error {
			deployed := &appsv1.Deployment{}
			if err := w.client.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: "machine-api-controllers"},
				deployed); err != nil {
				return err
			}
			if arguments := deployed.Spec.Template.Spec.Containers[0].Args; !slices.Contains(arguments, flag) {
				return fmt.Errorf("its arguments are %v", arguments)
			}
			return nil
		})
		w.pod.restart(ctx)
		Expect(w.pod.arguments()).To(ContainElement(flag))
		Expect(w.lab.Set(ctx, nil)).To(Succeed())
		until(ctx, soon, "the Deployment has it no more", func(ctx context.Context) error {
			if left := w.kubectl(ctx, "get", "deployment/machine-api-controllers",
				"-o", "jsonpath={.spec.template.spec.containers[0].args}"); strings.Contains(left, flag) {
				return errors.New(left)
			}
			return nil
		})
		w.pod.restart(ctx)
	})
}

// terminationHandler returns an error unless the termination handler exists if and only if wanted.
func (w *world) terminationHandler(ctx context.Context, wanted bool) error {
	for _, object := range []client.Object{
		&appsv1.DaemonSet{}, &machinev1beta1.MachineHealthCheck{}, &corev1.ServiceAccount{},
	} {
		err := w.client.Get(ctx, client.ObjectKey{
			Namespace: lab.Namespace, Name: "machine-api-termination-handler",
		}, object)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if there := err == nil; there != wanted {
			return fmt.Errorf("%T is there: %v", object, there)
		}
	}
	return nil
}

// keptObjects returns the UIDs of the operator's objects by kind and name.
func (w *world) keptObjects(ctx context.Context) map[string]types.UID {
	GinkgoHelper()
	found := map[string]types.UID{}
	for _, arguments := range [][]string{{kept}, {"roles,rolebindings", "--namespace=default"}} {
		var list struct {
			Items []struct {
				Kind     string
				Metadata struct {
					Namespace, Name string
					UID             types.UID
				}
			}
		}
		out := w.kubectl(ctx, append([]string{"get", "--selector=" + mark, "--output=json"}, arguments...)...)
		Expect(json.Unmarshal([]byte(out), &list)).To(Succeed())
		for _, one := range list.Items {
			found[one.Kind+" "+one.Metadata.Namespace+"/"+one.Metadata.Name] = one.Metadata.UID
		}
	}
	return found
}

func (w *world) nodesByUID(ctx context.Context) map[types.UID]string {
	GinkgoHelper()
	seen, err := w.census(ctx)
	Expect(err).NotTo(HaveOccurred())
	found := map[types.UID]string{}
	for _, node := range seen.nodes {
		found[node.UID] = node.Name
	}
	return found
}

// whileForbidden calls do while the manager may lack rights.
func (w *world) whileForbidden(do func()) {
	GinkgoHelper()
	from, at := w.pod.logged(), time.Now()
	do()
	w.away = append(w.away, section{from: from, to: w.pod.logged()})
	w.provoked = append(w.provoked, span{from: at, to: time.Now()})
}
