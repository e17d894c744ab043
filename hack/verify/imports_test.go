package verify

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../.."

// tags are those that hide tests from a plain build.
const tags = "e2e,e2e_libvirt,e2e_openstack,bench,chaos"

func TestPackagesImportOnlyWhatTheArchitectureAllows(t *testing.T) {
	foldersOf(t)
	packages := list(t, "./...")
	if len(packages) < len(rules)/2 {
		t.Fatalf("go list returned only %d packages; the test would hold nothing", len(packages))
	}
	for _, violation := range violations(rules, packages) {
		t.Error(violation)
	}
}

func TestNoTestFrameworkReachesTheProduct(t *testing.T) {
	foldersOf(t)
	// "testing" is let through: some libraries of others import it.
	frameworks := slices.DeleteFunc(slices.Clone(frameworks), func(name string) bool { return name == "testing" })
	for _, p := range list(t, "-deps", "./cmd/...") {
		if underAny(frameworks, p.path) {
			t.Errorf("%s is linked into a command; find out how with: go mod why %s", p.path, p.path)
		}
	}
}

func TestNoFolderIsNamedForNothing(t *testing.T) {
	for _, folder := range foldersOf(t) {
		if namedForNothing(folder) {
			t.Errorf("%s says nothing of what is in it; name the folder for the concept that it holds", folder)
		}
	}
}

func TestEveryRuleHasARowInTheArchitecture(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := firstCells(string(page))
	for _, r := range rules {
		name := strings.ReplaceAll(strings.TrimSuffix(r.path, "/..."), "*", "<noun>")
		if !strings.Contains(named, "`"+name+"`") {
			t.Errorf("the import table of docs/architecture.md has no row `%s`, but hack/verify/rules.go has a rule for it", name)
		}
	}
}

// firstCells returns the first column of a page's tables.
func firstCells(page string) string {
	var out []string
	for line := range strings.Lines(page) {
		if cells := strings.Split(line, "|"); len(cells) > 2 && cells[0] == "" {
			out = append(out, cells[1])
		}
	}
	return strings.Join(out, "\n")
}

