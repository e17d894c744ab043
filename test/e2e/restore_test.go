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
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/hack/devcluster/cluster"
	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/internal/inspect"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
)

// often makes the manager check often, and report findings at once.
var often = []string{"--drift-interval=10s", "--inventory-interval=10s", "--orphan-grace-period=1s"}

// anEtcdFromAnHourAgo follows "etcd restored from an hour ago" in docs/backup.md: the cluster forgets what was created,
// changed and deleted since, but the infrastructure does not.
func anEtcdFromAnHourAgo() {
	const kept, edited, removed, queued = "hour-kept", "hour-edited", "hour-removed", "hour-queued"
	const later, wanted, unwanted = "hour-later", "hour-later-wanted", "hour-later-unwanted"
	var s *stack
	var hollow *elsewhere
	servers := map[string]string{}
	var backup string
	var node types.UID
	var manifest *machinev1beta1.Machine

	BeforeAll(func(ctx SpecContext) {
		s = w.openStack(ctx)
		hollow = w.openElsewhere(ctx)
		w.pod.restart(ctx, often...)
		DeferCleanup(func(ctx SpecContext) { w.pod.restart(ctx) })
		w.create(ctx, w.machine(edited, credentialsFrom(elsewhereCredentials)))
		s.runningAlone(ctx, servers, kept, removed)
		s.becomesRunning(ctx, edited)
		node = hollow.node(ctx, edited).UID
		snapshot := filepath.Join(w.dir, "etcd-an-hour-ago")
		w.pod.terminate()
		w.create(ctx, s.alone(queued)) // in the backup, no object mentions its server yet
		w.whileDown(ctx, often, func(etcd string) { copied(ctx, etcd, snapshot) })

		s.becomesRunning(ctx, queued)
		servers[queued] = s.Server(queued).ID
		s.runningAlone(ctx, servers, later, wanted, unwanted)
		w.patchSpec(ctx, edited, "zone", "zone-b")
		until(ctx, patience, "the instance has the edit",
			func(ctx context.Context) error { return hollow.isIn(ctx, edited, "zone-b") })
		w.kubectl(ctx, "delete", "machine", removed)
		Expect(s.Server(removed)).To(BeNil())
		backup = filepath.Join(w.dir, "backup")
		Expect(w.asksHere(ctx, "state", "export", "--all", "-o", backup).out).To(
			ContainSubstring("6 states and 2 modules written"))
		manifest = w.get(ctx, later)

		w.whileDown(ctx, often, func(etcd string) {
			Expect(os.RemoveAll(etcd)).To(Succeed())
			copied(ctx, snapshot, etcd)
		})
		w.nodes.Forget() // a kubelet registers the Node again that etcd forgot
	})

	It("has Machines as they were then", func(ctx SpecContext) {
		Expect(w.get(ctx, removed).DeletionTimestamp).To(BeNil())
		Expect(string(w.get(ctx, edited).Spec.ProviderSpec.Value.Raw)).NotTo(ContainSubstring("zone-b"))
		err := w.client.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: later}, &machinev1beta1.Machine{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue())
	})

	It("reports what is not as the states say, and makes, changes and removes nothing", func(ctx SpecContext) {
		until(ctx, patience, "the Machine whose server was destroyed since has failed",
			func(ctx context.Context) error {
				return phaseIs(w.get(ctx, removed), machinev1beta1.PhaseFailed)
			})
		w.expectEvent(ctx, w.get(ctx, removed), "DriftMissing", "openstack_compute_instance_v2.this")
		for _, name := range []string{kept, edited} {
			until(ctx, patience, name+" runs, and was checked", func(ctx context.Context) error {
				return errors.Join(w.driftIs(ctx, name, metav1.ConditionFalse),
					phaseIs(w.get(ctx, name), machinev1beta1.PhaseRunning))
			})
		}
		until(ctx, patience, "the Machine whose create was to come then has the server that it got",
			func(ctx context.Context) error {
				return phaseIs(w.get(ctx, queued), machinev1beta1.PhaseProvisioned)
			})
		Expect(w.get(ctx, queued).Spec.ProviderID).To(HaveValue(Equal("openstack:///" + servers[queued])))
		s.becomesRunning(ctx, queued)
		Expect(hollow.isIn(ctx, edited, "zone-b")).To(Succeed(), "what the module does not compare stays as it is")
		Expect(hollow.node(ctx, edited).UID).To(Equal(node))
		s.isLeftWith(servers, kept, queued, later, wanted, unwanted)
		w.orphansAre(ctx, time.Now(), "Instance "+later, "Instance "+unwanted, "Instance "+wanted)
	})

	It("takes the Machine that it forgot back, from a backup", func(ctx SpecContext) {
		w.create(ctx, &machinev1beta1.Machine{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: manifest.Namespace, Name: manifest.Name, Labels: manifest.Labels,
				Annotations: manifest.Annotations,
			},
			Spec: manifest.Spec,
		})
		anew := w.get(ctx, later)
		Expect(anew.UID).NotTo(Equal(manifest.UID))
		Expect(w.asksHere(ctx, "state", "import", backup, later).out).To(
			MatchRegexp(row(later, `\d+`, "-", "Imported")))
		s.join(ctx, anew)
		until(ctx, patience, "it runs with the server that it had", func(ctx context.Context) error {
			return errors.Join(phaseIs(w.get(ctx, later), machinev1beta1.PhaseRunning),
				w.driftIs(ctx, later, metav1.ConditionFalse))
		})
		Expect(w.get(ctx, later).Spec.ProviderID).To(HaveValue(Equal("openstack:///" + servers[later])))
		Expect(s.Server(later).Metadata).To(HaveKeyWithValue("machine-iac.io_machine-uid", string(manifest.UID)))
		s.isLeftWith(servers, kept, queued, later, wanted, unwanted)
		w.orphansAre(ctx, time.Now(), "Instance "+unwanted, "Instance "+wanted)
	})

	It("adopts a server that it forgot, and destroys another, where there is no backup", func(ctx SpecContext) {
		Expect(w.asksHere(ctx, "orphans", wanted, "--adopt-as", wanted).out).To(
			ContainSubstring("machine/" + wanted + " has adopted openstack:///" + servers[wanted]))
		s.join(ctx, w.get(ctx, wanted))
		until(ctx, patience, "it runs with the server that it had", func(ctx context.Context) error {
			return errors.Join(phaseIs(w.get(ctx, wanted), machinev1beta1.PhaseRunning),
				w.driftIs(ctx, wanted, metav1.ConditionFalse))
		})
		Expect(w.asksHere(ctx, "orphans", "--destroy", unwanted, "--yes").out).To(
			ContainSubstring(unwanted + " is destroyed"))
		s.isLeftWith(servers, kept, queued, later, wanted)
		w.orphansAre(ctx, time.Now())
	})

	It("is put right by applying the edit once more, and by deleting the Machine whose server "+
		"is gone", func(ctx SpecContext) {
		w.patchSpec(ctx, edited, "zone", "zone-b")
		until(ctx, patience, "the edited Machine is as it is asked for", func(ctx context.Context) error {
			return errors.Join(w.driftIs(ctx, edited, metav1.ConditionFalse),
				w.upToDateIs(w.get(ctx, edited), corev1.ConditionTrue, ""))
		})
		Expect(hollow.node(ctx, edited).UID).To(Equal(node))
		Expect(hollow.isIn(ctx, edited, "zone-b")).To(Succeed())
		w.kubectl(ctx, "delete", "machine", removed)
		s.isLeftWith(servers, kept, queued, later, wanted)
	})

	It("releases a Machine, and takes it back", func(ctx SpecContext) {
		released := filepath.Join(w.dir, "released")
		Expect(w.asksHere(ctx, "release", kept, "-o", released).out).To(
			ContainSubstring("machine/" + kept + " released"))
		Expect(w.asksHere(ctx, "state", "list").out).NotTo(ContainSubstring(kept))
		s.isLeftWith(servers, kept, queued, later, wanted)
		w.kubectl(ctx, "annotate", "machine", kept, lifecycle.AdoptionAnnotation+"-")
		Expect(w.asksHere(ctx, "state", "import", released, kept).out).To(
			MatchRegexp(row(kept, `\d+`, "-", "Imported")))
		until(ctx, patience, "it is checked again",
			func(ctx context.Context) error { return w.driftIs(ctx, kept, metav1.ConditionFalse) })
		s.isLeftWith(servers, kept, queued, later, wanted)
	})

	It("takes all servers with it", func(ctx SpecContext) {
		w.kubectl(ctx, "delete", "machine", kept, edited, queued, later, wanted)
		Expect(s.Servers()).To(BeEmpty())
		Expect(s.Count()).To(HaveKeyWithValue("ports", 0))
		Expect(hollow.nodes(ctx)).To(BeEmpty())
	})
}

