package canary

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/engine/redact"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// engines are the engines' providerSpec kinds, their fields for the module, and the modules.
var engines = map[string]struct{ kind, field, module string }{
	"opentofu": {"TerraformMachineProviderSpec", "module", echoModule},
	"pulumi":   {v1alpha1.PulumiMachineProviderSpecKind, "stack", echoStack},
}

// inPieces is the name suffix of Machines whose error repeats the user data in pieces.
const inPieces = "-fails-in-pieces"

type request struct {
	name, engine, credentials, userData string
	values                              map[string]any
}

func (w *world) object(r request) *machinev1beta1.Machine {
	engine := engines[r.engine]
	values := map[string]any{"zone": "zone-a"}
	for name, value := range r.values {
		values[name] = value
	}
	machine := builder.In(w.namespace,
		builder.Machine(builder.WithLabels(map[string]string{builder.ClusterLabel: "canary"})))
	machine.Name, machine.GenerateName = r.name, ""
	machine.Spec.ProviderSpec.Value = builder.ProviderSpec(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": engine.kind,
		engine.field: engine.module, "values": values,
		"credentialsSecret": map[string]any{"name": r.credentials},
		"userDataSecret":    map[string]any{"name": r.userData},
	})
	return machine
}

func (w *world) request(t *testing.T, r request) string {
	t.Helper()
	if err := w.Create(t.Context(), w.object(r)); err != nil {
		t.Fatal(err)
	}
	return r.name
}

func (w *world) secrets(t *testing.T) []string {
	t.Helper()
	nodes := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"},
		Verbs: []string{"get", "list", "create", "patch", "delete"}}
	token := w.tokenOf(t, "nodes", nodes)
	signature := token[strings.LastIndex(token, ".")+1:]
	w.add("the token that signs in", signature[len(signature)-40:])
	w.secret(t, "credentials", map[string]string{
		"server": w.Config.Host, "token": token, "ca.crt": string(w.Config.CAData),
		"unused": w.fresh("a credential that the module does not read"),
	})
	w.secret(t, "wrong", map[string]string{
		"server": w.Config.Host, "token": w.fresh("a wrong token"), "ca.crt": string(w.Config.CAData),
	})
	var kinds []string
	for kind, text := range w.userData() {
		w.secret(t, "user-data-"+kind, map[string]string{"userData": text})
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return kinds
}

func TestSecretsAreUnseen(t *testing.T) {
	long.Test(t)
	w := newWorld(t)
	w.watch(t)
	kinds := w.secrets(t)
	w.start(t)
	t.Cleanup(func() {
		_ = w.manager.Process.Kill()
		<-w.ended
	})
	failing, made := w.create(t, kinds)
	w.untilCreated(t, failing, made)
	w.look(t)
	w.preview(t)
	w.change(t, made)
	w.look(t)
	w.commands(t, append(failing, made...))
	w.crash(t)
	w.remove(t, made)
	w.look(t)
	w.filesAreClean(t)
	for _, what := range w.seenInArguments() {
		t.Errorf("there is %s", what)
	}
}

// create creates Machines of each engine: with every kind of user data, which the infrastructure accepts or rejects and
// repeats, and with wrong credentials.
func (w *world) create(t *testing.T, kinds []string) (failing, made []string) {
	t.Helper()
	for engine := range engines {
		for _, kind := range kinds {
			r := request{name: engine + "-fails-" + kind, engine: engine, credentials: "credentials",
				userData: "user-data-" + kind, values: map[string]any{"echo": 1}}
			failing = append(failing, w.request(t, r))
		}
		failing = append(failing,
			w.request(t, request{name: engine + "-fails-wrong", engine: engine, credentials: "wrong",
				userData: "user-data-json"}),
			w.request(t, request{name: engine + inPieces, engine: engine, credentials: "credentials",
				userData: "user-data-json", values: map[string]any{"echo": 2}}),
		)
		for _, kind := range []string{"json", "yaml"} {
			r := request{name: engine + "-is-made-" + kind, engine: engine, credentials: "credentials",
				userData: "user-data-" + kind}
			made = append(made, w.request(t, r))
		}
	}
	return failing, made
}

