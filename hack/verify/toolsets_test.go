package verify

import (
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// madeBy says which tools there are behind what code looks for in bin/, where that is not the name of a tool.
var madeBy = map[string][]string{
	"mirror":         {"provider-kubectl"},
	"schemas":        {"provider-*", "schema-*"},
	"pulumi":         {"pulumi", "pulumi-language-yaml"},
	"pulumi-plugins": {"pulumi-terraform-provider"},
	"kwok-stages":    {"kwok"},
	"kueue-config":   {"kueue"},
}

// neededBy says which tools a package needs whose names it does not have beside "bin".
var neededBy = map[string][]string{
	"hack/devcluster/cluster": {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"},
	"test/controlplane":       {"etcd", "kube-apiserver"},
	"test/vcenter":            {"vcsim", "provider-vsphere"},
	"test/openstack":          {"provider-openstack"},
	"test/libvirt":            {"provider-libvirt"},
}

// differs says in what a set may differ from what the code of its target names.
type differs struct {
	reason string
	// without are tools that the code names and that are not needed, with are those that are needed though it does not name them.
	without, with []string
}

var pulumi = []string{"pulumi", "pulumi-language-yaml", "pulumi-terraform-provider"}

var exempt = map[string]differs{
	"demo":          {reason: "hack/lab starts managers without Pulumi where it is not built", without: pulumi},
	"demo-gardener": {reason: "hack/lab starts managers without Pulumi where it is not built", without: pulumi},
	"e2e-gardener":  {reason: "hack/lab starts managers without Pulumi where it is not built", without: pulumi},
	"e2e-jobs": {
		reason:  "hack/lab starts managers without Pulumi where it is not built; of test/chaos only the copy of a module is used",
		without: append([]string{"provider-openstack"}, pulumi...),
	},
	"test": {reason: "a test of stacks puts it beside Pulumi in a loop", with: []string{"pulumi-language-go"}},
	"test-modules": {
		reason:  "of the tests of cmd/kubectl-machine only TestManifests and TestManifestsOfStacks run, which plan",
		without: []string{"etcd", "kube-apiserver", "kubectl"},
	},
	"e2e":         {reason: "Domains are for e2e-libvirt alone", without: []string{"provider-libvirt"}},
	"e2e-pulumi":  {reason: "vSphere, OpenStack and Domains are tested with modules alone", without: []string{"vcsim", "provider-vsphere", "provider-openstack", "provider-libvirt"}},
	"e2e-upgrade": {reason: "hack/lab starts managers without Pulumi where it is not built", without: pulumi},
	"e2e-openstack": {
		reason:  "hack/lab starts managers without Pulumi where it is not built; the cloud is not that of test/openstack",
		without: pulumi, with: []string{"provider-openstack"},
	},
	"e2e-libvirt": {
		reason: "of test/e2e and test/adoption only what is called Domain runs, and hack/lab starts managers without Pulumi where it is not built",
		without: append([]string{
			"vcsim", "provider-vsphere", "provider-openstack", "provider-nutanix", "schema-aws", "schema-azurerm", "schema-google", "promql-selectors",
		}, pulumi...),
	},
}

func TestEveryMakeTargetBuildsTheToolsThatItsCodeUses(t *testing.T) {
	foldersOf(t)
	sources := goSources(t)
	sets, tools := toolSets(t)
	for target, recipe := range recipes(t) {
		if recipe.set == "" {
			continue
		}
		set, known := sets[target]
		if !known || recipe.set != target {
			t.Errorf("make %s builds the set %s, which has another name or is not in hack/tools.sh", target, recipe.set)
			continue
		}
		used := usedBy(recipe, sources, tools)
		for _, name := range exempt[target].without {
			if !used[name] {
				t.Errorf("make %s: the code does not name %s any more; remove it from the exceptions", target, name)
			}
			delete(used, name)
		}
		for _, name := range exempt[target].with {
			used[name] = true
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(used)), slices.Sorted(slices.Values(set))); diff != "" {
			t.Errorf("make %s: change its row in 'sets' of hack/tools.sh, or the exceptions here (-what the code uses +the set):\n%s", target, diff)
		}
		delete(sets, target)
	}
	delete(sets, "tools")
	for target := range sets {
		t.Errorf("hack/tools.sh has a set %s, but the Makefile no such target with 'tools-%[1]s' before it", target)
	}
}

// toolSets returns the sets of hack/tools.sh, and all tools.
func toolSets(t *testing.T) (sets map[string][]string, tools []string) {
	t.Helper()
	printed := func(flag string) []string {
		command := exec.Command("hack/tools.sh", flag)
		command.Dir = root
		out, err := command.Output()
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		return strings.Split(strings.TrimSpace(string(out)), "\n")
	}
	tools = printed("--list")
	sets = map[string][]string{}
	for _, row := range printed("--sets") {
		name, patterns, _ := strings.Cut(row, "|")
		sets[name] = matching(strings.Fields(patterns), tools)
	}
	if len(sets) < 5 || len(tools) < 15 {
		t.Fatalf("hack/tools.sh lists %d sets and %d tools; the test would hold nothing", len(sets), len(tools))
	}
	return sets, tools
}

// matching returns the tools that one of the patterns is for; !(x|y) is for all but x and y.
func matching(patterns, tools []string) []string {
	var out []string
	for _, tool := range tools {
		if slices.ContainsFunc(patterns, func(pattern string) bool {
			but, negated := strings.CutPrefix(pattern, "!(")
			matched := slices.ContainsFunc(strings.Split(strings.TrimSuffix(but, ")"), "|"), func(one string) bool {
				found, err := path.Match(one, tool)
				return err == nil && found
			})
			return matched != negated
		}) {
			out = append(out, tool)
		}
	}
	return out
}

// recipe is what a target of the Makefile does.
type recipe struct {
	// set is the set of tools that is built before.
	set string
	// named are the names after bin/ in it, and in the scripts of hack that it calls.
	named []string
	runs  []packages
}

// packages are those that a line of a recipe builds or tests.
type packages struct {
	// patterns are from the root, "..." stands for all.
	patterns []string
	tests    bool
	tags     []string
}

var (
	targetLine  = regexp.MustCompile(`^([a-z][a-z0-9-]*):([^=#]*)`)
	inBin       = regexp.MustCompile(`(?:^|[\s"=])bin/([a-z][a-z0-9-]*)`)
	inHack      = regexp.MustCompile(`hack/[a-z-]+\.sh`)
	packageName = regexp.MustCompile(`\s\./([a-z0-9/.-]+)`)
	tagList     = regexp.MustCompile(`-tags (\S+)`)
	upwards     = regexp.MustCompile(`^(\.\./)+`)
)

func recipes(t *testing.T) map[string]recipe {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]recipe{}
	var target string
	for line := range strings.Lines(string(content)) {
		if found := targetLine.FindStringSubmatch(line); found != nil {
			target = found[1]
			before := strings.Fields(found[2])
			at := slices.IndexFunc(before, func(name string) bool { return strings.HasPrefix(name, "tools-") })
			if at >= 0 {
				out[target] = recipe{set: strings.TrimPrefix(before[at], "tools-")}
			}
		}
		if !strings.HasPrefix(line, "\t") || target == "" {
			continue
		}
		r := out[target]
		r.add(t, strings.ReplaceAll(line, "$(PACKAGES)", "./..."))
		out[target] = r
	}
	return out
}

