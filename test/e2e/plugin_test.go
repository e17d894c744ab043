//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/apiproxy"
)

// output is the plugin's output.
type output struct{ out, notes string }

// asks runs `kubectl machine ...` as a user who has only bin on PATH, a kubeconfig and a home.
func (w *world) asks(ctx context.Context, arguments ...string) output {
	GinkgoHelper()
	printed, err := w.tries(ctx, arguments...)
	Expect(err).NotTo(HaveOccurred(), "kubectl machine %s:\n%s%s", strings.Join(arguments, " "),
		printed.out, printed.notes)
	return printed
}

// tries is asks for a command that may fail.
func (w *world) tries(ctx context.Context, arguments ...string) (output, error) {
	bin := w.lab.Path("bin")
	command := exec.CommandContext(ctx, filepath.Join(bin, "kubectl"), append([]string{"machine"}, arguments...)...)
	command.Dir = w.dir
	command.Env = []string{"PATH=" + bin, "KUBECONFIG=" + w.cluster.AdminKubeconfig(), "HOME=" + w.dir}
	var out, notes bytes.Buffer
	command.Stdout, command.Stderr = &out, &notes
	err := command.Run()
	return output{out: out.String(), notes: notes.String()}, err
}

// asksHere is asks in the operator's namespace.
func (w *world) asksHere(ctx context.Context, arguments ...string) output {
	GinkgoHelper()
	return w.asks(ctx, append(arguments, "--namespace", lab.Namespace)...)
}

// row matches a table row that starts with these columns.
func row(columns ...string) string { return `(?m)^` + strings.Join(columns, `\s+`) + `(\s|$)` }

func aPersonWithKubectlMachine() {
	var names []string

	BeforeAll(func(ctx SpecContext) {
		w.replicas(ctx, few)
		names = w.names(ctx)
	})

	It("sees each Machine with its instance and its Node", func(ctx SpecContext) {
		tree := w.asksHere(ctx, "tree")
		Expect(tree.notes).To(BeEmpty())
		Expect(tree.out).To(MatchRegexp(row("MachineSet/"+setName, "2/2 ready")))
		for _, name := range names {
			Expect(tree.out).To(MatchRegexp(`─ Machine/` + name + `\s+Running `))
			Expect(tree.out).To(MatchRegexp(
				`─ Instance/` + string(w.node(ctx, name).UID) + `\s+Running .*hollow; region-a; zone-a; kubemark@`))
			Expect(tree.out).To(MatchRegexp(`─ Node/` + name + `\s+Ready `))
		}
	})

	It("sees a run that goes on, and reads what the engine said once it has ended", func(ctx SpecContext) {
		const name = "waiting"
		held := w.proxy.Hold(apiproxy.BeforeRequest, apiproxy.NodesMade)
		DeferCleanup(held.Lift)
		w.create(ctx, w.machine(name, credentialsFrom(proxySecret)))
		DeferCleanup(func(ctx SpecContext) { w.removed(ctx, name) })
		Eventually(ctx, held.Reached).WithTimeout(patience).Should(Receive())

		Expect(w.asksHere(ctx, "runs", "--active").out).To(MatchRegexp(row(name, "create", "Running", `\d+m?s`)))
		Eventually(ctx, func() string { return w.asksHere(ctx, "tree", name).out }).WithTimeout(patience).Should(
			MatchRegexp(`Instance\S*\s+NotMade .*Create running for \d+m?s`))
		held.Lift()
		w.runs(ctx, name)

		Expect(w.asksHere(ctx, "runs", name).out).To(MatchRegexp(row(name, "-", "-", "-", "create", "Succeeded")))
		printed := w.asksHere(ctx, "logs", name)
		Expect(printed.notes).To(HavePrefix("note: create, Succeeded, began "))
		Expect(printed.out).To(ContainSubstring("kubectl_manifest.this: Creation complete"))
		Expect(printed.out).NotTo(ContainSubstring(w.userData))
		Expect(w.asksHere(ctx, "runs", "--active").notes).To(HavePrefix("Nothing is queued or running"))
	})

	It("looks into a state, without its secrets, and takes it out whole", func(ctx SpecContext) {
		list := w.asksHere(ctx, "state", "list").out
		for _, name := range names {
			Expect(list).To(MatchRegexp(row(name, "Running", "2", `\d+`)))
		}
		shown := w.asksHere(ctx, "state", "show", names[0])
		Expect(shown.notes).To(BeEmpty())
		Expect(shown.out).To(And(ContainSubstring("Machine "+lab.Namespace+"/"+names[0]),
			ContainSubstring("\nkubectl_manifest.this "), ContainSubstring("(sensitive)")))
		Expect(shown.out).NotTo(ContainSubstring(w.userData))

		pulled := w.asksHere(ctx, "state", "pull", names[0])
		Expect(pulled.notes).To(HavePrefix("warning: this holds credentials"))
		seen, err := w.census(ctx)
		Expect(err).NotTo(HaveOccurred())
		stored, err := seen.stateOf(w.get(ctx, names[0]))
		Expect(err).NotTo(HaveOccurred())
		known := &knownState{}
		Expect(json.Unmarshal([]byte(pulled.out), known)).To(Succeed())
		Expect(known).To(Equal(stored))
		Expect(known.nodeUID()).To(Equal(string(w.node(ctx, names[0]).UID)))
	})

	It("shows what an edit would do, and the operator does that", func(ctx SpecContext) {
		edit := w.editOf(with("labels", map[string]any{"example.com/team": "search"}))
		printed := w.asks(ctx, "plan", "--live", "-f", edit)
		Expect(printed.notes).To(BeEmpty())
		for _, name := range names {
			Expect(printed.out).To(MatchRegexp(
				`\s` + name + `\s+Running\s+change in place\s+labels\["example.com/team"\]`))
		}
		Expect(printed.out).To(HaveSuffix(
			"Live: 2 Machines exist: 0 stay as they are, 2 would change in place, 0 need a new Machine. 0 would be " +
				"created, 0 deleted.\n"))

		uid := w.node(ctx, names[0]).UID
		w.patchSpec(ctx, names[0], "labels", map[string]any{"example.com/team": "search"})
		until(ctx, patience, "the Machine is up to date, with the change", func(ctx context.Context) error {
			if team := w.node(ctx, names[0]).Labels["example.com/team"]; team != "search" {
				return fmt.Errorf("its Node is of team %q", team)
			}
			return w.upToDateIs(w.get(ctx, names[0]), corev1.ConditionTrue, "")
		})
		Expect(w.node(ctx, names[0]).UID).To(Equal(uid))
		printed = w.asks(ctx, "plan", "--live", "-f", edit)
		Expect(printed.out).To(MatchRegexp(`\s` + names[0] + `\s+Running\s+stay as it is\s`))
		Expect(printed.out).To(MatchRegexp(`\s` + names[1] + `\s+Running\s+change in place\s`))
	})

	It("shows what needs a new Machine, and that nothing has drifted", func(ctx SpecContext) {
		printed := w.plans(ctx, "--live", "--refresh", "-f", w.editOf(with("cpu", 8)))
		Expect(printed).To(HaveLen(few))
		for _, one := range printed {
			Expect(one).To(Equal(plannedMachine{Name: one.Name, Result: "NewMachine"}))
			Expect(names).To(ContainElement(one.Name))
		}
	})

	It("needs no rights but those that the manual names", func(ctx SpecContext) {
		viewer := w.viewer(ctx)
		for _, arguments := range [][]string{
			{"tree"}, {"runs"}, {"drift"}, {"logs", names[0]}, {"state", "list"}, {"state", "show", names[0]},
			{"state", "pull", names[0]},
			{"plan", "machineset/" + setName},
		} {
			done := w.asksHere(ctx, append(arguments, "--as", viewer)...)
			Expect(done.out).To(ContainSubstring(names[0]), "%v: %s", arguments, done.notes)
		}
	})
}