func (w *world) untilCreated(t *testing.T, failing, made []string) {
	t.Helper()
	for _, name := range failing {
		w.until(t, name+" has failed", func() bool { return w.failure(t, name) != "" })
		printed := w.run(t, "logs", name) + w.run(t, "logs", name, "--withheld")
		if !strings.Contains(name, "wrong") && !strings.Contains(printed, "Invalid value") {
			t.Errorf("%s did not fail as it should, so that it shows nothing:\n%s\n%s", name,
				w.failure(t, name), printed)
		}
		if strings.HasSuffix(name, inPieces) {
			w.withheld(t, name)
		}
	}
	for _, name := range made {
		w.until(t, name+" is made", func() bool {
			machine := w.machine(t, name)
			return machine != nil && machine.Spec.ProviderID != nil
		})
		node := &corev1.Node{}
		if err := w.Client.Get(t.Context(), client.ObjectKey{Name: name}, node); err != nil ||
			len(w.in(node.Annotations["user-data"])) == 0 {
			t.Errorf("%s has the user data %q, %v: this shows nothing", name, node.Annotations["user-data"], err)
		}
	}
}

// withheld tests an error that repeats too much user data to be redacted: only those who may read the state may see it.
func (w *world) withheld(t *testing.T, name string) {
	t.Helper()
	event, stranger := w.failure(t, name), w.runAs(t, w.stranger, "logs", name, "--withheld")
	for where, text := range map[string]string{"the event": event, "kubectl machine logs": w.run(t, "logs", name)} {
		if !strings.Contains(text, redact.Withheld) || strings.Contains(text, "Invalid value") ||
			strings.Contains(text, pin) {
			t.Errorf("%s of %s does not withhold the error:\n%s", where, name, text)
		}
	}
	if !strings.Contains(event, "kubectl machine logs --withheld") {
		t.Errorf("the event of %s does not say how to read what is withheld: %s", name, event)
	}
	if printed := w.run(t, "logs", name, "--withheld"); !strings.Contains(printed, "Invalid value") ||
		!strings.Contains(printed, pin) || !strings.Contains(printed, redact.Redacted) {
		t.Errorf("what is withheld of %s is not printed to who may read the state:\n%s", name, printed)
	}
	if !strings.Contains(stranger, "forbidden") || strings.Contains(stranger, "Invalid value") ||
		strings.Contains(stranger, pin) {
		t.Errorf("who may not read Secrets reads of %s:\n%s", name, stranger)
	}
}

// look searches what users and observers of the cluster read.
func (w *world) look(t *testing.T) {
	t.Helper()
	for what, text := range w.objects(t) {
		w.unseen(t, what, text)
	}
	log, err := os.ReadFile(w.logFile())
	if err != nil {
		t.Fatal(err)
	}
	w.unseen(t, "the manager's log", string(log))
	w.unseen(t, "the metrics", w.metrics(t))
}

// commands searches the command line's output for each Machine.
func (w *world) commands(t *testing.T, machines []string) {
	t.Helper()
	for _, command := range []string{"tree", "runs", "drift", "state list", "orphans"} {
		for _, format := range []string{"", "json", "yaml"} {
			arguments := strings.Fields(command)
			if format != "" {
				arguments = append(arguments, "-o", format)
			}
			w.unseen(t, "kubectl machine "+strings.Join(arguments, " "), w.run(t, arguments...))
		}
	}
	for _, name := range machines {
		w.unseen(t, "kubectl machine logs of "+name, w.run(t, "logs", name))
		w.unseen(t, "kubectl machine logs --withheld of "+name, w.run(t, "logs", name, "--withheld"))
		w.unseen(t, "kubectl machine state show of "+name, w.run(t, "state", "show", name))
	}
}