// add takes up a line.
func (r *recipe) add(t *testing.T, line string) {
	t.Helper()
	for _, script := range inHack.FindAllString(line, -1) {
		content, err := os.ReadFile(filepath.Join(root, script))
		if err != nil {
			t.Fatal(err)
		}
		r.named = append(r.named, namesIn(string(content))...)
	}
	r.named = append(r.named, namesIn(strings.ReplaceAll(line, "@", " "))...)
	run := packages{tests: strings.Contains(line, "go test ")}
	for _, found := range packageName.FindAllStringSubmatch(line, -1) {
		run.patterns = append(run.patterns, found[1])
	}
	if found := tagList.FindStringSubmatch(line); found != nil {
		run.tags = strings.Split(found[1], ",")
	}
	for _, name := range r.named {
		if _, err := os.Stat(filepath.Join(root, "hack", name, "main.go")); err == nil {
			run.patterns = append(run.patterns, "hack/"+name)
		}
	}
	if run.tests || strings.Contains(line, "go run ") || len(run.patterns) > 0 {
		r.runs = append(r.runs, run)
	}
}

func namesIn(text string) []string {
	var out []string
	for _, found := range inBin.FindAllStringSubmatch(text, -1) {
		out = append(out, found[1])
	}
	return out
}

// source is one Go file.
type source struct {
	test   bool
	builds constraint.Expr
	// imports are those inside of the repository, from its root.
	imports []string
	file    *ast.File
}

// goSources returns the Go files by their folders from the root.
func goSources(t *testing.T) map[string][]source {
	t.Helper()
	out := map[string][]source{}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || name == "bin" || name == "hack/tools"):
			return fs.SkipDir
		case !entry.Type().IsRegular() || path.Ext(name) != ".go":
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		s := source{test: strings.HasSuffix(name, "_test.go"), file: file, builds: constraintOf(file)}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if inside, ok := strings.CutPrefix(imported, modulePath+"/"); ok && err == nil {
				s.imports = append(s.imports, inside)
			}
		}
		out[path.Dir(name)] = append(out[path.Dir(name)], s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// constraintOf returns the build constraint of a file, nil for none.
func constraintOf(file *ast.File) constraint.Expr {
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if comment.Pos() > file.Package {
				return nil
			}
			if expression, err := constraint.Parse(comment.Text); err == nil {
				return expression
			}
		}
	}
	return nil
}

