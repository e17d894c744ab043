package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	identity "github.com/machine-iac/machine-iac-operator/internal/installation"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/pulumikeys"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
	"github.com/machine-iac/machine-iac-operator/modules"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// backupWorld has two Machines with states that are settled: "kept", of a module, and "stacked", with an encrypted checkpoint.
type backupWorld struct {
	*world
	states  *state.Store
	modules *store.Store
	module  string
	salt    string
}

func newBackupWorld(t *testing.T) *backupWorld {
	t.Helper()
	w := &backupWorld{world: newSharedWorld(t)}
	w.states, w.modules = state.New(w.Client, state.Options{}), store.New(w.Client, store.Options{})
	loaded, err := load.Modules(modules.FS)
	if err != nil {
		t.Fatal(err)
	}
	kubemark := loaded[slices.IndexFunc(loaded, func(m *module.Module) bool { return m.Name() == "kubemark" })]
	if err := w.modules.Keep(t.Context(), w.namespace, kubemark); err != nil {
		t.Fatal(err)
	}
	w.module = kubemark.Reference()
	keys, err := pulumikeys.New(w.Client, pulumikeys.Options{Namespace: w.namespace})
	if err != nil {
		t.Fatal(err)
	}
	key, err := keys.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.salt = key.Salt()
	checkpoint, err := statefile.Checkpoint{Serial: 1, Lineage: "stacked", Raw: fmt.Appendf(nil,
		`{"version":3,"checkpoint":{"latest":{"secrets_providers":{"type":"passphrase","state":{"salt":%q}}}}}`, w.salt)}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	w.settled(t, "kept", []byte(strings.Replace(stateBody(2), `"lineage":"l"`, `"lineage":"kept"`, 1)))
	w.settled(t, "stacked", checkpoint)
	return w
}

// settled makes a Machine with a state, and nothing in progress.
func (w *backupWorld) settled(t *testing.T, name string, raw []byte) {
	t.Helper()
	machine := w.make(t, name, "")
	session, err := w.acquire(t, machine, state.Attachments{"inputs": []byte("secret inputs")})
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Put(t.Context(), raw); err != nil {
		t.Fatal(err)
	}
	p := record.NewPatch().SetApplied("sha256:f", w.module)
	if err := session.Release(t.Context(), p.MetaPatch); err != nil {
		t.Fatal(err)
	}
}

// make makes a Machine; witness is its annotation, "" for none.
func (w *backupWorld) make(t *testing.T, name, witness string) *machinev1beta1.Machine {
	t.Helper()
	machine := builder.In(w.namespace, builder.Machine(func(m *machinev1beta1.Machine) { m.Name = name }))
	if witness != "" {
		machine.Annotations = map[string]string{record.WitnessAnnotation: witness}
	}
	if err := w.Create(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	return machine
}

func (w *backupWorld) get(t *testing.T, name string) *machinev1beta1.Machine {
	t.Helper()
	machine := &machinev1beta1.Machine{}
	if err := w.Client.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: name}, machine); err != nil {
		t.Fatal(err)
	}
	return machine
}

