package cli

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/machine-iac/machine-iac-operator/internal/inspect"
)

// kubeconfigFor writes a kubeconfig with the contexts "here", whose namespace is "machines", and "other".
func kubeconfigFor(t *testing.T, host string) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: host, InsecureSkipTLSVerify: true}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: "t"}
	config.AuthInfos["v"] = &clientcmdapi.AuthInfo{Token: "token-of-v"}
	config.Clusters["gone"] = &clientcmdapi.Cluster{Server: "http://127.0.0.1:1"}
	config.Contexts["here"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u", Namespace: "machines"}
	config.Contexts["other"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "here"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// listing is a command that lists namespaces.
func listing(f *ClusterFlags, report func(namespace string)) *cobra.Command {
	command := &cobra.Command{Use: "list", SilenceErrors: true, SilenceUsage: true, RunE: func(command *cobra.Command, _ []string) error {
		cluster, namespace, err := f.Connect()
		if err != nil {
			return err
		}
		report(namespace)
		return cluster.List(command.Context(), &corev1.NamespaceList{})
	}}
	f.Register(command, "Namespace.")
	f.RegisterAllNamespaces(command)
	return command
}

func TestClusterFlags(t *testing.T) {
	var request *http.Request
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, got *http.Request) {
		request = got
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(corev1.NamespaceList{
			TypeMeta: metav1.TypeMeta{Kind: "NamespaceList", APIVersion: "v1"},
			Items:    []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "machines"}}, {ObjectMeta: metav1.ObjectMeta{Name: "more"}}},
		})
	}))
	t.Cleanup(server.Close)
	file := kubeconfigFor(t, server.URL)
	cases := map[string]struct {
		arguments     []string
		variable      string
		wantNamespace string
		wantHeaders   http.Header
		wantErr       string
	}{
		"the context's namespace":           {arguments: []string{"--kubeconfig", file}, wantNamespace: "machines"},
		"the kubeconfig of the environment": {variable: file, wantNamespace: "machines"},
		"a namespace of one's own":          {arguments: []string{"--kubeconfig", file, "-n", "mine"}, wantNamespace: "mine"},
		"a context without a namespace":     {arguments: []string{"--kubeconfig", file, "--context", "other"}, wantNamespace: "default"},
		"all namespaces":                    {arguments: []string{"--kubeconfig", file, "-A"}},
		"another user": {
			arguments: []string{"--kubeconfig", file, "--as", "eve", "--as-group", "g", "--as-group", "h", "--as-uid", "7"}, wantNamespace: "machines",
			wantHeaders: http.Header{"Impersonate-User": {"eve"}, "Impersonate-Group": {"g", "h"}, "Impersonate-Uid": {"7"}},
		},
		"another user of the kubeconfig": {
			arguments: []string{"--kubeconfig", file, "--user", "v"}, wantNamespace: "machines", wantHeaders: http.Header{"Authorization": {"Bearer token-of-v"}},
		},
		"another cluster of the kubeconfig":            {arguments: []string{"--kubeconfig", file, "--cluster", "gone"}, wantErr: "connection refused"},
		"a token":                                      {arguments: []string{"--kubeconfig", file, "--token", "x"}, wantNamespace: "machines", wantHeaders: http.Header{"Authorization": {"Bearer x"}}},
		"a server and no kubeconfig":                   {variable: "/dev/null", arguments: []string{"--server", server.URL, "--insecure-skip-tls-verify"}, wantNamespace: "default"},
		"no limit of time":                             {arguments: []string{"--kubeconfig", file, "--request-timeout", "0"}, wantNamespace: "machines"},
		"a time that is none":                          {arguments: []string{"--kubeconfig", file, "--request-timeout", "soon"}, wantErr: "Invalid timeout value"},
		"a namespace and all":                          {arguments: []string{"--kubeconfig", file, "-A", "-n", "mine"}, wantErr: "[all-namespaces namespace]"},
		"a kubeconfig that is not there":               {arguments: []string{"--kubeconfig", "nowhere"}, wantErr: "finding the cluster: "},
		"a context that is not there":                  {arguments: []string{"--kubeconfig", file, "--context", "x"}, wantErr: "one of its contexts with --context"},
		"no kubeconfig, which is not localhost either": {variable: "/dev/null", wantErr: "name a kubeconfig with --kubeconfig"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", tc.variable)
			t.Setenv("HOME", t.TempDir())
			request = nil
			var namespace string
			command := listing(&ClusterFlags{}, func(name string) { namespace = name })
			command.SetArgs(tc.arguments)
			err := command.ExecuteContext(t.Context())
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("it returns %v; want %q", err, tc.wantErr)
				}
				return
			}
			if err != nil || request == nil || namespace != tc.wantNamespace {
				t.Fatalf("it returns %v for namespace %q; the request is %v", err, namespace, request)
			}
			for name, want := range tc.wantHeaders {
				if diff := cmp.Diff(want, request.Header.Values(name)); diff != "" {
					t.Errorf("header %s (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

func TestClusterFlagsAreCompleted(t *testing.T) {
	file := kubeconfigFor(t, "http://127.0.0.1:1")
	f := &ClusterFlags{}
	listing(f, nil)
	f.KubeConfig = &file
	for name, tc := range map[string]struct {
		list func(clientcmdapi.Config) []string
		want []string
	}{"contexts": {contexts, []string{"here", "other"}}, "clusters": {clusters, []string{"c", "gone"}}, "users": {users, []string{"u", "v"}}} {
		t.Run(name, func(t *testing.T) {
			got, directive := f.completeFromKubeconfig(tc.list)(nil, nil, "")
			if diff := cmp.Diff(tc.want, got); diff != "" || directive != cobra.ShellCompDirectiveNoFileComp {
				t.Errorf("directive %v; names (-want +got):\n%s", directive, diff)
			}
		})
	}
	command := &cobra.Command{}
	command.SetContext(t.Context())
	t.Run("names that are not given yet", func(t *testing.T) {
		got, _ := f.Complete(func(context.Context, *inspect.Cluster) ([]string, error) { return []string{"a", "b"}, nil })(command, []string{"a"}, "")
		if diff := cmp.Diff([]string{"b"}, got); diff != "" {
			t.Errorf("names (-want +got):\n%s", diff)
		}
	})
	t.Run("nothing, where the cluster cannot be read", func(t *testing.T) {
		failing := func(context.Context, *inspect.Cluster) ([]string, error) { return []string{"a"}, errors.New("no") }
		if got, directive := f.Complete(failing)(command, nil, ""); got != nil || directive != cobra.ShellCompDirectiveNoFileComp {
			t.Errorf("it offers %q, %v", got, directive)
		}
		if got, _ := f.Complete(NamesOf("Namespace"))(command, nil, ""); got != nil {
			t.Errorf("it offers %q", got)
		}
	})
}
