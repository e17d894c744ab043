package verify

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// toolbox is a machine on which hack/tools.sh runs: bin/ and PATH are folders of its own, and its Go builds nothing but a line of text.
type toolbox struct {
	t *testing.T
	// dir has bin, and a folder for each part of PATH.
	dir         string
	environment []string
}

// compiler is the Go of a toolbox.
const compiler = `#!/bin/sh
if [ "$1" = -C ]; then shift 2; fi
case $1 in
env) printf 'linux\namd64\ngo1.26.0\n' ;;
mod) ;;
list) echo "$STAGES" ;;
build)
  if [ -n "$BROKEN" ]; then echo 'syntax error in main.go' >&2; exit 1; fi
  sleep "${SECONDS_EACH:-0}"
  while [ "$1" != -o ]; do shift; done
  folder=$2
  shift 2
  for package in "$@"; do
    name=${package%/v3}
    if [ "$name" = . ]; then name=$PWD; fi
    echo built >"$folder${name##*/}"
    chmod +x "$folder${name##*/}"
  done
  ;;
esac
`

// standard are the programs that hack/tools.sh may use besides Go.
var standard = []string{
	"bash", "cat", "chmod", "cp", "cut", "dirname", "env", "find", "flock", "grep", "gzip", "head", "install", "ln", "mkdir", "mv", "nproc", "realpath", "rm", "sed", "sha256sum", "sleep",
	"sort", "tail", "tar", "timeout", "xargs", "basename", "sh",
}