// runningAlone creates standalone Machines like those of the MachineSet, and records their servers' IDs once they are
// Running.
func (s *stack) runningAlone(ctx context.Context, servers map[string]string, names ...string) {
	GinkgoHelper()
	for _, name := range names {
		w.create(ctx, s.alone(name))
	}
	for _, name := range names {
		s.becomesRunning(ctx, name)
		servers[name] = s.Server(name).ID
	}
}

// becomesRunning waits until a Machine has an instance, creates its Node, and waits until it is Running.
func (s *stack) becomesRunning(ctx context.Context, name string) {
	GinkgoHelper()
	until(ctx, patience, "the Machine has an instance", func(ctx context.Context) error {
		return phaseIs(w.get(ctx, name), machinev1beta1.PhaseProvisioned)
	})
	s.join(ctx, w.get(ctx, name))
	until(ctx, patience, "the Machine runs", func(ctx context.Context) error {
		return phaseIs(w.get(ctx, name), machinev1beta1.PhaseRunning)
	})
}

// isLeftWith expects that the cloud has only these Machines' servers, each created once.
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

// orphansAre waits until kubectl machine orphans lists exactly these instances, sorted by name, in a search since a
// time.
func (w *world) orphansAre(ctx context.Context, since time.Time, names ...string) {
	GinkgoHelper()
	until(ctx, patience, fmt.Sprintf("the orphans %v are reported", names), func(ctx context.Context) error {
		kept := &corev1.ConfigMap{}
		if err := w.client.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: lifecycle.InventoryConfigMap},
			kept); err != nil {
			return err
		}
		var report lifecycle.InventoryReport
		if err := json.Unmarshal([]byte(kept.Data[lifecycle.InventoryKey]), &report); err != nil {
			return err
		}
		var listed inspect.OrphanList
		if err := json.Unmarshal([]byte(w.asksHere(ctx, "orphans", "-o", "json").out), &listed); err != nil {
			return err
		}
		found := []string{}
		for i := range listed.Items {
			found = append(found, string(listed.Items[i].Kind)+" "+listed.Items[i].Name())
		}
		slices.Sort(found)
		if !slices.Equal(found, names) || !report.Checked.After(since) {
			return fmt.Errorf("at %s there are %v, with the problems %v", report.Checked, found, report.Problems)
		}
		return nil
	})
}

