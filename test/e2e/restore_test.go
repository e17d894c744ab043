//go:build e2e

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/hack/devcluster/cluster"
	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
)

// anEtcdFromAnHourAgo goes through "etcd restored from an hour ago" of docs/backup.md: the cluster forgets what was made, changed and deleted since,
// and the infrastructure does not.
func anEtcdFromAnHourAgo() {
	const kept, edited, removed, later = "hour-kept", "hour-edited", "hour-removed", "hour-later"
	var s *stack
	servers := map[string]string{}
	var backup string
	var manifest *machinev1beta1.Machine

	BeforeAll(func(ctx SpecContext) {
		s = w.openStack(ctx)
		w.pod.restart(ctx, "--drift-interval=10s")
		DeferCleanup(func(ctx SpecContext) { w.pod.restart(ctx) })
		for _, name := range []string{kept, edited, removed} {
			servers[name] = s.runningAlone(ctx, name)
		}
		snapshot := filepath.Join(w.dir, "etcd-an-hour-ago")
		w.whileDown(ctx, "--drift-interval=10s", func(etcd string) { copied(ctx, etcd, snapshot) })

		servers[later] = s.runningAlone(ctx, later)
		w.patchTeam(ctx, edited, "storage")
		until(ctx, patience, "the server has the edit", func(context.Context) error { return s.hasTeam(edited, "storage") })
		w.kubectl(ctx, "delete", "machine", removed)
		Expect(s.Server(removed)).To(BeNil())
		backup = filepath.Join(w.dir, "backup")
		Expect(w.asksHere(ctx, "state", "export", "--all", "-o", backup).out).To(ContainSubstring("3 states and 1 module written"))
		manifest = w.get(ctx, later)

		w.whileDown(ctx, "--drift-interval=10s", func(etcd string) {
			Expect(os.RemoveAll(etcd)).To(Succeed())
			copied(ctx, snapshot, etcd)
		})
	})

	It("has Machines as they were then", func(ctx SpecContext) {
		Expect(w.get(ctx, removed).DeletionTimestamp).To(BeNil())
		Expect(string(w.get(ctx, edited).Spec.ProviderSpec.Value.Raw)).NotTo(ContainSubstring("storage"))
		err := w.client.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: later}, &machinev1beta1.Machine{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue())
	})

	It("reports what is not as the states say, and makes, changes and removes nothing", func(ctx SpecContext) {
		until(ctx, patience, "the Machine whose server was destroyed since has failed", func(ctx context.Context) error {
			return phaseIs(w.get(ctx, removed), machinev1beta1.PhaseFailed)
		})
		w.expectEvent(ctx, w.get(ctx, removed), "DriftMissing", "openstack_compute_instance_v2.this")
		until(ctx, patience, "the Machine whose server was changed since says so", func(ctx context.Context) error {
			return w.driftIs(ctx, edited, metav1.ConditionTrue)
		})
		until(ctx, patience, "the Machine to which nothing happened is as it was", func(ctx context.Context) error {
			return errors.Join(w.driftIs(ctx, kept, metav1.ConditionFalse), phaseIs(w.get(ctx, kept), machinev1beta1.PhaseRunning))
		})
		Expect(s.hasTeam(edited, "storage")).To(Succeed())
		s.isLeftWith(servers, kept, edited, later)
		Expect(s.orphans(ctx)).To(Equal([]string{later}), "the servers of no Machine")
	})

	It("takes the Machine that it forgot back, from a backup", func(ctx SpecContext) {
		w.create(ctx, &machinev1beta1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: manifest.Namespace, Name: manifest.Name, Labels: manifest.Labels, Annotations: manifest.Annotations},
			Spec:       manifest.Spec,
		})
		anew := w.get(ctx, later)
		Expect(anew.UID).NotTo(Equal(manifest.UID))
		Expect(w.asksHere(ctx, "state", "import", backup, later).out).To(MatchRegexp(row(later, `\d+`, "-", "Imported")))
		s.join(ctx, anew)
		until(ctx, patience, "it runs with the server that it had", func(ctx context.Context) error {
			return errors.Join(phaseIs(w.get(ctx, later), machinev1beta1.PhaseRunning), w.driftIs(ctx, later, metav1.ConditionFalse))
		})
		Expect(w.get(ctx, later).Spec.ProviderID).To(HaveValue(Equal("openstack:///" + servers[later])))
		Expect(s.Server(later).Metadata).To(HaveKeyWithValue("machine-iac.io_machine-uid", string(manifest.UID)))
		s.isLeftWith(servers, kept, edited, later)
		Expect(s.orphans(ctx)).To(BeEmpty())
	})

	It("is put right by applying the edit once more, and by deleting the Machine whose server is gone", func(ctx SpecContext) {
		w.patchTeam(ctx, edited, "storage")
		until(ctx, patience, "the edited Machine is as it is asked for", func(ctx context.Context) error {
			return errors.Join(w.driftIs(ctx, edited, metav1.ConditionFalse), w.upToDateIs(w.get(ctx, edited), corev1.ConditionTrue, ""))
		})
		w.kubectl(ctx, "delete", "machine", removed)
		s.isLeftWith(servers, kept, edited, later)
	})

	It("releases a Machine, and takes it back", func(ctx SpecContext) {
		released := filepath.Join(w.dir, "released")
		Expect(w.asksHere(ctx, "release", kept, "-o", released).out).To(ContainSubstring("machine/" + kept + " released"))
		Expect(w.asksHere(ctx, "state", "list").out).NotTo(ContainSubstring(kept))
		s.isLeftWith(servers, kept, edited, later)
		w.kubectl(ctx, "annotate", "machine", kept, lifecycle.AdoptionAnnotation+"-")
		Expect(w.asksHere(ctx, "state", "import", released, kept).out).To(MatchRegexp(row(kept, `\d+`, "-", "Imported")))
		until(ctx, patience, "it is checked again", func(ctx context.Context) error { return w.driftIs(ctx, kept, metav1.ConditionFalse) })
		s.isLeftWith(servers, kept, edited, later)
	})

	It("takes all servers with it", func(ctx SpecContext) {
		w.kubectl(ctx, "delete", "machine", kept, edited, later)
		Expect(s.Servers()).To(BeEmpty())
		Expect(s.Count()).To(HaveKeyWithValue("ports", 0))
	})
}

