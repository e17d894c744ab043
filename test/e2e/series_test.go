//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/monitoring"
)

func theMachineAPIsSeries() {
	const (
		name          = "measured"
		ownSecret     = "measured-credentials"
		whileItExists = 10 * time.Second
	)
	ofMachine, ofSet := label("name", name), label("name", setName)
	inNamespace := label("namespace", lab.Namespace)

	BeforeAll(func(ctx SpecContext) {
		w.replicas(ctx, few)
		w.copySecret(ctx, ownSecret)
		w.unguarded(ctx)
		DeferCleanup(func(ctx SpecContext) { w.guarded(ctx) })
		w.create(ctx, healthCheck()) // for its series
		DeferCleanup(func(ctx SpecContext) { w.kubectl(ctx, "delete", "machinehealthcheck", checkName) })
		w.create(ctx, w.machine(name, credentialsFrom(ownSecret), with("memory", "plenty")))
	})

	It("count what there is, and when it was made", func(ctx SpecContext) {
		Expect(w.shows(ctx, "mapi_machine_items")).To(BeEquivalentTo(few + 1))
		Expect(w.shows(ctx, "mapi_machineset_items")).To(BeEquivalentTo(1))
		Expect(w.shows(ctx, "mapi_mao_collector_up", label("kind", "mapi_machine_items"))).To(Equal(1.0))
		Expect(w.shows(ctx, "mapi_mao_collector_up", label("kind", "mapi_machineset_items"))).To(Equal(1.0))

		version := label("api_version", machinev1beta1.GroupVersion.String())
		made := w.shows(ctx, "mapi_machineset_created_timestamp_seconds", ofSet, inNamespace, version)
		Expect(made).To(BeNumerically("~", time.Now().Unix(), 3600))
		for _, replicas := range []string{"", "_ready", "_available"} {
			Expect(w.shows(ctx, "mapi_machine_set_status_replicas"+replicas, ofSet, inNamespace)).To(
				BeEquivalentTo(few), replicas)
		}
		machine := w.get(ctx, w.names(ctx)[0])
		made = w.shows(ctx, "mapi_machine_created_timestamp_seconds", label("name", machine.Name), inNamespace, version,
			label("spec_provider_id", *machine.Spec.ProviderID), label("node", machine.Status.NodeRef.Name),
			label("phase", machinev1beta1.PhaseRunning))
		Expect(made).To(BeEquivalentTo(machine.CreationTimestamp.Unix()))
		Expect(w.series(ctx, "mapi_machine_phase_transition_seconds_count")).To(ContainElements(
			ContainSubstring(label("phase", machinev1beta1.PhaseProvisioning)),
			ContainSubstring(label("phase", machinev1beta1.PhaseRunning))))
	})

	It("count what failed, by Machine and reason", func(ctx SpecContext) {
		w.counts(ctx, "mapi_instance_create_failed", ofMachine, inNamespace, `reason="`)
		w.patchSpec(ctx, name, "memory", "16Gi")
		w.runs(ctx, name)

		w.patchSpec(ctx, name, "memory", "plenty")
		w.counts(ctx, "mapi_instance_update_failed", ofMachine, inNamespace, `reason="`)
		w.patchSpec(ctx, name, "memory", "16Gi")
		until(ctx, patience, "the Machine is up to date", func(ctx context.Context) error {
			return w.upToDateIs(w.get(ctx, name), corev1.ConditionTrue, "")
		})

		w.kubectl(ctx, "delete", "secret", ownSecret)
		w.kubectl(ctx, "delete", "machine", name, "--wait=false")
		w.counts(ctx, "mapi_instance_delete_failed", ofMachine, inNamespace, `reason="`)
	})

	It("are the documented ones, and those that alerts and the dashboard read", func(ctx SpecContext) {
		root := w.lab.Path()
		documented, err := monitoring.Documented(root)
		Expect(err).NotTo(HaveOccurred())
		delete(documented, "machine_iac_credentials_throttled_seconds")           // absent, as nothing throttles kubemark
		maps.DeleteFunc(documented, func(name string, _ monitoring.Family) bool { // absent, as the controller is off
			return strings.HasPrefix(name, "machine_iac_certificate_requests_")
		})
		queries, err := monitoring.Queries(root)
		Expect(err).NotTo(HaveOccurred())
		read, err := monitoring.Select(ctx, root, queries)
		Expect(err).NotTo(HaveOccurred())
		until(ctx, patience, "the manager shows what is documented and read", func(ctx context.Context) error {
			scraped, err := monitoring.Scraped(w.metrics(ctx))
			if err != nil {
				return err
			}
			if problems := append(monitoring.Compare(scraped, documented),
				monitoring.Problems(read, scraped)...); len(problems) > 0 {
				return errors.New(strings.Join(problems, "\n"))
			}
			return nil
		})
	})

	It("go with the Machine that they are about", func(ctx SpecContext) {
		w.copySecret(ctx, ownSecret)
		w.removed(ctx, name)
		for _, metric := range []string{
			"mapi_machine_created_timestamp_seconds", "mapi_instance_create_failed", "mapi_instance_update_failed",
			"mapi_instance_delete_failed",
		} {
			Eventually(ctx, w.series).WithArguments(ctx, metric,
				ofMachine).WithTimeout(whileItExists).Should(BeEmpty(), metric)
		}
		Expect(w.shows(ctx, "mapi_machine_items")).To(BeEquivalentTo(few))
	})
}

// counts waits until a failure is counted.
func (w *world) counts(ctx context.Context, metric string, labels ...string) {
	GinkgoHelper()
	until(ctx, patience, metric+" has counted", func(ctx context.Context) error {
		found := w.series(ctx, metric, labels...)
		if len(found) == 0 {
			return errors.New("it has no series with the labels of the Machine")
		}
		if lab.Sum(found[0], metric) == 0 {
			return errors.New("it is zero")
		}
		return nil
	})
}