// again removes a Machine and makes it anew.
func (w *backupWorld) again(t *testing.T, name, witness string) (old, anew *machinev1beta1.Machine) {
	t.Helper()
	old = w.get(t, name)
	if err := w.Client.Delete(t.Context(), old.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	return old, w.make(t, name, witness)
}

// stored returns the state of a Machine without what only the Secret has.
func (w *backupWorld) stored(t *testing.T, name string) *state.Snapshot {
	t.Helper()
	found, err := w.states.Get(t.Context(), state.KeyFor(w.namespace, w.get(t, name).UID))
	if err != nil {
		t.Fatal(err)
	}
	return &state.Snapshot{
		Raw: found.Raw, Serial: found.Serial, Lineage: found.Lineage, Meta: found.Meta, Attachments: found.Attachments, Lock: found.Lock, Labels: found.Labels,
	}
}

// lose removes states, modules and keys.
func (w *backupWorld) lose(t *testing.T) {
	t.Helper()
	w.forget(t)
	for _, label := range []client.ListOption{client.HasLabels{store.LabelRole}, client.MatchingFields{"metadata.name": pulumikeys.SecretName}} {
		secrets := &corev1.SecretList{}
		if err := w.Client.List(t.Context(), secrets, client.InNamespace(w.namespace), label); err != nil {
			t.Fatal(err)
		}
		for i := range secrets.Items {
			if err := w.Client.Delete(t.Context(), &secrets.Items[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// expect types a command line, of which %DIR is a folder.
func (w *backupWorld) expect(t *testing.T, line string, code int, texts ...string) {
	t.Helper()
	got := w.ask(t, line)
	all := got.out + got.err
	for _, text := range texts {
		if !strings.Contains(all, text) {
			t.Errorf("%s prints\n%swant %q in it", line, all, text)
		}
	}
	if got.code != code {
		t.Errorf("%s ends with %d, want %d\n%s", line, got.code, code, all)
	}
	if strings.Contains(all, "very-secret") || strings.Contains(all, "secret inputs") {
		t.Errorf("%s prints a secret:\n%s", line, all)
	}
}

// TestStatesAreExportedAndImported goes through docs/backup.md.
func TestStatesAreExportedAndImported(t *testing.T) {
	long.Test(t)
	w := newBackupWorld(t)
	folder := filepath.Join(t.TempDir(), "backup")
	export := "state export kept stacked -o " + folder + " --manager-namespace " + w.namespace
	restore := "state import " + folder + " --manager-namespace " + w.namespace
	kept, stacked := w.stored(t, "kept"), w.stored(t, "stacked")

	w.expect(t, export, 0, "2 states and 1 module written to "+folder, "warning: this holds credentials and user data in the clear")
	checkModes(t, folder)
	w.expect(t, export, 0, "2 states and 1 module written")
	w.expect(t, "state export --all -o "+folder+" --manager-namespace "+w.namespace, 0, "3 states and 1 module written",
		"note: Machine "+w.namespace+"/workers-a: a run is in progress", "note: Machine "+w.namespace+"/workers-b has no state yet")
	w.expect(t, restore+" kept stacked", 0, "kept      2        2        Unchanged   this state is already stored")
	w.expect(t, restore, 1, "workers-a   2        2        Refused     a run is in progress (update since ")
	w.expect(t, restore+" other", 1, `has no state of a Machine "other"`)
	w.expect(t, restore+" -n default kept", 1, "Refused   it is of namespace "+w.namespace+": name that with -n, or -A for all")

	w.lose(t)
	w.expect(t, restore+" kept stacked --dry-run", 0, "kept      2        -        Importable")
	if _, err := w.states.Get(t.Context(), state.KeyFor(w.namespace, w.get(t, "kept").UID)); err == nil {
		t.Error("a dry run has imported a state")
	}
	w.expect(t, restore+" kept stacked", 0, "kept      2        -        Imported", "stacked   1        -        Imported")
	for name, want := range map[string]*state.Snapshot{"kept": kept, "stacked": stacked} {
		if diff := cmp.Diff(want, w.stored(t, name)); diff != "" {
			t.Errorf("the state of %s is not as it was (-was +is):\n%s", name, diff)
		}
	}
	fresh := store.New(w.Client, store.Options{})
	if _, err := fresh.Load(t.Context(), w.namespace, store.DigestOf(w.module)); err != nil {
		t.Errorf("the module is not restored: %v", err)
	}
	keys, err := pulumikeys.New(w.Client, pulumikeys.Options{Namespace: w.namespace})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keys.For(t.Context(), w.salt); err != nil {
		t.Errorf("the key is not restored: %v", err)
	}
}

func TestExportsOnAScheduleKeepTheNewest(t *testing.T) {
	long.Test(t)
	w := newBackupWorld(t)
	folder := t.TempDir()
	const unfinished, ahead = "2026-01-03T000000Z", "2999-01-02T000000Z"
	own := func(name string) string { return filepath.Join(w.namespace, name) }
	for _, name := range []string{
		own("2026-01-01T000000Z"), own("2026-01-02T000000Z"), own("2999-01-01T000000Z"), own(ahead), own("mine"),
		"2026-01-01T000000Z", "2026-01-02T000000Z", // of all namespaces
	} {
		if err := os.MkdirAll(filepath.Join(folder, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name, "index.json"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(folder, own(unfinished)), 0o700); err != nil {
		t.Fatal(err)
	}
	w.grantBackup(t)
	export := "state export -o " + folder + " --manager-namespace " + w.namespace + " --as backup"
	w.expect(t, export+" kept --keep 2", 1, "--keep takes a positive number, --all")
	w.expect(t, export+" --all --keep 2", 0, "3 states and 1 module written to "+filepath.Join(folder, own("2")))
	left, err := filepath.Glob(filepath.Join(folder, own("*")))
	if err != nil {
		t.Fatal(err)
	}
	for i := range left {
		left[i] = filepath.Base(left[i])
	}
	if len(left) != 4 || left[0] != unfinished || left[1] > "2999" || left[2] != ahead || left[3] != "mine" {
		t.Errorf("left are %v, want the one that was cut off, the new one, the newest of the others and mine", left)
	}
	if _, err := os.Stat(filepath.Join(folder, "2026-01-01T000000Z")); err != nil {
		t.Errorf("an export of all namespaces: %v", err)
	}
}

// grantBackup grants the user "backup" the Role of docs/backup.md.
func (w *backupWorld) grantBackup(t *testing.T) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "backup.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "```yaml\n")
	block, _, _ = strings.Cut(block, "```")
	role := &rbacv1.Role{}
	if err := yaml.UnmarshalStrict([]byte(block), role); err != nil {
		t.Fatal(err)
	}
	role.Namespace = w.namespace
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "backup"}},
	}
	for _, object := range []client.Object{role, binding} {
		if err := w.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

func TestACheckpointNeedsItsKey(t *testing.T) {
	long.Test(t)
	w := newBackupWorld(t)
	folder := filepath.Join(t.TempDir(), "backup")
	w.expect(t, "state export stacked -o "+folder+" --manager-namespace default", 1, "name the manager's namespace with --manager-namespace")
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder: %v, want none", err)
	}
	w.expect(t, "state export stacked -o "+folder+" --manager-namespace "+w.namespace, 0, "1 state and 1 module written")
	index := filepath.Join(folder, "index.json")
	listing, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(listing), `    {
      "path": "pulumi-keys.json"`)
	end := at + strings.Index(string(listing[at:]), "},\n") + len("},\n")
	if err := os.WriteFile(index, append(listing[:at:at], listing[end:]...), 0o600); err != nil {
		t.Fatal(err)
	}
	w.forget(t)
	w.expect(t, "state import "+folder+" --manager-namespace default", 1, "Refused   the key "+pulumikeys.IDOf(w.salt)+", which its checkpoint is encrypted with, is neither in the backup")
	w.expect(t, "state import "+folder+" --manager-namespace "+w.namespace, 0, "Imported")
}

func TestAStateIsImportedForAMachineThatWasMadeAnew(t *testing.T) {
	long.Test(t)
	w := newBackupWorld(t)
	folder := filepath.Join(t.TempDir(), "backup")
	before := w.get(t, "kept")
	witness := record.Witness{Run: "run-1", Since: before.CreationTimestamp.UTC()}.SignedFor(before, identity.Generate())
	was := w.stored(t, "kept")
	w.expect(t, "state export kept -o "+folder, 0, "1 state and 1 module written")

	// As Velero restores it: with its annotations, and with its state under the UID that it had.
	_, anew := w.again(t, "kept", witness)
	for _, request := range []*string{new(record.OrphanDestroy), nil} {
		session, err := w.acquire(t, before, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := session.Release(t.Context(), state.MetaPatch{strings.TrimPrefix(record.OrphanActionAnnotation, state.Prefix): request}); err != nil {
			t.Fatal(err)
		}
		if request != nil {
			w.expect(t, "state import "+folder, 1, "Refused", "it is about to be destroyed")
		}
	}
	w.expect(t, "state import "+folder+" --dry-run", 0, "Importable", "the state under the UID "+string(before.UID)+" is moved")
	w.expect(t, "state import "+folder, 0, "Imported   the Machine has the UID "+string(anew.UID)+" now; its instance keeps "+string(before.UID))
	if _, err := w.states.Get(t.Context(), state.KeyFor(w.namespace, before.UID)); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("the state under the UID that was: %v, want none", err)
	}
	want := *was
	want.Meta = maps.Clone(was.Meta)
	want.Meta["identity-uid"] = string(before.UID)
	want.Labels = maps.Clone(was.Labels)
	want.Labels[state.LabelMachineUID], want.Labels["tfstateSecretSuffix"] = string(anew.UID), state.KeyFor(w.namespace, anew.UID).Suffix()
	if diff := cmp.Diff(&want, w.stored(t, "kept")); diff != "" {
		t.Errorf("the state is not as it should be (-want +is):\n%s", diff)
	}

	// Exported again and made anew without its annotations, a third UID keeps the first one's instance.
	second := filepath.Join(t.TempDir(), "second")
	w.expect(t, "state export kept -o "+second, 0, "1 state and 1 module written")
	old, third := w.again(t, "kept", "")
	w.lose(t)
	w.expect(t, "state import "+second, 1, "Refused   the Machine kept has another UID, "+string(third.UID), "import with --map "+string(old.UID)+"=kept")
	w.expect(t, "state import "+second+" --map "+string(old.UID)+"=workers-b", 1, "the name is an input of its module")
	w.expect(t, "state import "+second+" --map x=kept", 1, "--map names the UID x, but no state in the backup has it")
	w.expect(t, "state import "+second+" --map kept", 1, "--map kept: write UID=MACHINE")
	w.expect(t, "state import "+second+" --map "+string(old.UID)+"=kept", 0, "its instance keeps "+string(before.UID))
	if got := w.stored(t, "kept").Meta["identity-uid"]; got != string(before.UID) {
		t.Errorf("the identity is %s, want %s", got, before.UID)
	}
}

func TestABackupIsEncrypted(t *testing.T) {
	long.Test(t)
	w := newBackupWorld(t)
	folder, files := filepath.Join(t.TempDir(), "backup"), t.TempDir()
	identities := map[string]*age.X25519Identity{}
	for _, name := range []string{"own", "other"} {
		identity, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		identities[name] = identity
		if err := os.WriteFile(filepath.Join(files, name), []byte("# a comment\n"+identity.String()+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	export := "state export kept stacked -o " + folder + " --manager-namespace " + w.namespace
	restore := "state import " + folder + " --manager-namespace " + w.namespace
	got := w.ask(t, export+" --recipient "+identities["own"].Recipient().String())
	if got.code != 0 || strings.Contains(got.err, "warning") {
		t.Fatalf("it ends with %d\n%s", got.code, got.err)
	}
	for _, name := range filesIn(t, folder) {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		if name != "index.json" && (!strings.HasSuffix(name, ".age") || !strings.HasPrefix(string(content), "age-encryption.org/v1\n")) {
			t.Errorf("%s is not encrypted", name)
		}
	}
	w.lose(t)
	w.expect(t, restore, 1, "it is encrypted; name the file of an identity with --identity")
	w.expect(t, restore+" --identity "+filepath.Join(files, "other"), 1, "it is encrypted for others than --identity")
	w.expect(t, restore+" --identity "+folder+"/index.json", 1, "they are no identities; the file must be as age-keygen writes it")
	w.expect(t, restore+" --identity "+filepath.Join(files, "own"), 0, "kept      2        -        Imported")
	w.expect(t, export, 1, "is there already and differs")
	w.expect(t, export+" --recipient age1wrong", 1, `"age1wrong" is no recipient`)
	w.expect(t, export+" --recipient "+identities["own"].String(), 1, "it is an identity, which is secret")
}

// filesIn lists the files below a folder.
func filesIn(t *testing.T, folder string) []string {
	t.Helper()
	var names []string
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// checkModes fails where another than the owner may enter or read.
func checkModes(t *testing.T, folder string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if want := map[bool]fs.FileMode{true: 0o700, false: 0o600}[entry.IsDir()]; info.Mode().Perm() != want {
			t.Errorf("%s has mode %s, want %s", name, info.Mode().Perm(), want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAnImportIsRefusedAndChangesNothing(t *testing.T) {
	long.Test(t)
	w := newBackupWorld(t)
	folder := filepath.Join(t.TempDir(), "backup")
	w.expect(t, "state export kept -o "+folder, 0)
	keep := func(t *testing.T, raw string, meta state.MetaPatch) {
		t.Helper()
		session, err := w.acquire(t, w.get(t, "kept"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := session.Put(t.Context(), []byte(raw)); err != nil {
			t.Fatal(err)
		}
		if err := session.Release(t.Context(), meta); err != nil {
			t.Fatal(err)
		}
	}
	of := func(lineage string, serial int) string {
		return strings.Replace(stateBody(serial), `"lineage":"l"`, fmt.Sprintf(`"lineage":%q`, lineage), 1)
	}
	intent := record.NewPatch().SetIntent(record.Intent{Operation: "update", Run: "run-9"}).MetaPatch
	for _, tc := range []struct {
		name   string
		change func(t *testing.T)
		want   string
	}{
		{"a lower serial", func(t *testing.T) { keep(t, of("kept", 3), nil) }, "its serial 2 is lower than the stored one, 3"},
		{"another content", func(t *testing.T) {
			w.forget(t)
			keep(t, strings.Replace(of("kept", 2), "i-1", "i-2", 1), nil)
		}, "has serial 2 as well and another content"},
		{"another lineage", func(t *testing.T) {
			w.forget(t)
			keep(t, of("other", 1), nil)
		}, `its lineage is "kept", and that of the stored state "other"`},
		{"a run that has not settled", func(t *testing.T) {
			w.forget(t)
			keep(t, of("kept", 1), intent)
		}, "run run-9 (update) has not settled"},
		{"a Machine with an instance of its own", func(t *testing.T) {
			w.forget(t)
			old, anew := w.again(t, "kept", "")
			anew.Annotations = map[string]string{record.WitnessAnnotation: record.Witness{}.SignedFor(anew, identity.Generate())}
			if err := w.Client.Update(t.Context(), anew); err != nil {
				t.Fatal(err)
			}
			w.expect(t, "state import "+folder+" --map "+string(old.UID)+"=kept", 1, "has an instance of its own")
		}, "has another UID"},
		{"no Machine", func(t *testing.T) {
			if err := w.Client.Delete(t.Context(), w.get(t, "kept")); err != nil {
				t.Fatal(err)
			}
		}, "no Machine in namespace " + w.namespace + " has its UID, and none is called kept: restore the Machine first"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.change(t)
			before := w.secrets(t)
			w.expect(t, "state import "+folder, 1, "Refused", tc.want)
			if diff := cmp.Diff(before, w.secrets(t)); diff != "" {
				t.Errorf("Secrets have changed (-before +after):\n%s", diff)
			}
		})
	}
}

// secrets returns the versions of all Secrets of the namespace.
func (w *backupWorld) secrets(t *testing.T) map[string]string {
	t.Helper()
	secrets := &corev1.SecretList{}
	if err := w.Client.List(t.Context(), secrets, client.InNamespace(w.namespace)); err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for i := range secrets.Items {
		versions[secrets.Items[i].Name] = secrets.Items[i].ResourceVersion
	}
	return versions
}