// plannedMachine is a Machine in a plan's report.
type plannedMachine struct {
	Name   string
	Result string `json:"result"`
	Drift  string
}

// plans returns the Machines in a plan's report.
func (w *world) plans(ctx context.Context, arguments ...string) []plannedMachine {
	GinkgoHelper()
	printed := w.asks(ctx, append([]string{"plan", "-o", "json"}, arguments...)...)
	Expect(printed.notes).To(BeEmpty())
	var read struct {
		MachineSets []struct {
			Live struct{ Machines []plannedMachine }
		}
	}
	Expect(json.Unmarshal([]byte(printed.out), &read)).To(Succeed())
	Expect(read.MachineSets).To(HaveLen(1))
	return read.MachineSets[0].Live.Machines
}

// editOf writes the MachineSet with a user's edits to a file, and returns its path.
func (w *world) editOf(changes ...func(map[string]any)) string {
	GinkgoHelper()
	edited := w.machineSet(few)
	changeSpec(&edited.Spec.Template.Spec, changes...)
	edited.SetGroupVersionKind(machinev1beta1.GroupVersion.WithKind("MachineSet"))
	content, err := yaml.Marshal(edited)
	Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(w.dir, "edit.yaml")
	Expect(os.WriteFile(file, content, 0o600)).To(Succeed())
	return file
}

// viewer creates a user with the Role in docs/kubectl-machine.md.
func (w *world) viewer(ctx context.Context) string {
	GinkgoHelper()
	page, err := os.ReadFile(w.lab.Path("docs", "kubectl-machine.md"))
	Expect(err).NotTo(HaveOccurred())
	_, manifest, found := strings.Cut(string(page), "\n```yaml\n")
	Expect(found).To(BeTrue(), "the page has no manifest")
	manifest, _, _ = strings.Cut(manifest, "```")
	role := &rbacv1.Role{}
	Expect(yaml.UnmarshalStrict([]byte(manifest), role)).To(Succeed())
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: role.Namespace, Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "viewer"}},
	}
	w.create(ctx, role, binding)
	DeferCleanup(func(ctx SpecContext) {
		Expect(w.client.Delete(ctx, role)).To(Succeed())
		Expect(w.client.Delete(ctx, binding)).To(Succeed())
	})
	until(ctx, patience, "the API server has heard of the role", func(ctx context.Context) error {
		_, err := w.lab.Kubectl(ctx, "auth", "can-i", "list", "secrets", "--as", "viewer")
		return err
	})
	return "viewer"
}