// elsewhereCredentials is the Secret with credentials for another API server.
const elsewhereCredentials = "elsewhere-credentials"

// elsewhere is another API server, whose Nodes are instances outside of the cluster's etcd.
type elsewhere struct{ *controlplane.ControlPlane }

// openElsewhere starts another API server, and creates the Secret with its credentials.
func (w *world) openElsewhere(ctx context.Context) *elsewhere {
	GinkgoHelper()
	plane, err := controlplane.Start(controlplane.Default)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(plane.Stop)
	named := metav1.ObjectMeta{Namespace: "default", Name: "kubemark"}
	account := &corev1.ServiceAccount{ObjectMeta: named}
	Expect(plane.Create(ctx, account, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: named.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: named.Namespace, Name: named.Name}},
	})).To(Succeed())
	token := &authenticationv1.TokenRequest{}
	Expect(plane.Client.SubResource("token").Create(ctx, account, token)).To(Succeed())
	credentials := newSecret(elsewhereCredentials, map[string][]byte{
		"server": []byte(plane.Config.Host), "token": []byte(token.Status.Token), "ca.crt": plane.Config.CAData,
	})
	w.create(ctx, credentials)
	DeferCleanup(func(ctx SpecContext) { Expect(w.client.Delete(ctx, credentials)).To(Succeed()) })
	return &elsewhere{plane}
}

// node returns a Machine's instance.
func (e *elsewhere) node(ctx context.Context, name string) *corev1.Node {
	GinkgoHelper()
	found := &corev1.Node{}
	Expect(e.Client.Get(ctx, client.ObjectKey{Name: name}, found)).To(Succeed())
	return found
}

func (e *elsewhere) nodes(ctx context.Context) []corev1.Node {
	GinkgoHelper()
	var list corev1.NodeList
	Expect(e.Client.List(ctx, &list)).To(Succeed())
	return list.Items
}

// isIn returns an error unless a Machine's instance is in a zone.
func (e *elsewhere) isIn(ctx context.Context, name, zone string) error {
	GinkgoHelper()
	if got := e.node(ctx, name).Labels["topology.kubernetes.io/zone"]; got != zone {
		return fmt.Errorf("the zone is %q", got)
	}
	return nil
}

// driftIs returns an error unless a Machine's condition Drifted has this status from a check in the last minute.
func (w *world) driftIs(ctx context.Context, name string, want metav1.ConditionStatus) error {
	return w.driftSince(ctx, time.Now().Add(-time.Minute), name, want)
}

// driftSince is driftIs for a check after a time.
func (w *world) driftSince(ctx context.Context, since time.Time, name string, want metav1.ConditionStatus) error {
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
	if status.LastDriftCheckTime == nil || status.LastDriftCheckTime.Time.Before(since) {
		return fmt.Errorf("the last drift check of %s was at %v", name, status.LastDriftCheckTime)
	}
	for _, condition := range status.Conditions {
		if condition.Type == "Drifted" && condition.Status == want {
			return nil
		}
	}
	return fmt.Errorf("the conditions of %s are %+v", name, status.Conditions)
}

// whileDown stops the manager, the operator and the cluster, calls do with etcd's data, and restarts them, the manager
// with flags.
func (w *world) whileDown(ctx context.Context, flags []string, do func(etcd string)) {
	GinkgoHelper()
	w.pod.terminate()
	Expect(w.lab.Operator.Stop()).To(Succeed())
	Expect(w.cluster.Down(ctx)).To(Succeed())
	do(filepath.Join(w.cluster.Dir(), "etcd"))
	for _, component := range cluster.Components() {
		Expect(w.cluster.Start(ctx, component)).To(Succeed())
	}
	var err error
	w.lab.Operator, err = w.lab.RunOperator(ctx, lab.OperatorInstance{})
	Expect(err).NotTo(HaveOccurred())
	w.pod.start(ctx, flags...)
}

// copied copies a folder and preserves its metadata.
func copied(ctx context.Context, from, to string) {
	GinkgoHelper()
	out, err := exec.CommandContext(ctx, "cp", "-a", from, to).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
}
