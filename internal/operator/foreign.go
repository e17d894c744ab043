package operator

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// definition are the fields that define an object. Others may write metadata and status too.
var definition = []string{"spec", "rules", "webhooks", "data", "subjects", "roleRef", "aggregationRule"}

// takeOver returns the managed fields of an object with all fields of its definition owned by the
// operator alone, and who owned any that the operator has not applied.
func takeOver(live *unstructured.Unstructured) (entries []any, by []string) {
	managed := live.GetManagedFields()
	own := slices.IndexFunc(managed, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == fieldManager && entry.Operation == metav1.ManagedFieldsOperationApply &&
			entry.Subresource == ""
	})
	if own < 0 { // somebody else created the object
		now := metav1.Now()
		managed = append(managed, metav1.ManagedFieldsEntry{
			Manager: fieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: live.GetAPIVersion(),
			FieldsType: "FieldsV1", Time: &now,
		})
		own = len(managed) - 1
	}
	ours := decode(managed[own])
	all := ours
	for i := range managed {
		if i == own || managed[i].Subresource != "" {
			continue
		}
		fields := decode(managed[i])
		over := taken(live, fields)
		if !over.Difference(ours).Empty() {
			by = append(by, managed[i].Manager)
		}
		all = all.Union(over)
		encode(&managed[i], fields.Difference(over)) // with two owners, neither could remove a field
	}
	if len(by) == 0 {
		return nil, nil
	}
	encode(&managed[own], all)
	for i := range managed {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&managed[i])
		if err != nil {
			return nil, nil
		}
		if i == own || !decode(managed[i]).Empty() {
			entries = append(entries, fields)
		}
	}
	return entries, by
}

// encode sets the fields of an entry.
func encode(entry *metav1.ManagedFieldsEntry, fields *fieldpath.Set) {
	if raw, err := fields.ToJSON(); err == nil { // what was read can be written
		entry.FieldsV1 = metav1.NewFieldsV1(string(raw))
	}
}

// taken returns the fields that the operator takes from another manager.
func taken(live *unstructured.Unstructured, fields *fieldpath.Set) *fieldpath.Set {
	found := &fieldpath.Set{}
	fields.Iterate(func(path fieldpath.Path) {
		if defines(path) && !theirs(live, path) {
			found.Insert(path.Copy())
		}
	})
	return found
}

func defines(path fieldpath.Path) bool {
	if len(path) == 0 || path[0].FieldName == nil {
		return false
	}
	for _, name := range definition {
		if *path[0].FieldName == name {
			return true
		}
	}
	return false
}

// theirs reports whether a field of the definition belongs to others: the CA of webhooks, which is
// injected; the rules of an aggregated ClusterRole; what the control plane assigns to a Service.
func theirs(live *unstructured.Unstructured, path fieldpath.Path) bool {
	last := path[len(path)-1]
	if last.FieldName == nil {
		return false
	}
	switch live.GetKind() {
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		return *last.FieldName == "caBundle"
	case "ClusterRole":
		_, aggregated := live.Object["aggregationRule"]
		return aggregated && *path[0].FieldName == "rules"
	case "Service":
		return len(path) > 1 && (*last.FieldName == "clusterIP" || *last.FieldName == "clusterIPs")
	}
	return false
}

// scaled reports whether the replicas of an object were set through its scale subresource, as by an
// autoscaler. Zero does not count: to stop the controllers, stop the operator first.
func scaled(live *unstructured.Unstructured) bool {
	path := fieldpath.MakePathOrDie("spec", "replicas")
	for _, entry := range live.GetManagedFields() {
		if entry.Subresource == "scale" && decode(entry).Has(path) {
			return replicas(live) > 0
		}
	}
	return false
}

// decode returns the fields of an entry, or none if they are unreadable.
func decode(entry metav1.ManagedFieldsEntry) *fieldpath.Set {
	set := &fieldpath.Set{}
	if entry.FieldsV1 == nil {
		return set
	}
	if err := set.FromJSON(entry.FieldsV1.GetRawReader()); err != nil { // a newer format
		return &fieldpath.Set{}
	}
	return set
}