func TestViolations(t *testing.T) {
	table := []rule{
		{path: "cmd/manager", may: []string{"..."}},
		{path: "controllers/shared"},
		{path: "controllers/*", may: []string{"actuators", "controllers/shared"}},
		{path: "actuators"},
		{path: "actuators/fake", may: []string{"actuators"}, helps: true},
		{path: "actuators/engine", may: []string{"actuators", "internal/..."}, tests: []string{"modules"}},
		{path: "internal/cli", never: []string{"k8s.io"}},
		{path: "modules"},
		{path: "test/...", may: []string{"..."}, helps: true},
	}
	cases := map[string]struct {
		pkg imports
		// want are the beginnings of the violations.
		want []string
	}{
		"what the rule allows is fine": {
			pkg: imports{path: "controllers/noun", product: []string{"fmt", "./actuators", "./controllers/shared", "k8s.io/api/core/v1"}},
		},
		"a package without a rule is reported with where to add one": {
			pkg:  imports{path: "internal/new", product: []string{"fmt"}},
			want: []string{"internal/new: no rule says what it may import; add one to the table in hack/verify/rules.go"},
		},
		"a folder below a path without dots has no rule": {
			pkg:  imports{path: "actuators/other"},
			want: []string{"actuators/other: no rule"},
		},
		"a sibling controller is refused": {
			pkg:  imports{path: "controllers/noun", product: []string{"./controllers/verb"}},
			want: []string{"controllers/noun imports ./controllers/verb: controllers/* may import only actuators, controllers/shared"},
		},
		"an engine behind the interface is refused": {
			pkg:  imports{path: "controllers/noun", product: []string{"./actuators/engine"}},
			want: []string{"controllers/noun imports ./actuators/engine"},
		},
		"a path that only begins alike is refused": {
			pkg:  imports{path: "actuators/engine", product: []string{"./internally/cli"}},
			want: []string{"actuators/engine imports ./internally/cli"},
		},
		"an import of a package that may import nothing is refused": {
			pkg:  imports{path: "internal/cli", product: []string{"./modules"}},
			want: []string{"internal/cli imports ./modules: internal/cli may import nothing inside the repository"},
		},
		"a product package must not import a fake, not even where it may import everything": {
			pkg:  imports{path: "cmd/manager", product: []string{"./modules", "./actuators/fake"}},
			want: []string{"cmd/manager imports ./actuators/fake: it helps tests and developers"},
		},
		"a product package must not import a test framework": {
			pkg: imports{path: "modules", product: []string{"testing", "testing/fstest", "github.com/onsi/gomega/gbytes", "github.com/onsi/ginkgo/v2"}},
			want: []string{
				"modules imports testing: it is for tests", "modules imports testing/fstest: it is for tests",
				"modules imports github.com/onsi/gomega/gbytes: it is for tests", "modules imports github.com/onsi/ginkgo/v2: it is for tests",
			},
		},
		"what helps tests may import a test framework": {
			pkg: imports{path: "test/builder", product: []string{"testing", "./actuators/fake", "./controllers/noun"}},
		},
		"a test may import its own package, helpers, and what its rule adds": {
			pkg: imports{path: "actuators/engine", tests: []string{"testing", "./actuators/engine", "./test/builder", "./actuators/fake", "./modules"}},
		},
		"what is added for tests is not for the product": {
			pkg:  imports{path: "actuators/engine", product: []string{"./modules"}},
			want: []string{"actuators/engine imports ./modules"},
		},
		"a test is held by its package's rule": {
			pkg:  imports{path: "controllers/noun", tests: []string{"./controllers/verb"}},
			want: []string{"a test of controllers/noun imports ./controllers/verb"},
		},
		"a library that the package must not know is refused, in tests as well": {
			pkg: imports{path: "internal/cli", product: []string{"k8s.io/api/core/v1"}, tests: []string{"k8s.io/utils/clock"}},
			want: []string{
				"internal/cli imports k8s.io/api/core/v1: internal/cli must not know of it",
				"a test of internal/cli imports k8s.io/utils/clock: internal/cli must not know of it",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := violations(table, []imports{tc.pkg})
			beginsWith := cmp.Comparer(func(x, y string) bool { return strings.HasPrefix(x, y) || strings.HasPrefix(y, x) })
			if diff := cmp.Diff(tc.want, got, beginsWith); diff != "" {
				t.Errorf("violations differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNamedForNothing(t *testing.T) {
	for folder, want := range map[string]bool{
		"pkg": true, "internal/util": true, "test/utils": true, "internal/common": true, "controllers/helpers": true, "a/helper/b": false,
		"internal/engine/tofu": false, "controllers/machineapi": false,
	} {
		if got := namedForNothing(folder); got != want {
			t.Errorf("namedForNothing(%q) = %t, want %t", folder, got, want)
		}
	}
}

// namedForNothing reports whether the last part of a path has no meaning.
func namedForNothing(folder string) bool {
	return slices.Contains([]string{"pkg", "util", "utils", "common", "helper", "helpers", "misc"}, filepath.Base(folder))
}

// foldersOf returns the folders of the repository that are under version control or may come to be. A test that calls it is run again
// when a file has changed: go test's cache sees what a test reads itself, and not what go list reads for it.
func foldersOf(t *testing.T) []string {
	t.Helper()
	var folders []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() || path == root {
			return err
		}
		if strings.HasPrefix(entry.Name(), ".") || path == filepath.Join(root, "bin") {
			return filepath.SkipDir
		}
		folder, err := filepath.Rel(root, path)
		folders = append(folders, filepath.ToSlash(folder))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return folders
}

// list asks go list what packages import.
func list(t *testing.T, arguments ...string) []imports {
	t.Helper()
	command := exec.Command("go", append([]string{"list", "-tags", tags, "-json=ImportPath,Imports,TestImports,XTestImports"}, arguments...)...)
	command.Dir = root
	var problems bytes.Buffer
	command.Stderr = &problems
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %s\n%s", command, err, problems.String())
	}
	var packages []imports
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath                         string
			Imports, TestImports, XTestImports []string
		}
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		if err != nil {
			t.Fatalf("reading what %s printed: %s", command, err)
		}
		packages = append(packages, imports{
			path:    strings.TrimPrefix(inside(p.ImportPath), "./"),
			product: each(p.Imports, inside),
			tests:   each(slices.Concat(p.TestImports, p.XTestImports), inside),
		})
	}
}

// inside shortens the import path of a package of this repository.
func inside(path string) string {
	if rest, ok := strings.CutPrefix(path, modulePath+"/"); ok {
		return "./" + rest
	}
	return path
}

func each(paths []string, change func(string) string) []string {
	out := make([]string, 0, len(paths))
	for _, path := range paths {
		out = append(out, change(path))
	}
	return out
}