func newToolbox(t *testing.T) *toolbox {
	t.Helper()
	b := &toolbox{t: t, dir: t.TempDir()}
	for _, name := range standard {
		program, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(b.path("system"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(program, b.path("system", name)); err != nil {
			t.Fatal(err)
		}
	}
	b.write("system/go", compiler)
	for _, stage := range []string{"node/fast/node-initialize", "node/heartbeat-with-lease/node-heartbeat-with-lease", "pod/fast/pod-ready", "pod/fast/pod-delete"} {
		b.write("kwok/kustomize/stage/"+stage+".yaml", "kind: Stage\n")
	}
	for _, file := range []string{"internal/backend/init/init.go", "internal/encryption/default_registry.go"} {
		b.write("kwok/"+file, "package none\n") // where a module's source is, OpenTofu's too
	}
	b.environment = []string{
		"BIN_DIR=" + b.path("bin"), "PATH=" + b.path("bin") + ":" + b.path("installed") + ":" + b.path("system"), "STAGES=" + b.path("kwok"),
		"TOOLS_RELEASES=/dev/null",
	}
	return b
}

func (b *toolbox) path(parts ...string) string {
	return filepath.Join(append([]string{b.dir}, parts...)...)
}

func (b *toolbox) write(name, content string) {
	b.t.Helper()
	file := b.path(name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o700); err != nil {
		b.t.Fatal(err)
	}
}

// program writes one that prints text whatever it is called with, and returns its file.
func (b *toolbox) program(name, text string) string {
	b.t.Helper()
	b.write(name, "#!/bin/sh\necho '"+text+"'\n")
	return b.path(name)
}

func (b *toolbox) command(environment []string, arguments ...string) *exec.Cmd {
	script, err := filepath.Abs(filepath.Join(root, "hack", "tools.sh"))
	if err != nil {
		b.t.Fatal(err)
	}
	command := exec.CommandContext(b.t.Context(), script, arguments...)
	command.Env = slices.Concat(b.environment, environment)
	command.WaitDelay = time.Second
	return command
}

// run runs the script, and returns what it prints.
func (b *toolbox) run(environment []string, arguments ...string) string {
	b.t.Helper()
	output, err := b.command(environment, arguments...).CombinedOutput()
	if err != nil {
		b.t.Fatalf("%v: %v\n%s", arguments, err, output)
	}
	return string(output)
}

// fails runs the script, which is to fail, and returns what it prints.
func (b *toolbox) fails(environment []string, arguments ...string) string {
	b.t.Helper()
	output, err := b.command(environment, arguments...).CombinedOutput()
	if err == nil {
		b.t.Fatalf("%v: want an error, got\n%s", arguments, output)
	}
	return string(output)
}

// content returns what a file of bin has, by any link.
func (b *toolbox) content(name string) string {
	b.t.Helper()
	content, err := os.ReadFile(b.path("bin", name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(content)
}

func (b *toolbox) built(name string) bool { return b.content(name) == "built\n" }

func TestAnInstalledProgramIsTakenWhereItsVersionFits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		tool, prints string
		// want is what is said of it: the version where it is taken, else why it is not.
		want  string
		taken bool
	}{
		"etcd":                              {"etcd", "etcd Version: 3.6.11", "3.6.11", true},
		"another minor of etcd":             {"etcd", "etcd Version: 3.5.11", "is 3.5.11; a release 3.6.* 3.7.* is needed", false},
		"an API server":                     {"kube-apiserver", "Kubernetes v1.37.0", "1.37.0", true},
		"an older API server":               {"kube-apiserver", "Kubernetes v1.36.0", "is 1.36.0; a release 1.37.* is needed", false},
		"a controller manager":              {"kube-controller-manager", "Kubernetes v1.36.9", "1.36.9", true},
		"a scheduler":                       {"kube-scheduler", "Kubernetes v1.36.9", "1.36.9", true},
		"a kubectl of a distribution":       {"kubectl", "Client Version: v1.36.1+k3s1", "1.36.1+k3s1", true},
		"a newer kubectl":                   {"kubectl", "Client Version: v1.38.2", "1.38.2", true},
		"a kubectl that is too old":         {"kubectl", "Client Version: v1.35.9", "is 1.35.9; a release 1.36.* 1.37.* 1.38.* is needed", false},
		"a newer scheduler":                 {"kube-scheduler", "Kubernetes v1.38.0", "is 1.38.0; a release 1.36.* 1.37.* is needed", false},
		"a pre-release":                     {"kube-apiserver", "Kubernetes v1.37.0-rc.1", "is 1.37.0-rc.1; a release 1.37.* is needed", false},
		"a minor that begins alike":         {"kube-apiserver", "Kubernetes v1.370.1", "is 1.370.1; a release 1.37.* is needed", false},
		"kwok":                              {"kwok", "kwok version v0.8.1 go1.26.8 (linux/amd64)", "0.8.1", true},
		"tofu":                              {"tofu", "OpenTofu v1.10.2", "1.10.2", true},
		"the oldest tofu":                   {"tofu", "OpenTofu v1.9.0", "1.9.0", true},
		"a tofu that is too old":            {"tofu", "OpenTofu v1.8.11", "is 1.8.11; a release >= 1.9.0 is needed", false},
		"a tofu of the next major":          {"tofu", "OpenTofu v2.0.0", "is 2.0.0; a release >= 1.9.0 is needed", false},
		"pulumi":                            {"pulumi", "v3.300.1", "3.300.1", true},
		"a pulumi that is too old":          {"pulumi", "v3.99.0", "is 3.99.0; a release >= 3.206.0 is needed", false},
		"a program that is something else":  {"kwok", "usage: kwok COMMAND", "says no version; a release 0.8.* is needed", false},
		"a version in the middle of a line": {"kube-scheduler", "not Kubernetes v1.36.1", "says no version", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newToolbox(t)
			file := b.program("installed/"+tc.tool, tc.prints)
			output := b.run(nil, tc.tool)
			want := fmt.Sprintf("tools: %s: %s %s", tc.tool, file, tc.want)
			if tc.taken {
				want = fmt.Sprintf("tools: %s: using %s (%s)\n", tc.tool, file, tc.want)
			}
			if !strings.Contains(output, want) {
				t.Errorf("want %q in\n%s", want, output)
			}
			if b.built(tc.tool) == tc.taken {
				t.Errorf("taken: %t, but bin has %q", tc.taken, b.content(tc.tool))
			}
			if printed, err := exec.Command(b.path("bin", tc.tool)).Output(); tc.taken && (err != nil || string(printed) != tc.prints+"\n") {
				t.Errorf("bin has a program that prints %q, %v", printed, err)
			}
		})
	}
}

func TestWhatIsInstalledIsNeverWrittenTo(t *testing.T) {
	t.Parallel()
	b := newToolbox(t)
	b.write("installed/tofu", "#!/bin/sh\necho 'OpenTofu v1.10.2'\n")
	b.write("installed/pulumi", "#!/bin/sh\necho 'v3.300.1'\n")
	if b.run(nil, "tofu", "pulumi"); b.built("tofu") || b.built("pulumi") {
		t.Fatal("they were built")
	}
	if b.run([]string{"TOOLS=build"}, "tofu", "pulumi"); !b.built("tofu") || !b.built("pulumi") {
		t.Error("TOOLS=build took one that is installed")
	}
	for name, want := range map[string]string{"tofu": "#!/bin/sh\necho 'OpenTofu v1.10.2'\n", "pulumi": "#!/bin/sh\necho 'v3.300.1'\n"} {
		got, err := os.ReadFile(b.path("installed", name))
		if err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	if output := b.run(nil, "tofu", "pulumi"); !strings.Contains(output, "2 were there, 0 taken, 0 built") {
		t.Errorf("what is built already is not kept:\n%s", output)
	}
	if output := b.fails([]string{"TOOLS=maybe"}, "tofu"); !strings.Contains(output, "invalid TOOLS 'maybe': must be auto, download or build") {
		t.Error(output)
	}
}

func TestAProviderIsAlwaysBuilt(t *testing.T) {
	t.Parallel()
	b := newToolbox(t)
	b.program("installed/provider-kubectl", "v1.19.0")
	b.program("installed/terraform-provider-kubectl_v1.19.0", "v1.19.0")
	b.program("installed/vcsim", "v0.52.0")
	b.run([]string{"KUBEBUILDER_ASSETS=" + b.path("installed")}, "provider-kubectl", "vcsim")
	if !b.built("mirror/registry.opentofu.org/gavinbunney/kubectl/1.19.0/linux_amd64/terraform-provider-kubectl_v1.19.0") || !b.built("vcsim") {
		t.Error("they were not built")
	}
}

func TestPulumiFindsTheHostsOfLanguagesBesideIt(t *testing.T) {
	t.Parallel()
	b := newToolbox(t)
	b.program("it's here/pulumi", "v3.255.0")
	b.environment = append(b.environment, "PATH="+b.path("it's here")+":"+b.path("system"))
	b.run(nil, "pulumi")
	if real, err := filepath.EvalSymlinks(b.path("bin", "pulumi")); err != nil || filepath.Dir(real) != b.path("bin") {
		t.Errorf("it is found in %s, %v", real, err)
	}
	if printed, err := exec.Command(b.path("bin", "pulumi")).Output(); err != nil || string(printed) != "v3.255.0\n" {
		t.Errorf("it prints %q, %v", printed, err)
	}
}

func TestKWOKHasItsStagesHoweverItCame(t *testing.T) {
	t.Parallel()
	b := newToolbox(t)
	b.program("installed/kwok", "kwok version v0.8.0")
	b.run(nil, "kwok")
	stages, err := filepath.Glob(b.path("bin", "kwok-stages", "*.yaml"))
	if err != nil || len(stages) != 4 {
		t.Errorf("stages: %v, %v", stages, err)
	}
}

func TestAFolderOrAFileThatIsNamedComesFirst(t *testing.T) {
	t.Parallel()
	b := newToolbox(t)
	b.program("installed/etcd", "etcd Version: 3.6.1")
	b.program("assets/etcd", "etcd Version: 3.6.2")
	b.program("assets/kubectl", "Client Version: v1.32.0")
	b.program("installed/kubectl", "Client Version: v1.36.1")
	other := b.program("elsewhere/tofu-1.11", "OpenTofu v1.11.0")
	output := b.run([]string{"KUBEBUILDER_ASSETS=" + b.path("assets"), "TOFU=" + other}, "etcd", "kubectl", "tofu")
	for _, want := range []string{
		"etcd: using " + b.path("assets/etcd") + " (3.6.2)\n", "tofu: using " + other + " (1.11.0)\n",
		"kubectl: " + b.path("assets/kubectl") + " is 1.32.0; a release 1.36.* 1.37.* 1.38.* is needed\n", "kubectl: using " + b.path("installed/kubectl") + " (1.36.1)\n",
	} {
		if !strings.Contains(output, "tools: "+want) {
			t.Errorf("want %q in\n%s", want, output)
		}
	}
	b.run([]string{"TOOLS=build"}, "etcd")
	if !b.built("etcd") {
		t.Fatal("it was not built")
	}
	if b.run([]string{"KUBEBUILDER_ASSETS=" + b.path("bin")}, "etcd"); !b.built("etcd") {
		t.Error("bin as KUBEBUILDER_ASSETS made a link of a built program")
	}
	if b.run([]string{"KUBEBUILDER_ASSETS=" + b.path("assets")}, "etcd"); b.built("etcd") {
		t.Error("KUBEBUILDER_ASSETS does not come before what is built")
	}
}

func TestAFileThatIsNamedAndDoesNotFitIsAnError(t *testing.T) {
	t.Parallel()
	b := newToolbox(t)
	old := b.program("elsewhere/tofu", "OpenTofu v1.6.0")
	for file, want := range map[string]string{
		old:                    "TOFU is not of use: tofu: " + old + " is 1.6.0; a release >= 1.9.0 is needed; name another file, or unset it",
		b.path("nothing/tofu"): "TOFU is not of use: tofu: " + b.path("nothing/tofu") + " says no version",
	} {
		if output := b.fails([]string{"TOFU=" + file}, "etcd", "tofu"); !strings.Contains(output, want) {
			t.Errorf("want %q in\n%s", want, output)
		}
	}
	if _, err := os.Stat(b.path("bin", "etcd")); err == nil {
		t.Error("another tool was built before the error")
	}
}

func TestTheScriptSaysHowLongIsLeft(t *testing.T) {
	t.Parallel()
	b := newToolbox(t)
	output := b.run([]string{"SECONDS_EACH=2", "TOOLS_PROGRESS_SECONDS=0.3"}, "kube-apiserver", "kubectl", "vcsim")
	want := regexp.MustCompile(`(?s)^\[1/2\] building kube-apiserver, kubectl; about \d+ min left
(\[1/2\] \d:\d\d so far; [^\n]* left\n)+` +
		`\[1/2\] cluster: built in [1-9]\d* s; \d:\d\d since the start, (about \d+ min|less than a minute) left
\[2/2\] building vcsim; [^\n]*\n.*\[2/2\] vcsim: built in \d+ s; \d:\d\d since the start, all are built
tools: 3 are ready in [^\n]*: 0 were there, 0 taken, 3 built\n$`)
	if !want.MatchString(output) {
		t.Errorf("want %s, got\n%s", want, output)
	}
	begun := time.Now()
	if again := b.run([]string{"SECONDS_EACH=60"}, "kube-apiserver", "vcsim"); !strings.HasSuffix(again, ": 2 were there, 0 taken, 0 built\n") || strings.Contains(again, "[") {
		t.Errorf("what is up to date is built again, after %s:\n%s", time.Since(begun), again)
	}
}

func TestTheEstimateFollowsWhatToolsReallyTake(t *testing.T) {
	t.Parallel()
	minutes := func(output, line string) string {
		found := regexp.MustCompile(line + ".*?(about (\\d+) min|less than a minute) left").FindStringSubmatch(output)
		if found == nil {
			t.Fatalf("no line %s in\n%s", line, output)
		}
		return found[1]
	}
	b := newToolbox(t)
	b.write("system/nproc", "#!/bin/sh\necho 2\n")
	output := b.run(nil, "etcd", "vcsim", "pulumi") // 330 + 30 + 210 seconds by the table, and none here
	if got := minutes(output, `\[1/3\] building etcd`); got != "about 10 min" {
		t.Errorf("at the start: %s", got)
	}
	if got := minutes(output, `\[2/3\] vcsim: built`); got != "less than a minute" {
		t.Errorf("once caches turn out to be warm: %s", got)
	}
}

func TestABuildThatFailsNamesItsLog(t *testing.T) {
	t.Parallel()
	b := newToolbox(t)
	b.run(nil, "kwok")
	b.write("bin/.stamps/kwok", "another version")
	output := b.fails([]string{"BROKEN=yes"}, "kwok")
	for _, want := range []string{"syntax error in main.go", "building kwok failed (module hack/tools/cluster, full output in " + b.path("bin/.stamps/cluster.log") + ")"} {
		if !strings.Contains(output, want) {
			t.Errorf("want %q in\n%s", want, output)
		}
	}
	if b.run(nil, "kwok"); !b.built("kwok") {
		t.Error("it is not built after the cause is fixed")
	}
}

func TestTwoCallsInOneFolderTakeTurns(t *testing.T) {
	t.Parallel()
	b := newToolbox(t)
	first := b.command([]string{"SECONDS_EACH=3"}, "vcsim")
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(b.path("bin", ".stamps", "vcsim.log")); err == nil {
			break
		}
		if time.Since(begun) > time.Minute {
			t.Fatal("the first call builds nothing")
		}
	}
	output := b.run(nil, "vcsim")
	if err := first.Wait(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(output, "waiting for another tools.sh in "+b.path("bin")) || !strings.Contains(output, "1 were there, 0 taken, 0 built") {
		t.Errorf("got\n%s", output)
	}
}

func TestSetsAndToolsAreFoundByName(t *testing.T) {
	t.Parallel()
	b := newToolbox(t)
	for _, arguments := range [][]string{{"--for", "nothing"}, {"--for"}, {"--for", "demo", "e2e"}} {
		if output := b.fails(nil, arguments...); !strings.Contains(output, "--sets lists them") {
			t.Errorf("%v: %s", arguments, output)
		}
	}
	if output := b.fails(nil, "etcd", "cmake"); !strings.Contains(output, "no tool is called 'cmake'; --list names them") {
		t.Error(output)
	}
	if _, err := os.Stat(b.path("bin")); err == nil {
		t.Error("a wrong command line has made bin")
	}
	output := b.run(nil, "--for", "demo")
	for _, want := range []string{
		"[1/2] building etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, kwok, provider-kubectl; ", "[2/2] building tofu; ",
	} {
		if !strings.Contains(output, want) {
			t.Errorf("want %q in\n%s", want, output)
		}
	}
}

func TestTerraformIsTheDemosEngineWhereThereIsNoOpenTofu(t *testing.T) {
	t.Parallel()
	b := newToolbox(t)
	terraform := b.program("installed/terraform", "Terraform v1.11.4")
	if output := b.run(nil, "--for", "demo"); !strings.Contains(output, "tools: tofu: using "+terraform+" (1.11.4)\n") {
		t.Errorf("got\n%s", output)
	}
	if b.run(nil, "tofu"); !b.built("tofu") {
		t.Error("tests run with Terraform in place of OpenTofu")
	}
	b = newToolbox(t)
	b.program("installed/terraform", "Terraform v1.11.4")
	tofu := b.program("installed/tofu", "OpenTofu v1.10.2")
	if output := b.run(nil, "--for", "demo"); !strings.Contains(output, "using "+tofu) {
		t.Errorf("OpenTofu does not come first:\n%s", output)
	}
}

// TestReleasesFitWhatIsPinned compares the releases that hack/tools.sh takes with the versions that are built, and with those that the engines accept.
func TestReleasesFitWhatIsPinned(t *testing.T) {
	read := func(name string) string {
		content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	script, page := read("hack/tools.sh"), read("docs/development-cluster.md")
	_, table, _ := strings.Cut(script, "<<'RELEASES'\n")
	table, _, _ = strings.Cut(table, "RELEASES\n")
	rules := map[string]string{}
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(row), "|")
		rules[cells[0]] = cells[len(cells)-1]
	}
	inScript := func(of string) string { return of + `=v(\d+\.\d+)\.` }
	kubernetes := inScript(`component-base/version\.gitVersion`)
	for tool, tc := range map[string]struct{ file, pattern, rule string }{
		"etcd":                    {"hack/tools/cluster/go.mod", `go\.etcd\.io/etcd/server/v3 v(\d+\.\d+)\.`, "VERSION.*"},
		"kube-apiserver":          {"hack/tools.sh", kubernetes, "VERSION.*"},
		"kube-controller-manager": {"hack/tools.sh", kubernetes, "VERSION.*"},
		"kube-scheduler":          {"hack/tools.sh", kubernetes, "VERSION.*"},
		"kubectl":                 {"hack/tools.sh", kubernetes, "VERSION.*"},
		"kwok":                    {"hack/tools/cluster/go.mod", `sigs\.k8s\.io/kwok v(\d+\.\d+)\.`, "VERSION.*"},
		"tofu":                    {"internal/engine/tofu/find.go", `DefaultConstraint = "(.*)"`, "VERSION"},
		"pulumi":                  {"internal/engine/pulumi/find.go", `oldest = semver\.MustParse\("(.*)"\)`, ">= VERSION"},
		"helm":                    {"docs/install.md", `Helm (3\.\d+\.\d+) or newer`, ">= VERSION"},
	} {
		found := regexp.MustCompile(tc.pattern).FindStringSubmatch(read(tc.file))
		if found == nil {
			t.Errorf("%s: no %s in %s", tool, tc.pattern, tc.file)
			continue
		}
		want := strings.Replace(tc.rule, "VERSION", found[1], 1)
		if !strings.Contains(" "+rules[tool]+" ", " "+want+" ") {
			t.Errorf("hack/tools.sh takes releases %q of %s, which leave out %q of %s", rules[tool], tool, want, tc.file)
		}
		documented := strings.ReplaceAll(strings.ReplaceAll(strings.TrimPrefix(rules[tool], ">= "), " ", ", "), "*", "x")
		if !strings.Contains(page, "| "+documented) {
			t.Errorf("docs/development-cluster.md does not say that %s %s fits", tool, documented)
		}
		delete(rules, tool)
	}
	for tool, rule := range rules {
		t.Errorf("releases %s of %s are compared with nothing; add a row here", rule, tool)
	}
}
