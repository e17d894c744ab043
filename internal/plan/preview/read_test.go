package preview

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/module/load"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
	"github.com/machine-iac/machine-iac-operator/test/golden"
)

func TestReadFiles(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"a.yaml": "a", "b.json": "b", "c.txt": "c", "in/d.yml": "d",
		"in/e.yaml": "e"} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		names     []string
		recursive bool
		want      string
		wantErr   string
	}{
		"a file of any name":        {names: []string{"c.txt"}, want: "c"},
		"the manifests in a folder": {names: []string{"."}, want: "a b"},
		"and in those inside":       {names: []string{"."}, recursive: true, want: "a b d e"},
		"the standard input":        {names: []string{"-"}, want: "stdin"},
		"what is named twice is read once": {names: []string{"a.yaml", "./a.yaml", ".", "-", "-"},
			want: "a b stdin"},
		"a file that is not there": {names: []string{"nowhere.yaml", "a.yaml"}, want: "a",
			wantErr: "name a file, a folder, or - for the standard input"},
		"a folder without manifests":              {names: []string{"empty"}, wantErr: "add -R for the folders in it"},
		"a folder without manifests in any depth": {names: []string{"empty"}, recursive: true, wantErr: "name another"},
	}
	t.Chdir(dir)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files, err := ReadFiles(tc.names, tc.recursive, strings.NewReader("stdin"))
			var got []string
			for _, file := range files {
				got = append(got, string(file.Content))
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("it reads %q; want %q", got, tc.want)
			}
			if (tc.wantErr == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("it ends with %v; want %q", err, tc.wantErr)
			}
		})
	}
}

func TestSplit(t *testing.T) {
	cases := map[string]struct {
		content string
		// want has the number, the first line and the text of each document.
		want []string
	}{
		"one document":                         {content: "a: 1\n", want: []string{"1@1 a: 1\n"}},
		"nothing":                              {content: "\n# nothing\n"},
		"a comment before the first separator": {content: "# a\n---\na: 1\n", want: []string{"1@3 a: 1\n"}},
		"documents": {content: "a: 1\n---\nb: 2\n--- # c\nc: 3\n",
			want: []string{"1@1 a: 1\n", "2@3 b: 2\n", "3@5 c: 3\n"}},
		"an empty one is counted and left out": {content: "---\na: 1\n---\n\n---\nb: 2",
			want: []string{"1@2 a: 1\n", "3@6 b: 2"}},
		"lines that end as on Windows": {content: "a: 1\r\n---\r\nb: 2\r\n",
			want: []string{"1@1 a: 1\r\n", "2@3 b: 2\r\n"}},
		"dashes that separate nothing": {content: "a: |\n  ---\n----\n",
			want: []string{"1@1 a: |\n  ---\n----\n"}},
		"JSON, one value after the other": {content: "{\"a\":1}\n{\"b\":\n2} {\"c\":3}",
			want: []string{"1@1 {\"a\":1}", "2@1 \n{\"b\":\n2}", "3@3  {\"c\":3}"}},
		"JSON that breaks off is a document to see": {content: "{\"a\":1}\n{\"b\":",
			want: []string{"1@1 {\"a\":1}", "2@1 \n{\"b\":"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, one := range split(File{Name: "f", Content: []byte(tc.content)}) {
				got = append(got, fmt.Sprintf("%d@%d %s", one.number, one.offset+1, one.raw))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("documents (-want +got):\n%s", diff)
			}
		})
	}
}

