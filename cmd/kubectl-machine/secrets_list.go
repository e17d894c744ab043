package main

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
	"github.com/machine-iac/machine-iac-operator/internal/inspect"
	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
)

// namedSecret is a Secret that providerSpecs name.
type namedSecret struct {
	Namespace string         `json:"namespace"`
	Secret    string         `json:"secret"`
	Use       references.Use `json:"use"`
	// MachineSets name it in their templates, and so many Machines.
	MachineSets []string `json:"machineSets,omitempty"`
	Machines    int      `json:"machines"`
	// Status is Usable, Unlabelled, Forbidden or Missing.
	Status string `json:"status"`
	// Message says why it may not be used, or has the command that allows it.
	Message string `json:"message,omitempty"`
}

// secretList is the result of `kubectl machine secrets`.
type secretList struct {
	Items []namedSecret `json:"items"`

	namespace string
}

// namedBy returns the Secrets that MachineSets and Machines name, sorted.
func namedBy(facts *inspect.Facts) []namedSecret {
	type key struct {
		namespace, secret string
		use               references.Use
	}
	found := map[key]*namedSecret{}
	add := func(namespace string, value *runtime.RawExtension, count func(*namedSecret)) {
		var fields map[string]any
		if value == nil || json.Unmarshal(value.Raw, &fields) != nil {
			return
		}
		counted := map[key]bool{}
		eachReference(fields, func(secret string, use references.Use) {
			at := key{namespace, secret, use}
			if found[at] == nil {
				found[at] = &namedSecret{Namespace: namespace, Secret: secret, Use: use}
			}
			if !counted[at] {
				count(found[at])
			}
			counted[at] = true
		})
	}
	for i := range facts.Sets {
		set := &facts.Sets[i]
		add(set.Namespace, set.Spec.Template.Spec.ProviderSpec.Value,
			func(n *namedSecret) { n.MachineSets = append(n.MachineSets, set.Name) })
	}
	for i := range facts.Machines {
		machine := &facts.Machines[i]
		add(machine.Namespace, machine.Spec.ProviderSpec.Value, func(n *namedSecret) { n.Machines++ })
	}
	all := make([]namedSecret, 0, len(found))
	for _, one := range found {
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b namedSecret) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Secret, b.Secret), cmp.Compare(a.Use, b.Use))
	})
	return all
}

// eachReference calls found for each field of a providerSpec that names a Secret: its name ends in
// Secret, and it has a name, or an object with one. That holds for every kind of the Machine API,
// whatever modules the operator has.
func eachReference(fields map[string]any, found func(secret string, use references.Use)) {
	for field, value := range fields {
		inner, isObject := value.(map[string]any)
		if !strings.HasSuffix(field, "Secret") {
			if isObject {
				eachReference(inner, found)
			}
			continue
		}
		name, _ := value.(string)
		if isObject {
			name, _ = inner["name"].(string)
		}
		if name == "" {
			continue
		}
		use := references.Credentials
		if strings.HasPrefix(strings.ToLower(field), "userdata") {
			use = references.UserData
		}
		found(name, use)
	}
}

// Objects implements print.Report.
func (l *secretList) Objects() []metav1.PartialObjectMetadata {
	var objects []metav1.PartialObjectMetadata
	for i := range l.Items {
		objects = append(objects, print.Reference(schema.GroupVersionKind{Version: "v1", Kind: "Secret"},
			l.Items[i].Namespace, l.Items[i].Secret))
	}
	return objects
}

// WithNamespaces implements print.Table.
func (l *secretList) WithNamespaces() bool { return l.namespace == "" }

// Rows implements print.Table.
func (l *secretList) Rows(wide bool) [][]string {
	rows := [][]string{{"SECRET", "USE", "STATUS", "MACHINESETS", "MACHINES", "DETAILS"}}
	for _, s := range l.Items {
		sets := cmp.Or(print.Cut(strings.Join(s.MachineSets, ","), wide), "-")
		rows = append(rows, []string{s.Secret, string(s.Use), s.Status, sets, strconv.Itoa(s.Machines), s.Message})
	}
	return rows
}