// runningAlone makes a Machine of its own, like those of the MachineSet, and returns its server's ID once it is Running.
func (s *stack) runningAlone(ctx context.Context, name string) string {
	GinkgoHelper()
	template := s.set.Spec.Template.DeepCopy()
	delete(template.Labels, "machine.openshift.io/cluster-api-machineset")
	w.create(ctx, &machinev1beta1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab.Namespace, Name: name, Labels: template.Labels}, Spec: template.Spec,
	})
	until(ctx, patience, "the Machine has a server", func(ctx context.Context) error {
		return phaseIs(w.get(ctx, name), machinev1beta1.PhaseProvisioned)
	})
	s.join(ctx, w.get(ctx, name))
	until(ctx, patience, "the Machine runs", func(ctx context.Context) error { return phaseIs(w.get(ctx, name), machinev1beta1.PhaseRunning) })
	return s.Server(name).ID
}

// isLeftWith expects the cloud to have the servers of some Machines, each of which was made once.
func (s *stack) isLeftWith(ids map[string]string, names ...string) {
	GinkgoHelper()
	found := map[string]string{}
	for _, server := range s.Servers() {
		found[server.Name] = server.ID
	}
	want := map[string]string{}
	for _, name := range names {
		want[name] = ids[name]
	}
	Expect(found).To(Equal(want))
	var made []string
	for _, one := range s.History() {
		if one.Kind == "servers" {
			made = append(made, one.ID)
		}
	}
	Expect(made).To(HaveLen(len(ids)), "a server was made twice: %v", made)
}

// orphans returns the names of the servers that have no Machine and no state.
func (s *stack) orphans(ctx context.Context) []string {
	GinkgoHelper()
	seen, err := w.census(ctx)
	Expect(err).NotTo(HaveOccurred())
	var left []string
	for _, server := range s.Servers() {
		uid := server.Metadata["machine-iac.io_machine-uid"]
		known := slices.ContainsFunc(seen.states, func(head corev1.Secret) bool {
			return head.Labels["machine-iac.io/machine-uid"] == uid || head.Annotations["machine-iac.io/identity-uid"] == uid
		})
		if !known {
			left = append(left, server.Name)
		}
	}
	return left
}

// hasTeam returns an error unless a server has the metadata.
func (s *stack) hasTeam(name, team string) error {
	if got := s.Server(name).Metadata["team"]; got != team {
		return fmt.Errorf("the metadata team is %q", got)
	}
	return nil
}

// patchTeam edits the metadata that a Machine's server is to have.
func (w *world) patchTeam(ctx context.Context, name, team string) {
	GinkgoHelper()
	w.kubectl(ctx, "patch", "machine", name, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"providerSpec":{"value":{"serverMetadata":{"team":%q}}}}}`, team))
}

// driftIs returns an error unless the condition Drifted of a Machine's provider status has a status that is of a check of the last minute.
func (w *world) driftIs(ctx context.Context, name string, want metav1.ConditionStatus) error {
	var status struct {
		Conditions         []metav1.Condition `json:"conditions"`
		LastDriftCheckTime *metav1.Time       `json:"lastDriftCheckTime"`
	}
	raw := w.get(ctx, name).Status.ProviderStatus
	if raw == nil {
		raw = &runtime.RawExtension{Raw: []byte("{}")}
	}
	if err := json.Unmarshal(raw.Raw, &status); err != nil {
		return err
	}
	if status.LastDriftCheckTime == nil || time.Since(status.LastDriftCheckTime.Time) > time.Minute {
		return fmt.Errorf("the last drift check of %s was at %v", name, status.LastDriftCheckTime)
	}
	for _, condition := range status.Conditions {
		if condition.Type == "Drifted" && condition.Status == want {
			return nil
		}
	}
	return fmt.Errorf("the conditions of %s are %+v", name, status.Conditions)
}

// whileDown stops the manager and the cluster, does something to etcd's data, and starts both again, the manager with flags.
func (w *world) whileDown(ctx context.Context, flags string, do func(etcd string)) {
	GinkgoHelper()
	w.pod.terminate()
	Expect(w.cluster.Down(ctx)).To(Succeed())
	do(filepath.Join(w.cluster.Dir(), "etcd"))
	for _, component := range cluster.Components() {
		Expect(w.cluster.Start(ctx, component)).To(Succeed())
	}
	w.pod.start(ctx, flags)
}

// copied copies a folder as it is.
func copied(ctx context.Context, from, to string) {
	GinkgoHelper()
	out, err := exec.CommandContext(ctx, "cp", "-a", from, to).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
}