// manifest returns a Machine or a MachineSet as JSON, with metadata and labels of its Machine.
func manifest(kind string, metadata, labels map[string]any) string {
	spec := map[string]any{"providerSpec": map[string]any{"value": map[string]any{
		"apiVersion": "example.com/v1", "kind": "ExampleProviderSpec", "credentialsSecret": map[string]any{"name": "c"},
	}}}
	all := map[string]any{"apiVersion": "machine.openshift.io/v1beta1", "kind": kind, "metadata": metadata,
		"spec": spec}
	if kind == KindMachine {
		metadata["labels"] = labels
	} else {
		labels["set"] = "x"
		all["spec"] = map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"set": "x"}},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": spec},
		}
	}
	raw, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func TestWhatIsKnownOfAMachine(t *testing.T) {
	const label = "machine.openshift.io/cluster-api-cluster"
	long := strings.Repeat("a", 70)
	cases := map[string]struct {
		manifest     string
		clusterID    string
		want         offline.Unknown
		wantName     string
		wantCluster  string
		wantReplicas int32
	}{
		"one of a MachineSet has a name that is generated": {
			manifest:  manifest("MachineSet", map[string]any{"name": "w"}, map[string]any{label: "own"}),
			clusterID: "other",
			want:      offline.Unknown{Name: true, NamePrefix: "w-", UID: true}, wantName: "w-", wantCluster: "own",
			wantReplicas: 1,
		},
		"of a long name the API server keeps the beginning": {
			manifest: manifest("MachineSet", map[string]any{"name": long}, map[string]any{label: "own"}),
			want:     offline.Unknown{Name: true, NamePrefix: long[:58], UID: true}, wantName: long + "-",
			wantCluster: "own", wantReplicas: 1,
		},
		"one by itself has a name": {
			manifest: manifest("Machine", map[string]any{"name": "m"}, map[string]any{}), clusterID: "demo",
			want: offline.Unknown{UID: true}, wantName: "m", wantCluster: "demo", wantReplicas: 1,
		},
		"one that exists has a UID": {
			manifest: manifest("Machine", map[string]any{"name": "m", "uid": "u"}, map[string]any{}), clusterID: "demo",
			want: offline.Unknown{}, wantName: "m", wantCluster: "demo", wantReplicas: 1,
		},
		"one by itself whose name is generated": {
			manifest: manifest("Machine", map[string]any{"generateName": "m-"}, map[string]any{}), clusterID: "demo",
			want: offline.Unknown{Name: true, NamePrefix: "m-", UID: true}, wantName: "m-", wantCluster: "demo",
			wantReplicas: 1,
		},
		"one that is given user data": {
			manifest: strings.Replace(manifest("Machine", map[string]any{"name": "m"}, map[string]any{}),
				`"credentialsSecret"`, `"userDataSecret":{"name":"u"},"credentialsSecret"`, 1),
			clusterID: "demo", want: offline.Unknown{UID: true, UserData: true}, wantName: "m", wantCluster: "demo",
			wantReplicas: 1,
		},
		"the cluster that nobody names": {
			manifest: manifest("Machine", map[string]any{"name": "m"}, map[string]any{}),
			want:     offline.Unknown{UID: true, ClusterID: true}, wantName: "m", wantCluster: "", wantReplicas: 1,
		},
	}
	catalog := catalogOf(t, "testdata/modules")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			requests, _, err := Read([]File{{Name: "f", Content: []byte(tc.manifest)}},
				Cluster{Namespace: "ns", ID: tc.clusterID}, catalog)
			if err != nil {
				t.Fatal(err)
			}
			got := requests[0]
			if diff := cmp.Diff(tc.want, got.Input.Unknown); diff != "" {
				t.Errorf("what is unknown (-want +got):\n%s", diff)
			}
			machine := got.Machine()
			if replicas, _ := got.Replicas(); machine.Name+machine.GenerateName != tc.wantName ||
				machine.Namespace != "ns" || replicas != tc.wantReplicas {
				t.Errorf("it is %+v, %d times; want the Machine %s", machine.ObjectMeta, replicas, tc.wantName)
			}
			var variables struct {
				Machine struct {
					ClusterID string `json:"cluster_id"`
				} `json:"machine"`
			}
			if err := json.Unmarshal(got.Input.Variables, &variables); err != nil {
				t.Fatal(err)
			}
			if variables.Machine.ClusterID != tc.wantCluster {
				t.Errorf("the cluster is %q; want %q", variables.Machine.ClusterID, tc.wantCluster)
			}
		})
	}
}

func TestANameThatIsNone(t *testing.T) {
	content := manifest("MachineSet", map[string]any{"name": "a\x1b[2Jb"}, map[string]any{})
	_, _, err := Read([]File{{Name: "f", Content: []byte(content)}}, Cluster{}, catalogOf(t, "testdata/modules"))
	if err == nil || !strings.Contains(err.Error(), "is no name") || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("it ends with %q", err)
	}
}

func TestEveryProblemIsReportedAtOnce(t *testing.T) {
	content, err := os.ReadFile("testdata/errors/all.input.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = Read([]File{{Name: "all.yaml", Content: content}}, Cluster{Namespace: "openshift-machine-api"},
		catalogOf(t, "testdata/modules"))
	if err == nil {
		t.Fatal("nothing is wrong with it")
	}
	golden.Check(t, "testdata/errors/all.txt", err.Error()+"\n")
}

func TestWhatTheClusterFillsIn(t *testing.T) {
	catalog := catalogOf(t, "../../../modules/aws")
	content := `{"apiVersion":"machine.openshift.io/v1beta1","kind":"Machine","metadata":{"name":"m"},"spec":{"providerSpec":{"value":{` +
		`"apiVersion":"machine.openshift.io/v1beta1","kind":"AWSMachineProviderConfig","ami":{"id":"ami-1"}}}}}`
	cluster := Cluster{Namespace: "ns", ID: "demo"}
	_, _, err := Read([]File{{Name: "f", Content: []byte(content)}}, cluster, catalog)
	const want = "; a cluster may fill it in: set it with --cluster-fact region=VALUE"
	if err == nil || !strings.HasSuffix(err.Error(), want) || strings.Count(err.Error(), "\n") > 1 {
		t.Errorf("a region that nobody knows ends with\n%v\nwant one problem that ends in %q", err, want)
	}
	cluster.ClusterValues = module.ClusterValues{module.ValueRegion: "us-east-1"}
	requests, _, err := Read([]File{{Name: "f", Content: []byte(content)}}, cluster, catalog)
	if err != nil {
		t.Fatal(err)
	}
	var variables struct {
		Spec struct {
			InstanceType string `json:"instanceType"`
			Placement    struct {
				Region string `json:"region"`
			} `json:"placement"`
		} `json:"provider_spec"`
	}
	if err := json.Unmarshal(requests[0].Input.Variables, &variables); err != nil {
		t.Fatal(err)
	}
	if spec := variables.Spec; spec.InstanceType != "m5.large" || spec.Placement.Region != "us-east-1" {
		t.Errorf("it is planned with %+v", spec)
	}
	if secrets := requests[0].Secrets; len(secrets) != 2 || secrets[0].Name != "aws-cloud-credentials" {
		t.Errorf("it needs the Secrets %v", secrets)
	}
}

func catalogOf(t testing.TB, folder string) *module.Catalog {
	t.Helper()
	loaded, err := load.Folders(folder)
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := module.NewCatalog(loaded...)
	if err != nil {
		t.Fatal(err)
	}
	return catalog
}