// usedBy returns the tools that a recipe and the code behind it name.
func usedBy(r recipe, sources map[string][]source, tools []string) map[string]bool {
	used := map[string]bool{}
	use := func(names []string) {
		for _, name := range names {
			patterns, known := madeBy[name]
			if !known {
				patterns = []string{name}
			}
			for _, tool := range matching(patterns, tools) {
				used[tool] = true
			}
		}
	}
	use(r.named)
	for _, run := range r.runs {
		for folder, files := range run.closure(sources) {
			use(neededBy[folder])
			if folder != "hack/verify" { // it tests hack/tools.sh, with programs of its own
				use(namedIn(files))
			}
		}
	}
	return used
}

// closure returns the files that are built, by folder: those of the packages, and of what they import inside of the repository.
func (p packages) closure(sources map[string][]source) map[string][]source {
	out := map[string][]source{}
	built := func(tag string) bool { return tag == "linux" || slices.Contains(p.tags, tag) }
	var visit func(folder string, tests bool)
	visit = func(folder string, tests bool) {
		var imports []string
		out[folder] = nil
		for _, s := range sources[folder] {
			if s.test && !tests || s.builds != nil && !s.builds.Eval(built) {
				continue
			}
			out[folder] = append(out[folder], s)
			imports = append(imports, s.imports...)
		}
		for _, imported := range imports {
			if _, seen := out[imported]; !seen {
				visit(imported, false)
			}
		}
	}
	var roots []string
	for folder := range sources {
		if slices.ContainsFunc(p.patterns, func(pattern string) bool { return matches(pattern, folder) }) {
			roots = append(roots, folder)
		}
	}
	for _, folder := range roots { // a root that another root imports is visited with its tests in the end
		visit(folder, p.tests)
	}
	for _, folder := range roots {
		visit(folder, p.tests)
	}
	return out
}

// namedIn returns the names that the files of a package have after "bin", be it in one path or in the arguments of a call; and where a
// function has an argument there, in the calls of that function.
func namedIn(files []source) []string {
	var names []string
	calls := map[string][]string{}
	var lookups []string
	for _, s := range files {
		for _, declaration := range s.file.Decls {
			ast.Inspect(declaration, func(node ast.Node) bool {
				switch node := node.(type) {
				case *ast.BasicLit:
					names = append(names, namesIn(upwards.ReplaceAllString(literal(node), ""))...)
				case *ast.CallExpr:
					after, more := afterBin(node.Args)
					names = append(names, after)
					if function, ok := declaration.(*ast.FuncDecl); ok && more {
						lookups = append(lookups, function.Name.Name)
					}
					if called, ok := node.Fun.(*ast.Ident); ok {
						for _, argument := range node.Args {
							calls[called.Name] = append(calls[called.Name], literal(argument))
						}
					}
				}
				return true
			})
		}
	}
	for _, function := range lookups {
		names = append(names, calls[function]...)
	}
	return names
}

// afterBin returns the literal that follows "bin" in the arguments of a call, and whether something else does.
func afterBin(arguments []ast.Expr) (name string, more bool) {
	for i, argument := range arguments[:max(0, len(arguments)-1)] {
		if literal(argument) == "bin" {
			name = literal(arguments[i+1])
			return strings.TrimSuffix(name, "-*"), name == ""
		}
	}
	return "", false
}

// literal returns the value of a string, "" of any other expression.
func literal(expression ast.Expr) string {
	basic, ok := expression.(*ast.BasicLit)
	if !ok || basic.Kind != token.STRING {
		return ""
	}
	value, err := strconv.Unquote(basic.Value)
	if err != nil {
		return ""
	}
	return value
}

func TestNamedIn(t *testing.T) {
	const code = `package p
import "path/filepath"
func lookup(t any, name string) string { return filepath.Join("..", "bin", name) }
func f(l lab) {
	_ = l.Path("bin", "vcsim")
	_ = filepath.Join(root, "bin", "pulumi", "more")
	_ = "../../bin/tofu"
	_ = lookup(nil, "kwok")
	_ = other(nil, "etcd")
	_ = []string{"/bin/sh", "/usr/bin/kubectl", "cabin/kube-scheduler", filepath.Join("usr", "bin")}
}`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", code, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := slices.DeleteFunc(namedIn([]source{{file: file}}), func(name string) bool { return name == "" })
	slices.Sort(got)
	if diff := cmp.Diff([]string{"kwok", "pulumi", "tofu", "vcsim"}, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}
