package audit

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

const (
	namespace = "n"
	account   = "a"
)

// line returns an event as an API server writes it.
func line(verb, uri, objectRef string, code int, decision string) string {
	return fmt.Sprintf(
		`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","stage":"ResponseComplete","requestURI":%q,"verb":%q,`+
			`"user":{"username":"system:serviceaccount:n:a"},"userAgent":"x/1","objectRef":%s,"responseStatus":{"code":%d},`+
			`"requestReceivedTimestamp":"2026-11-23T12:00:00.000001Z","annotations":{"authorization.k8s.io/decision":%q}}`+
			"\n", uri, verb, objectRef, code, decision)
}

func role(rules ...rbacv1.PolicyRule) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "r"}, Rules: rules}
}

// permissions returns the grants of bindings of a Role and a ClusterRole, among other bindings.
func permissions(t *testing.T, rules, everywhere []rbacv1.PolicyRule) []Permission {
	t.Helper()
	named := func(name string) []rbacv1.Subject {
		return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}}
	}
	from := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(
		role(rules...),
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Rules: everywhere},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "r"},
			RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "r"}, Subjects: named(account)},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "c"},
			RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "c"}, Subjects: named(account)},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "other"},
			RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "none"}, Subjects: named("other")},
	).Build()
	granted, err := Granted(t.Context(), from, namespace, account)
	if err != nil {
		t.Fatal(err)
	}
	return granted
}

func rule(group, resource string, names []string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{"", group}, Resources: []string{resource},
		ResourceNames: names, Verbs: verbs}
}

func TestComparison(t *testing.T) {
	const secret = `{"resource":"secrets","namespace":"n","name":"s","apiVersion":"v1"}`
	cases := map[string]struct {
		rules, everywhere []rbacv1.PolicyRule
		log               []string
		unused            []string
		forbidden         []string
	}{
		"a verb that is used, and one that is not": {
			rules:  []rbacv1.PolicyRule{rule("apps", "secrets", nil, "get", "list")},
			log:    []string{line("get", "/api/v1/namespaces/n/secrets/s?x=y", secret, 200, "allow")},
			unused: []string{"Role n/r: list secrets"},
		},
		"another namespace than the Role's": {
			rules:  []rbacv1.PolicyRule{rule("apps", "secrets", nil, "get")},
			log:    []string{line("get", "/x", strings.Replace(secret, `"n"`, `"m"`, 1), 200, "allow")},
			unused: []string{"Role n/r: get secrets"},
		},
		"a ClusterRole holds in each namespace, and for each name that it has": {
			everywhere: []rbacv1.PolicyRule{rule("apps", "secrets", []string{"s", "t"}, "get")},
			log:        []string{line("get", "/x", secret, 200, "allow")},
			unused:     []string{"ClusterRole c: get secrets t"},
		},
		"a subresource is another resource": {
			rules: []rbacv1.PolicyRule{rule("apps", "pods", nil, "create"),
				rule("apps", "pods/eviction", nil, "create")},
			log: []string{line("create", "/x",
				`{"resource":"pods","subresource":"eviction","namespace":"n","name":"p"}`, 201, "allow")},
			unused: []string{"Role n/r: create pods"},
		},
		"a patch that makes the object uses create as well": {
			rules: []rbacv1.PolicyRule{rule("apps", "deployments", []string{"d", "e"}, "create", "patch")},
			log: []string{
				line("patch", "/x", `{"resource":"deployments","namespace":"n","name":"d","apiGroup":"apps"}`, 201,
					"allow"),
				line("patch", "/x", `{"resource":"deployments","namespace":"n","name":"e","apiGroup":"apps"}`, 200,
					"allow"),
			},
			unused: []string{"Role n/r: create deployments e"},
		},
		"writing roles and bindings uses escalate and bind": {
			everywhere: []rbacv1.PolicyRule{rule("rbac", "clusterroles", []string{"x", "y"}, "escalate", "bind")},
			log: []string{
				line("patch", "/x", `{"resource":"clusterroles","name":"y","apiGroup":"rbac"}`, 200, "allow"),
				line("patch", "/x", `{"resource":"clusterrolebindings","name":"x","apiGroup":"rbac"}`, 200, "allow"),
			},
			unused: []string{"ClusterRole c: escalate clusterroles x", "ClusterRole c: bind clusterroles y"},
		},
		"a request that is forbidden uses nothing, one that admission refuses does": {
			rules:     []rbacv1.PolicyRule{rule("apps", "secrets", nil, "get", "update")},
			log:       []string{line("get", "/x", secret, 403, "forbid"), line("update", "/x", secret, 403, "allow")},
			unused:    []string{"Role n/r: get secrets"},
			forbidden: []string{"get secrets n/s"},
		},
		"a path without a resource": {
			log: []string{line("get", "/metrics", `{}`, 403, "forbid")}, forbidden: []string{"get /metrics"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			comparison := NewComparison(permissions(t, tc.rules, tc.everywhere))
			half := `{"kind":"Ev`
			if err := Read(strings.NewReader(strings.Join(tc.log, "")+half), comparison.Add); err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(comparison.Unused()); got != fmt.Sprint(tc.unused) {
				t.Errorf("unused: %s, want %s", got, tc.unused)
			}
			if got := fmt.Sprint(comparison.Forbidden); got != fmt.Sprint(tc.forbidden) {
				t.Errorf("forbidden: %s, want %s", got, tc.forbidden)
			}
			if comparison.Calls != len(tc.log) {
				t.Errorf("%d of %d requests", comparison.Calls, len(tc.log))
			}
		})
	}
}

func TestReadNamesTheLineThatItCannotRead(t *testing.T) {
	err := Read(strings.NewReader("{}\nnothing\n"), func(Call) {})
	if err == nil || !strings.Contains(err.Error(), "line 2 ") {
		t.Errorf("got %v", err)
	}
}
