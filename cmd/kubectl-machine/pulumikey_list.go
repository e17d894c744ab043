package main

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
)

// encryptionKey is the metadata of a key that encrypts Pulumi's checkpoints.
type encryptionKey struct {
	ID string `json:"id"`
	// Current means that runs encrypt with it.
	Current bool `json:"current"`
	// Missing means that the Secret lacks the key, so nothing encrypted with it can be decrypted.
	Missing bool `json:"missing,omitempty"`
	// Checkpoints are encrypted with it, and so many earlier Versions.
	Checkpoints int `json:"checkpoints"`
	Versions    int `json:"versions"`
	// Made is when it was made, Replaced when another took its place.
	Made     *metav1.Time `json:"made,omitempty"`
	Replaced *metav1.Time `json:"replaced,omitempty"`
}

// keyList are the keys of a cluster.
type keyList struct {
	Items []encryptionKey `json:"items"`
	// Now is when they were read.
	Now time.Time `json:"-"`
}

// Objects implements print.Report.
func (l *keyList) Objects() []metav1.PartialObjectMetadata {
	var objects []metav1.PartialObjectMetadata
	for i := range l.Items {
		objects = append(objects, print.Reference(schema.GroupVersionKind{Version: "v1", Kind: "Key"}, "", l.Items[i].ID))
	}
	return objects
}

// WithNamespaces implements print.Table.
func (l *keyList) WithNamespaces() bool { return false }

// Rows implements print.Table.
func (l *keyList) Rows(bool) [][]string {
	rows := [][]string{{"KEY", "STATUS", "CHECKPOINTS", "VERSIONS", "MADE", "REPLACED"}}
	when := func(at *metav1.Time) string {
		if at == nil {
			return "-"
		}
		return print.Age(at.Time, l.Now)
	}
	for _, key := range l.Items {
		status := "Replaced"
		switch {
		case key.Current:
			status = "Current"
		case key.Missing:
			status = "Missing"
		}
		rows = append(rows, []string{key.ID, status, strconv.Itoa(key.Checkpoints), strconv.Itoa(key.Versions),
			when(key.Made), when(key.Replaced)})
	}
	return rows
}