// preview searches previews of manifests and of the cluster.
func (w *world) preview(t *testing.T) {
	t.Helper()
	tools := []string{
		"--module-dir", w.modules, "--provider-mirror", repository(t, "bin", "mirror"),
		"--engine-path", repository(t, "bin", "tofu"),
		"--pulumi", repository(t, "bin", "pulumi"), "--pulumi-plugins", repository(t, "bin", "pulumi-plugins"),
	}
	for engine := range engines {
		machine := w.object(request{name: engine + "-is-made-json", engine: engine, credentials: "credentials",
			userData: "user-data-json", values: map[string]any{"zone": "zone-c"}})
		machine.APIVersion, machine.Kind = machinev1beta1.GroupVersion.String(), "Machine"
		text, err := json.Marshal(machine)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(w.dir, engine+".json")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, how := range []string{"", "--live", "--live -o json", "--live -o yaml", "--live -o markdown"} {
			printed := w.run(t, slices.Concat([]string{"plan", "-f", file}, strings.Fields(how), tools)...)
			if !strings.Contains(printed, "zone-c") {
				t.Errorf("a preview (%s) with %s shows nothing:\n%s", how, engine, printed)
			}
			w.unseen(t, "a preview ("+how+") with "+engine, printed)
		}
	}
}

// change changes Machines, and runs drift checks after others changed the instances.
func (w *world) change(t *testing.T, made []string) {
	t.Helper()
	for _, name := range made {
		machine := w.machine(t, name)
		machine.Spec.ProviderSpec.Value.Raw = []byte(
			strings.Replace(string(machine.Spec.ProviderSpec.Value.Raw), "zone-a", "zone-b", 1))
		if err := w.Client.Update(t.Context(), machine); err != nil {
			t.Fatal(err)
		}
		w.until(t, name+" is changed", func() bool {
			node := &corev1.Node{}
			err := w.Client.Get(t.Context(), client.ObjectKey{Name: name}, node)
			return err == nil && (node.Labels["zone"] == "zone-b" || node.Labels[corev1.LabelTopologyZone] == "zone-b")
		})
		node := &corev1.Node{}
		if err := w.Client.Get(t.Context(), client.ObjectKey{Name: name}, node); err != nil {
			t.Fatal(err)
		}
		node.Labels["zone"], node.Labels[corev1.LabelTopologyZone] = "elsewhere", "elsewhere"
		if err := w.Client.Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	w.unseen(t, "kubectl machine drift --now", w.run(t, append([]string{"drift", "--now"}, made...)...))
}

// crash kills the manager while it creates a Machine with each engine, and restarts it.
func (w *world) crash(t *testing.T) {
	t.Helper()
	var names []string
	for engine := range engines {
		names = append(names, w.request(t,
			request{name: engine + "-crashes", engine: engine, credentials: "credentials", userData: "user-data-pem"}))
	}
	w.until(t, "a run is under way", func() bool {
		entries, err := filepath.Glob(filepath.Join(w.workDir(), "*", "runs", "*"))
		more, _ := filepath.Glob(filepath.Join(w.workDir(), "runs", "*"))
		return err == nil && len(entries)+len(more) > 0
	})
	w.stop(t, syscall.SIGKILL)
	w.start(t)
	for _, name := range names {
		w.until(t, name+" is made after all", func() bool {
			machine := w.machine(t, name)
			return machine != nil && machine.Spec.ProviderID != nil
		})
	}
	w.remove(t, names)
}

func (w *world) remove(t *testing.T, names []string) {
	t.Helper()
	for _, name := range names {
		if err := w.Client.Delete(t.Context(), w.machine(t, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names {
		w.until(t, name+" is gone", func() bool { return w.machine(t, name) == nil })
	}
}

// filesAreClean stops the manager, so that no run is in progress, and searches the remaining files.
func (w *world) filesAreClean(t *testing.T) {
	t.Helper()
	w.stop(t, syscall.SIGTERM)
	for _, found := range w.files(w.workDir()) {
		t.Errorf("there is %s", found)
	}
}
